"""A board in an S3 bucket: the whole life of it, two publishers at once, and no secret anywhere."""

import json
import logging
from contextlib import ExitStack

import numpy as np
import polars as pl
import pytest

import pegboard
from pegboard.cli.main import main
from pegboard.errors import BoardNotFound, StoreError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
from tests.rival import Rival

pytestmark = pytest.mark.slow  # needs the emulator

FIRST = {
    "git": [
        ("create_issue", "Opens an issue in a repository."),
        ("merge_branch", "Merges a branch."),
    ]
}
SECOND = {
    "git": [
        ("create_issue", "Reports a bug in a repository."),
        ("merge_branch", "Merges a branch."),
    ]
}


def publish(workshop, configuration, servers, **how):
    workshop.servers(
        {name: [workshop.tool(*one) for one in tools] for name, tools in servers.items()}
    )
    return workshop.run(configuration, **how)


def names(board, request):
    return [hit.tool.name for hit in board.search(request, k=1)]


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
    return configured(
        uri,
        aws_endpoint=s3.endpoint,
        aws_region="us-east-1",
        aws_access_key_id="${THE_KEY}",
        aws_secret_access_key="${THE_SECRET}",
    )


def test_a_board_lives_its_whole_life_in_a_bucket(workshop, board, s3, keys, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    one = publish(workshop, board, FIRST)
    reader = pegboard.open(board.uri, refresh=0.0)
    assert names(reader, "open an issue in a repository") == ["create_issue"]
    assert reader.search("open an issue", k=1)[0].tool.description.startswith("Opens")

    two = publish(workshop, board, SECOND)
    assert two.encoded < one.encoded
    assert reader.search("open an issue", k=1)[0].tool.description.startswith("Reports")
    again = workshop.run(board)
    assert (again.pins, again.release) == (None, None)

    store = ReleaseStore(board.uri)
    assert store.rollback().release == one.release.id
    assert reader.search("open an issue", k=1)[0].tool.description.startswith("Opens")
    assert store.promote(two.release.id, "canary").release == two.release.id
    assert [release.id for release in store.all()] == [two.release.id, one.release.id]
    assert main(["releases", "list", "--board", board.uri, "--json"]) == 0

    written = s3.contents(board.uri.split("/")[2])
    assert {path.split("/")[2] for path in written} == {"lake", "tables"}
    shown = (
        caplog.text
        + capsys.readouterr().out
        + repr((store, store.database, Lake(board.uri), board, reader))
    )
    for secret in keys:
        assert not [
            path
            for path, content in written.items()
            if secret.encode() in content or secret in path
        ]
        assert secret not in shown


def test_where_there_is_no_board_that_is_said_and_not_that_the_store_is_broken(
    s3, keys, monkeypatch, capsys
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    uri = f"s3://{s3.bucket()}/nothing"

    with pytest.raises(BoardNotFound, match=f"There is no board at {uri}"):
        ReleaseStore(uri).all()
    with pytest.raises(BoardNotFound, match=f"There is no board at {uri}"):
        pegboard.open(uri)
    assert main(["search", "anything", "--board", uri]) == 4
    assert "There is no board" in capsys.readouterr().err


def test_the_lake_in_a_bucket_is_like_one_in_a_folder(board, tmp_path):
    wide = pl.DataFrame(
        {
            "text_digest": [f"{i:05}" for i in range(5000)],
            "vector": np.random.default_rng(7).random((5000, 96), np.float32),
        }
    )
    for lake in (Lake(board.uri), Lake(str(tmp_path / "board"))):
        lake.write("vectors/e/one.parquet", wide)
        lake.write("vectors/e/one.parquet", wide.head(1))
        lake.write_json("vectors/note.json", {"a": "天気"})
        lake.write_json("vectors/note.json", {"b": 1})

        assert lake.read("vectors/e/one.parquet").equals(wide)
        assert lake.read("vectors/e/one.parquet", ["text_digest"]).equals(
            wide.select("text_digest")
        )
        assert lake.read("vectors/e/one.parquet", ["vector", "text_digest"]).equals(
            wide.select("vector", "text_digest")
        )
        assert lake.read_json("vectors/note.json") == {"b": 1}
        assert (lake.files("vectors/e"), lake.files("vectors", "json")) == (
            ["vectors/e/one.parquet"],
            ["vectors/note.json"],
        )
        assert (lake.folders("vectors"), lake.folders(), lake.folders("none")) == (
            ["vectors/e"],
            ["vectors"],
            [],
        )
        walked = lake.walk("vectors")
        assert sorted(walked) == ["vectors/e/one.parquet", "vectors/note.json"]
        assert walked["vectors/e/one.parquet"][0] > 5000 * 96 * 2
        assert sorted(lake.walk()) == sorted(walked)
        assert (lake.walk("vect"), lake.files("vect"), lake.read_json("none.json")) == (
            {},
            [],
            None,
        )
        with pytest.raises(StoreError, match=r"none\.parquet cannot be read") as error:
            lake.read("vectors/none.parquet", ["text_digest"])
        assert isinstance(error.value.__cause__, FileNotFoundError)
        lake.delete("vectors/e/one.parquet")
        lake.delete("vectors/e/one.parquet")
        assert not lake.exists("vectors/e/one.parquet")


def test_of_a_wide_table_in_a_bucket_only_the_wanted_columns_are_fetched(board, monkeypatch):
    from tasks.lake import places

    lake = Lake(board.uri)
    noise = np.random.default_rng(7).random((20_000, 96), np.float32)
    lake.write(
        "one.parquet", pl.DataFrame({"key": [f"{i:05}" for i in range(20_000)], "vector": noise})
    )
    fetched, read = [], places._Ranges.read

    def counted(self, size=-1):
        content = read(self, size)
        fetched.append(len(content))
        return content

    monkeypatch.setattr(places._Ranges, "read", counted)
    assert lake.read("one.parquet", ["key"]).height == 20_000
    assert sum(fetched) < lake.walk()["one.parquet"][0] / 10
    assert len(fetched) < 10


def test_of_two_publishers_to_one_bucket_one_wins_and_the_other_gets_an_error(
    workshop, board, tmp_path
):
    publish(workshop, board, FIRST)
    with ExitStack() as stack:
        rivals = []
        for me in "ab":
            folder = tmp_path / me
            folder.mkdir()
            (folder / "pegboard.toml").write_text((tmp_path / "pegboard.toml").read_text())
            tools = [
                workshop.tool("create_issue", f"Opens an issue for {me}."),
                workshop.tool(f"only_{me}", "It is new."),
            ]
            (folder / "servers.json").write_text(json.dumps({"git": {"tools": tools}}))
            rivals.append(stack.enter_context(Rival(folder / "pegboard.toml")))
            rivals[-1].start()
        for rival in rivals:
            rival.wait_until_planned()
        for rival in rivals:
            rival.publish()
        outcomes = [rival.outcome() for rival in rivals]

    published = [detail for how, detail in outcomes if how == "published"]
    assert {how for how, _ in outcomes} <= {"published", "PublishError", "PromotionConflict"}, (
        outcomes
    )
    assert len(published) <= 1, outcomes
    store = ReleaseStore(board.uri)
    assert store.channel().generation == 1 + len(published)
    live = pegboard.open(board.uri)
    tools = {hit.tool.name: hit.tool.description for hit in live.search("issue", k=5)}
    if published:
        assert store.channel().release == published[0]
        me = next(name[-1] for name in tools if name.startswith("only_"))
        assert tools == {"create_issue": f"Opens an issue for {me}.", f"only_{me}": "It is new."}
    else:
        assert tools == dict(FIRST["git"])
