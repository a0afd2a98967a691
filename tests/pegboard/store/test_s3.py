"""A board in an S3 bucket: the whole life of it, two publishers at once, and no secret anywhere."""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pegboard
from flows.reindex import reindex
from pegboard.cli.main import main
from pegboard.errors import PromotionConflict, PublishError, StoreError
from pegboard.store.releases import ReleaseStore
from tasks.lake import parquet
from tasks.lake.files import Lake
from tasks.lake.places import _StoredFile, place_at
from tasks.settings.configuration import KeepSettings, RunSettings
from tasks.steps.prune import prune_board
from tasks.steps.publish import publish_release
from tasks.steps.stage import stage_tables
from tests.children import end_child
from tests.pegboard.store.conftest import S3

pytestmark = pytest.mark.slow  # needs the emulator

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "query-the-lake.md"
FIRST = "Opens an issue in a repository."
SECOND = "Reports a bug in a repository."


def publish(workshop, configuration, description):
    tool = workshop.tool("create_issue", description)
    workshop.servers({"git": [tool, workshop.tool("merge_branch", "Merges a branch.")]})
    return workshop.run(configuration)


def description(board):
    (hit,) = board.search("an issue or a bug in a repository", k=1)
    return hit.tool.description


@pytest.fixture(params=["environment", "configuration"])
def board(request, s3, configured, keys, monkeypatch):
    """The configuration of a board in a new bucket, whose endpoint stands in the environment or in
    [board.storage].
    """
    uri = f"s3://{s3.bucket()}/boards/one"
    if request.param == "environment":
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
        return configured(uri)
    for name, value in zip(("THE_KEY", "THE_SECRET"), keys, strict=True):
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    references = {"aws_access_key_id": "${THE_KEY}", "aws_secret_access_key": "${THE_SECRET}"}
    return configured(uri, aws_endpoint=s3.endpoint, aws_region="us-east-1", **references)


def test_a_board_in_a_bucket_goes_through_its_whole_life_cycle(
    workshop, board, s3, keys, caplog, capsys
):
    caplog.set_level(logging.DEBUG)
    first = publish(workshop, board, FIRST)
    reader = pegboard.open(board.uri, refresh=0.0)
    assert description(reader) == FIRST
    second = publish(workshop, board, SECOND)
    assert second.encoded < first.encoded
    assert description(reader) == SECOND
    again = workshop.run(board)
    assert (again.pins, again.release) == (None, None)

    store = ReleaseStore(board.uri)
    assert store.rollback().release == first.release.id
    assert description(reader) == FIRST
    assert store.promote(second.release.id, "canary").release == second.release.id
    assert [release.id for release in store.all()] == [second.release.id, first.release.id]
    assert main(["releases", "list", "--board", board.uri, "--json"]) == 0

    objects = s3.contents(board.uri.split("/")[2])
    assert {path.split("/")[2] for path in objects} == {"lake", "tables"}
    shown = repr((store, store.database, Lake(board.uri), board, reader)) + caplog.text
    shown += capsys.readouterr().out
    for secret in keys:
        assert secret not in shown
        assert not [p for p, content in objects.items() if secret.encode() in p.encode() + content]


def test_workers_read_and_write_the_bucket_with_keys_of_their_own_environment(
    workshop, configured, s3, keys, monkeypatch
):
    for name, key in zip(("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"), keys, strict=True):
        monkeypatch.setenv(f"OWN_{name}", key)
        monkeypatch.delenv(f"AWS_{name}")
    monkeypatch.setattr("tasks.steps.embed.SHARD_TEXTS", 8)
    workshop.servers({"git": [workshop.tool(f"tool_{number}") for number in range(20)]})
    references = {
        "aws_endpoint": s3.endpoint,
        "aws_region": "us-east-1",
        "aws_access_key_id": "${OWN_ACCESS_KEY_ID}",
        "aws_secret_access_key": "${OWN_SECRET_ACCESS_KEY}",
    }
    outcomes = []
    for run in (RunSettings(), RunSettings(engine="processes", workers=2)):
        bucket = s3.bucket()
        configuration = configured(f"s3://{bucket}/board", **references)
        outcomes.append(reindex(configuration.model_copy(update={"run": run})))

    assert [outcome["outcome"] for outcome in outcomes] == ["published", "published"]
    assert [outcome["encoded"] for outcome in outcomes] == [21, 21]  # one is the agent's
    assert outcomes[0]["release"] == outcomes[1]["release"]


def test_the_lake_in_a_bucket_is_like_one_in_a_folder(board, tmp_path):
    vectors = np.random.default_rng(7).random((5000, 96), np.float32)
    wide = pl.DataFrame({"text_digest": [f"{i:05}" for i in range(5000)], "vector": vectors})
    file = "vectors/e/one.parquet"
    note = "vectors/note.json"
    for lake in (Lake(board.uri), Lake(str(tmp_path / "board"))):
        lake.write(file, wide)
        lake.write(file, wide.head(1))
        lake.write_json(note, {"a": "天気"})
        lake.write_json(note, {"b": 1})

        assert lake.read(file).equals(wide)
        for columns in (["text_digest"], ["vector", "text_digest"]):
            assert lake.read(file, columns).equals(wide.select(columns))
        assert lake.read_json(note) == {"b": 1}
        assert lake.files("vectors/e") == [file]
        assert lake.files("vectors", "json") == [note]
        assert sorted(lake.walk("vectors")) == sorted(lake.walk()) == [file, note]
        assert lake.walk()[file][0] > 5000 * 96 * 2
        assert [lake.files("vect"), lake.walk("vect")] == [[], {}]
        assert lake.read_json("none.json") is None
        with pytest.raises(StoreError, match=r"none\.parquet cannot be read") as error:
            lake.read("vectors/none.parquet", ["text_digest"])
        assert isinstance(error.value.__cause__, FileNotFoundError)
        lake.delete(file)
        lake.delete(file, note)
        assert lake.walk() == {}


def test_only_the_requested_columns_of_a_table_in_a_bucket_are_fetched(board, monkeypatch):
    lake = Lake(board.uri)
    noise = np.random.default_rng(7).random((20_000, 96), np.float32)
    keys = [f"{i:05}" for i in range(20_000)]
    lake.write("one.parquet", pl.DataFrame({"key": keys, "vector": noise}))
    fetched = []
    read = _StoredFile.read

    def counted(file, size=-1):
        content = read(file, size)
        fetched.append(len(content))
        return content

    monkeypatch.setattr(_StoredFile, "read", counted)
    assert lake.read("one.parquet", ["key"]).height == 20_000
    assert sum(fetched) < lake.walk()["one.parquet"][0] / 10
    assert len(fetched) < 10


def test_an_empty_table_file_in_a_bucket_counts_as_damaged(board):
    place = place_at(board.uri)
    place.put("empty.parquet", b"")

    with pytest.raises(parquet.Damage):
        place.table("empty.parquet", None)


def test_a_build_requests_an_immutable_file_once_and_a_pointer_at_each_use(board):
    row_set = f"documents/{'0' * 64}.json"
    layer = f"documents/layers/{'1' * 64}.parquet"
    large = f"documents/layers/{'2' * 64}.parquet"
    pointer = "documents/latest-kit.json"
    rows = pl.DataFrame({"key": ["a", "b"]})
    many_rows = pl.DataFrame({"noise": np.random.default_rng(7).random(20_000)})
    another_run = Lake(board.uri)
    for path in (row_set, pointer):
        another_run.write_json(path, {"edition": 1})
    another_run.write(layer, rows)
    another_run.write(large, many_rows)

    with Lake(board.uri).cached():
        for lake in (Lake(board.uri), Lake(board.uri)):
            assert [lake.exists(path) for path in (row_set, layer, large)] == [True, True, True]
            assert lake.read_json(row_set) == {"edition": 1}
            assert lake.read(layer, ["key"]).equals(rows)
            another_run.delete(row_set, layer)
        assert Lake(board.uri).read(large).equals(many_rows)
        another_run.write_json(pointer, {"edition": 2})
        assert Lake(board.uri).read_json(pointer) == {"edition": 2}

        Lake(board.uri).write_json(row_set, {"edition": 3})
        Lake(board.uri).delete(layer, large)
        assert Lake(board.uri).read_json(row_set) == {"edition": 3}
        assert [Lake(board.uri).exists(path) for path in (layer, large)] == [False, False]
        another_run.write_json(row_set, {"edition": 4})
    assert Lake(board.uri).read_json(row_set) == {"edition": 4}


def test_an_unchanged_build_of_a_board_in_a_bucket_makes_few_requests(
    workshop, configured, keys, monkeypatch, tmp_path, server, port
):
    log = tmp_path / "requests"
    own_port = port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(own_port)]
    process = server(command, own_port, log)
    endpoint = f"http://127.0.0.1:{own_port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    configuration = configured(f"s3://{S3(endpoint).bucket()}/board")
    settings = configuration.board.model_copy(update={"keep": KeepSettings()})
    configuration = configuration.model_copy(update={"board": settings})
    workshop.servers(workshop.named(*(f"tool_{number}" for number in range(163))))
    assert reindex(configuration)["outcome"] == "published"
    earlier = requests_of(log)

    assert reindex(configuration)["outcome"] == "unchanged"

    end_child(process)
    assert 0 < len(requests_of(log)) - len(earlier) <= 60


def requests_of(log):
    return [line for line in log.read_text(errors="replace").splitlines() if " HTTP/1.1" in line]


def test_the_public_tables_of_a_board_in_a_bucket_are_read_as_documented(
    workshop, configured, keys, s3, monkeypatch, capsys
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    configuration = configured(f"s3://{s3.bucket()}/board")
    releases = []
    for description in (FIRST, SECOND, f"{SECOND} Again."):
        workshop.servers({"git": [workshop.tool("create_issue", description)]})
        outcome = reindex(configuration)
        assert outcome["unfinished"] == {}
        releases.append(outcome["release"])
    keep = KeepSettings(releases=1, days=0, grace_hours=1)

    pruned = prune_board(configuration.uri, keep, datetime.now(UTC) + timedelta(hours=2))
    capsys.readouterr()
    code = PAGE.read_text("utf-8").rpartition("```python\n")[2].partition("```")[0]
    code = code.replace("s3://acme/pegboard", configuration.uri)
    exec(code.replace("http://minio.internal:9000", s3.endpoint), namespace := {})

    assert pruned.removed == (releases[0],)
    changes = namespace["history"].select("release", "change", "description").collect().rows()
    assert changes == [
        (releases[1], "new", SECOND),
        (releases[2], "changed", f"{SECOND} Again."),
    ]
    printed = capsys.readouterr().out
    assert releases[0] not in printed
    assert all(printed.count(release) == 2 for release in releases[1:])


def test_one_of_two_publishers_to_a_bucket_wins_and_the_other_gets_an_error(workshop, board):
    publish(workshop, board, FIRST)
    runs = []
    for name in "ab":
        tools = [
            workshop.tool("create_issue", f"Opens an issue for {name}."),
            workshop.tool(f"only_{name}", "It is new."),
        ]
        workshop.servers({"git": tools})
        runs.append(workshop.run(board, "embed"))

    def finish(run):
        try:
            pins = stage_tables(board.uri, run.spec)
            return publish_release(board, run.plan, run.snapshots, run.spec, pins).id
        except (PublishError, PromotionConflict):
            return None

    with ThreadPoolExecutor(2) as pool:
        published = [release for release in pool.map(finish, runs) if release]

    assert len(published) <= 1
    channel = ReleaseStore(board.uri).channel()
    assert channel.generation == 1 + len(published)
    hits = pegboard.open(board.uri).search("issue", k=5)
    tools = {hit.tool.name: hit.tool.description for hit in hits}
    if not published:
        assert tools == {"create_issue": FIRST, "merge_branch": "Merges a branch."}
        return
    assert channel.release == published[0]
    name = next(tool[-1] for tool in tools if tool.startswith("only_"))
    assert tools == {"create_issue": f"Opens an issue for {name}.", f"only_{name}": "It is new."}
