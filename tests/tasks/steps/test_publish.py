"""Publishing: all tables or none, resumable after every step, and one winner of two."""

import shutil
from dataclasses import replace

import polars as pl
import pytest
from lancedb.table import Tags

import pegboard
from pegboard.errors import PromotionConflict, PublishError
from pegboard.ranker.model import default_ranker
from pegboard.store.contract import key_column
from pegboard.store.releases import ReleaseStore
from pegboard.store.writing import open_table
from tasks.steps.publish import publish_release
from tasks.steps.release_spec import table_digest
from tests.pegboard.retrieval.stubs import ScriptedCompleter

STEPS = ("snapshot", "plan", "compose", "embed", "stage", "publish")


def assert_whole(store, release):
    """Every table of the release has, at the version that it pins, the rows that it promises,
    protected by a tag.
    """
    for name, pin in release.tables.items():
        table = open_table(store.database, pin.table, store.uri, pin.version)
        key = key_column(name)
        rows = pl.from_arrow(table.search().select([key, "digest"]).to_arrow()).select(
            key, "digest"
        )
        assert (rows.height, table_digest(rows)) == (pin.rows, pin.digest), name
        assert table.tags.list()[f"{release.id}-v{pin.version}"]["version"] == pin.version, name


@pytest.fixture(scope="module")
def shared_first(tmp_path_factory, workshop_type):
    workshop = workshop_type(tmp_path_factory.mktemp("first"))
    return workshop.uri, workshop.publish(workshop.named("one")).release


@pytest.fixture
def first(workshop, shared_first):
    """The release with the tool `one`, the only one of the workshop's board."""
    uri, release = shared_first
    shutil.copytree(uri, workshop.uri)
    workshop.servers(workshop.named("one"))
    return release


@pytest.fixture(scope="module")
def issues_uri(tmp_path_factory, workshop_type):
    """A board whose live release has the tools `create_issue` and `delete_issue`. Do not change
    it.
    """
    workshop = workshop_type(tmp_path_factory.mktemp("issues"))
    workshop.publish(workshop.named("create_issue", "delete_issue"))
    return workshop.uri


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, workshop_type):
    """What a run publishes of three tools if nothing happens to it."""
    workshop = workshop_type(tmp_path_factory.mktemp("undisturbed"))
    return workshop.publish(workshop.named("create_issue", "close_issue", "open_issue")).release


def test_the_manifest_describes_the_inputs_of_a_release(workshop, encoder):
    release = workshop.run(workshop.full()).release

    assert release == workshop.store.get(release.id)
    assert workshop.store.channel().release == release.id
    assert release.manifest["default_index"] == "full"
    counts = {"tools": 14, "agents": 6, "enriched": 0, "flagged": 0, "edges": 0}
    assert release.manifest["counts"] == counts
    assert release.manifest["indexes"]["fine"] == {
        "encoder": "hashing/256",
        "options": {},
        "fingerprint": encoder.fingerprint,
        "dimensions": 256,
        "parts": ["name", "description", "arguments", "questions", "topics"],
        "shape": "multi",
        "questions": 10,
        "language": "english",
        "understood": 1.0,
        "ranker": default_ranker().to_dict(),
    }
    assert {name: one["tools"] for name, one in release.manifest["catalogs"].items()} == {
        "kit": 8, "finance": 3, "desk": 3,
    }  # fmt: skip
    changes = {"against": None, "new": 14, "changed": 0, "removed": 0, "unchanged": 0}
    assert release.manifest["changes"] == changes
    assert_whole(workshop.store, release)


def test_a_strategy_is_part_of_the_release(workshop):
    workshop.servers(workshop.named("one"))
    plain = workshop.run(workshop.configure()).release
    named = workshop.run(workshop.configure('[find]\nstrategy = "search"\n')).release
    own = workshop.run(workshop.configure('[find.strategy]\nname = "mine"\ndepth = 20\n')).release

    assert "strategy" not in plain.manifest
    assert named.manifest["strategy"] == {"name": "search"}
    assert own.manifest["strategy"] == {"name": "mine", "depth": 20}
    assert len({plain.id, named.id, own.id}) == 3
    assert plain.tables == named.tables == own.tables


def test_prompts_beside_the_configuration_are_published_and_used_by_readers(
    workshop, tmp_path, monkeypatch
):
    text = '+++\nversion = "7"\n+++\n# system\nWe are {0}.\n# user\n{{{{ request }}}}\n'
    workshop.servers(workshop.named("one"))
    configuration = workshop.configure('[find.strategy]\nname = "mine"\nrefine = ["grade"]\n')
    file = configuration.base / "prompts/grade.md"
    plain = workshop.run(configuration).release
    file.parent.mkdir()
    file.write_text(text.format("sailors"), "utf-8")
    own = workshop.run(configuration).release
    same = workshop.run(configuration).release
    file.write_text(text.format("bankers"), "utf-8")
    changed = workshop.run(configuration).release
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    llm = ScriptedCompleter({"relevant": []})
    with pegboard.open(workshop.uri, llm=llm) as board:
        found = board.find("list")
        without = board.find("list", llm=False)

    assert "prompts" not in plain.manifest
    assert own.manifest["prompts"] == {"grade": text.format("sailors")}
    assert same is None
    assert len({plain.id, own.id, changed.id}) == 3
    assert plain.tables == own.tables == changed.tables
    assert llm.requests[0].messages[0].content == "We are bankers."
    assert found.trace.parts[-1].fallback_reason is None
    assert without.trace.parts[-1].fallback_reason == "no LLM was given"


@pytest.mark.parametrize(
    ("step", "live"),
    [*((step, True) for step in STEPS[:-1]), ("stage", False)],
    ids=[*STEPS[:-1], "stage of a first release"],
)
def test_a_run_that_was_killed_after_a_step_is_completed_by_the_next(
    workshop, issues_uri, undisturbed, encoder, step, live
):
    if live:
        shutil.copytree(issues_uri, workshop.uri)
    workshop.servers(workshop.named("create_issue", "close_issue", "open_issue"))

    abandoned = workshop.run(workshop.configure(), step)
    if live:
        board = pegboard.open(workshop.uri, encoder=encoder)
        assert board.search("delete issue", 9)[0].tool.name == "delete_issue"
        assert len(board.search("issue", 9, mode="vector")) == 2
    again = workshop.run(workshop.configure())

    assert again.release.id == undisturbed.id
    assert {name: pin.digest for name, pin in again.release.tables.items()} == {
        name: pin.digest for name, pin in undisturbed.tables.items()
    }
    assert again.encoded == (0 if step in ("embed", "stage") else 2 + 2 * (not live))
    assert again.pins == (abandoned.pins or again.pins)
    assert_whole(workshop.store, again.release)
    assert workshop.store.channel().release == again.release.id


def test_a_channel_that_moved_since_the_plan_is_not_overwritten(workshop, first):
    second = workshop.publish(workshop.named("one", "two")).release
    workshop.servers(workshop.named("one", "two", "three"))
    run = workshop.run(workshop.configure(), "stage")
    workshop.store.rollback()

    with pytest.raises(PromotionConflict, match=f"expected generation 2 .* got 3 .*{first.id}"):
        publish_release(workshop.configure(), run.plan, run.snapshots, run.spec, run.pins)

    assert workshop.store.channel().release == first.id
    assert run.spec.release not in {release.id for release in workshop.store.all()}
    third = workshop.run(workshop.configure()).release
    assert (third.id, workshop.store.channel().release) == (run.spec.release, run.spec.release)
    for release in (first, second, third):
        assert_whole(workshop.store, workshop.store.get(release.id))


@pytest.mark.parametrize("how_far", ["one tag", "all tags", "row", "promoted"])
def test_a_publish_step_killed_after_any_write_is_completed_by_the_next(workshop, first, how_far):
    workshop.servers(workshop.named("one", "two"))
    run = workshop.run(workshop.configure(), "stage")
    pins = list(run.pins.values())
    for pin in pins[: 1 if how_far == "one tag" else len(pins)]:
        table = open_table(workshop.store.database, pin.table, workshop.uri)
        table.tags.create(f"{run.spec.release}-v{pin.version}", pin.version)
    channels = workshop.store.database.open_table("channels")
    before = channels.version
    if how_far in ("row", "promoted"):
        publish_release(workshop.configure(), run.plan, run.snapshots, run.spec, run.pins)
    if how_far == "row":  # as if the process had ended before it moved the channel
        channels.restore(before)

    again = workshop.run(workshop.configure())

    assert again.spec.release == run.spec.release
    assert (again.release is None) == (how_far == "promoted")
    assert [one.id for one in workshop.store.all()] == [run.spec.release, first.id]
    assert workshop.store.channel().release == run.spec.release
    assert_whole(workshop.store, workshop.store.get(run.spec.release))


def test_tables_that_changed_after_staging_are_not_published(workshop, first):
    workshop.servers(workshop.named("one", "two"))
    run = workshop.run(workshop.configure(), "stage")
    spoilt = {
        **run.pins,
        "tools": replace(run.pins["tools"], version=first.tables["tools"].version),
    }
    fewer = {name: pin for name, pin in run.pins.items() if name != "agents"}
    gone = {**run.pins, "emb_full": replace(run.pins["emb_full"], version=99)}

    for pins, named in ((spoilt, "tools"), (fewer, "agents"), (gone, "emb_full")):
        with pytest.raises(PublishError, match=f"changed before it was published: {named}"):
            publish_release(workshop.configure(), run.plan, run.snapshots, run.spec, pins)

    assert [one.id for one in workshop.store.all()] == [first.id]
    assert workshop.store.channel().release == first.id
    assert workshop.run(workshop.configure()).release.id == run.spec.release


def test_returning_to_earlier_tools_publishes_the_earlier_release_intact(workshop, encoder):
    first = workshop.publish(workshop.named("one", "two")).release
    workshop.publish(workshop.named("one", "three"))

    back = workshop.publish(workshop.named("one", "two"))

    assert back.release == first
    assert back.encoded == 0
    assert len(workshop.store.all()) == 2
    assert workshop.store.channel().generation == 3
    assert_whole(workshop.store, workshop.store.get(first.id))
    assert pegboard.open(workshop.uri, encoder=encoder).search("two", 1)[0].tool.name == "two"


def test_a_retry_recognises_its_own_write_if_the_response_was_lost(workshop, first, monkeypatch):
    create = Tags.create
    merge_row = ReleaseStore._merge

    def create_and_fail(tags, tag, version):
        create(tags, tag, version)
        raise RuntimeError(f"Ref conflict error: tag {tag} already exists")

    def merge_and_lose(store, name, *arguments):
        return merge_row(store, name, *arguments) and name != "channels"

    monkeypatch.setattr(Tags, "create", create_and_fail)
    monkeypatch.setattr(ReleaseStore, "_merge", merge_and_lose)
    servers = {"git": [workshop.tool("only_now", "It is new.")]}

    release = workshop.publish(servers).release

    assert workshop.store.channel().release == release.id
    assert_whole(workshop.store, release)


def test_channels_are_published_to_separately(workshop, first):
    canary = workshop.publish(workshop.named("one", "two"), channel="canary").release

    channels = {channel.name: channel.release for channel in workshop.store.channels()}
    assert channels == {"live": first.id, "canary": canary.id}


def test_secrets_and_addresses_of_an_encoder_are_not_in_the_manifest(workshop):
    # of the built-in encoders that run here, the one with options
    settings = '[[indexes]]\nencoder = "local/minilm-tools-v1"\n'
    workshop.servers(workshop.named("one"))
    release = workshop.run(workshop.configure(settings)).release

    again = workshop.run(
        workshop.configure(f"{settings}options = {{ threads = 1, batch_size = 8 }}\n")
    )

    assert again.release is None  # what decides no vector changes nothing
    assert release.manifest["indexes"]["full"]["options"] == {}


def test_two_concurrent_runs_that_publish_the_same_tools_both_succeed(workshop, first):
    workshop.servers(workshop.named("one", "two"))
    runs = [workshop.run(workshop.configure(), "stage") for _ in range(2)]

    published = [
        publish_release(workshop.configure(), run.plan, run.snapshots, run.spec, run.pins)
        for run in runs
    ]

    channel = workshop.store.channel()
    assert [release.id for release in published] == [channel.release] * 2
    assert channel.generation == 2
    assert {release.id for release in workshop.store.all()} == {first.id, channel.release}
    assert_whole(workshop.store, workshop.store.get(channel.release))
