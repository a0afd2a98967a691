"""A damaged file of a board is harmless, or a clear error; never other answers or a traceback."""

import json
import logging
import os
import random
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

import pegboard
from flows.reindex import reindex
from pegboard.errors import PegboardError, StoreError
from pegboard.store.releases import ReleaseStore
from pegboard.store.verify import verify_release
from tasks.settings.configuration import load_configuration

SIZE = "full" if os.environ.get("PEGBOARD_TEST_SIZE") == "full" else "small"
# Flipped bits, and how many of the deletions and truncations; all if None.
DAMAGES = {
    "full": {"tables": (2000, None), "lake": (400, None)},
    "small": {"tables": (60, 90), "lake": (4, 12)},
}
REQUESTS = ("open an issue in a repository", "weather forecast", "book a room", "money")
TRUNCATIONS = (0, 0.5, 0.99)


@pytest.fixture(scope="module")
def built(tmp_path_factory, workshop_type):
    """A folder with a pegboard.toml and its board, of two releases."""
    workshop = workshop_type(tmp_path_factory.mktemp("built"))
    workshop.run(workshop.full())
    servers = json.loads((workshop.folder / "servers.json").read_text("utf-8"))
    servers["git"]["tools"].append(workshop.tool("close_issue", "Closes an issue."))
    workshop.write("servers.json", servers)
    workshop.run(load_configuration(workshop.folder / "pegboard.toml"))
    return workshop.folder


@pytest.fixture(scope="module")
def sound(built, tmp_path_factory):
    """What the next build makes of the board where nothing is damaged."""
    return build_and_read(Path(shutil.copytree(built, tmp_path_factory.mktemp("sound") / "copy")))


@pytest.fixture
def root(built, tmp_path):
    return Path(shutil.copytree(built, tmp_path / "copy"))


def read_everything(uri):
    """What a reader of the channel `live` retrieves from the board."""
    with pegboard.open(uri, refresh=0) as board:
        return {
            "release": board.release.id,
            "hits": [
                [(asdict(hit.tool), hit.score, hit.agent.id) for hit in hits]
                for request in REQUESTS
                for mode in ("vector", "text", "hybrid")
                for index in sorted(board.release.manifest["indexes"])
                for hits in [board.search(request, mode=mode, index=index, k=20)]
            ],
            "agents": [asdict(agent) for agent in board.list_agents()],
            "tools": [asdict(tool) for tool in board.list_tools()],
            "by_agent": [
                (hit.agent.id, hit.score)
                for request in REQUESTS
                for hit in board.search_agents(request)
            ],
            "edges": list(map(str, board.graph.edges)),
        }


def build_and_read(root):
    """Do a build of changed sources: what a reader retrieves then."""
    servers = root / "servers.json"
    tools = json.loads(servers.read_text("utf-8"))
    tools["git"]["tools"][0]["description"] += " It is urgent."
    servers.write_text(json.dumps(tools), "utf-8")
    reindex(load_configuration(root / "pegboard.toml"))
    content = read_everything(str(root / "board"))
    return {name: value for name, value in content.items() if name != "release"}


def damages(files, flips, sample):
    """Yield a file, the name of its damage, and its content then; None if it is deleted."""
    chance = random.Random(1)
    whole = [(file, part) for file in files for part in (None, *TRUNCATIONS)]
    for file, part in whole if sample is None else chance.sample(whole, sample):
        content = file.read_bytes()
        if part is None:
            yield file, "deleted", None
        else:
            yield file, f"truncated to {part:.0%}", content[: int(len(content) * part)]
    sized = [(file, size) for file in files if (size := file.stat().st_size)]
    for _ in range(flips):
        # Half of the flips by file, half by byte: small files matter as much as large ones.
        weights = [size if chance.random() < 0.5 else 1 for _, size in sized]
        file, size = chance.choices(sized, weights)[0]
        place = chance.randrange(size)
        bit = chance.randrange(8)
        content = bytearray(file.read_bytes())
        content[place] ^= 1 << bit
        yield file, f"bit {bit} of byte {place} flipped", bytes(content)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("place", ["tables", "lake"])
def test_whatever_is_damaged_is_harmless_or_a_clear_error(root, place):
    """Damaged tables are read; with a damaged lake the next build, of which every tool has a new
    description, is done and read.
    """
    kept = shutil.copytree(root, root.with_name("kept"))
    folder = root / "board" / place
    uri = str(root / "board")

    def use():
        return read_everything(uri) if place == "tables" else build_and_read(root)

    def reset():
        if place == "lake":  # a reader changes nothing, a build does
            shutil.rmtree(root)
            shutil.copytree(kept, root)

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    expected = use()
    reset()
    for file, damage, content in damages(files, *DAMAGES[SIZE][place]):
        whole = file.read_bytes()
        name = str(file.relative_to(folder))
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        message = None
        try:
            assert use() == expected
        except PegboardError as error:
            message = str(error)
        except BaseException as error:  # a panic of Rust is none of Exception
            error.add_note(f"{name}, {damage}")
            raise
        if message is not None:
            assert place == "tables", (name, damage, message)  # a damaged lake costs no build
            assert name.split(".lance")[0].split("/")[-1] in message, (name, damage)
            assert "`pegboard " in message, (name, damage)
        reset()
        file.write_bytes(whole)


def flip(folder, pattern, text):
    """Flip a bit of a text in the files of a folder that hold it."""
    files = [path for path in folder.glob(pattern) if text in path.read_bytes()]
    assert files, (pattern, text)
    for path in files:
        content = bytearray(path.read_bytes())
        content[content.index(text)] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("rows", [50_000, 0])
def test_a_reader_refuses_a_tool_that_is_not_as_it_was_published(root, rows):
    uri = str(root / "board")
    expected = read_everything(uri)
    flip(root / "board" / "tables", "tools.lance/data/*", b"Deletes a repository for good.")

    with pytest.raises(StoreError, match=r"'tools' of release .* is damaged: .*pegboard build"):
        pegboard.open(uri, in_memory_rows=rows).search("delete a repository", k=20)
    build_and_read(root)
    release = ReleaseStore(uri).get(expected["release"])
    assert verify_release(ReleaseStore(uri), release).problems  # it pins the version as it was
    store = ReleaseStore(uri)
    assert not verify_release(store, store.get(store.channel().release)).problems


def test_a_reader_refuses_a_vector_that_is_not_as_it_was_published(root, encoder):
    uri = str(root / "board")
    table = ReleaseStore(uri).database.open_table("emb_full")
    vector = table.search().limit(1).to_arrow().column("vector").combine_chunks()
    flip(root / "board" / "tables", "emb_full.lance/data/*", vector.flatten().to_numpy().tobytes())
    board = pegboard.open(uri, encoder=encoder)

    with pytest.raises(StoreError, match=r"'emb_full' .* is damaged: its columns vector differ"):
        board.search("an issue", index="full")
    assert board.search("an issue", index="fine")


def test_a_damaged_release_is_named_and_recorded_again_by_the_next_build(root, caplog):
    uri = str(root / "board")
    live = ReleaseStore(uri).channel().release
    expected = read_everything(uri)
    flip(root / "board" / "tables", "releases.lance/data/*", live.encode())

    for call in (ReleaseStore(uri).all, lambda: pegboard.open(uri, release=f"{live:.6}")):
        with pytest.raises(StoreError, match=r"of table 'releases' .* is damaged.*pegboard build"):
            call()
    with caplog.at_level(logging.WARNING):
        reindex(load_configuration(root / "pegboard.toml"))
    assert "of table 'releases'" in caplog.text
    assert read_everything(uri) == expected
    assert ReleaseStore(uri).get(live).id == live


def test_a_damaged_channel_is_named_and_moved_again_by_hand(root):
    store = ReleaseStore(str(root / "board"))
    release = store.channel().release
    flip(root / "board" / "tables", "channels.lance/data/*", release.encode())

    with pytest.raises(StoreError, match=r"row 'live' of table 'channels' .* `pegboard promote"):
        pegboard.open(store.uri)
    ReleaseStore(store.uri).promote(release)  # a store remembers rows that it has read
    assert pegboard.open(store.uri).release.id == release


def test_a_channel_never_goes_back_in_silence(root, encoder):
    uri = str(root / "board")
    board = pegboard.open(uri, refresh=0, encoder=encoder)
    release = board.release.id
    min((root / "board/tables/channels.lance/_versions").glob("*.manifest")).unlink()

    assert board.release.id == release
    match = "Version 3 of table 'channels' .* is missing.*`pegboard promote RELEASE`"
    with pytest.raises(StoreError, match=match):
        pegboard.open(uri)
    assert "of table 'channels'" in board.status().error
    ReleaseStore(uri).promote(release)
    assert pegboard.open(uri).release.id == release
    assert board.release.id == release
    assert board.status().error is None


@pytest.mark.parametrize(
    "pattern",
    [
        "vectors/*/*.parquet",
        "snapshots/kit/layers/*",
        "snapshots/*/latest.json",
        "documents/*.json",
    ],
)
def test_a_damaged_lake_costs_what_is_made_again_and_not_the_build(sound, root, pattern):
    damaged = list((root / "board" / "lake").glob(pattern))
    assert damaged
    for path in damaged:
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 4
        path.write_bytes(content)

    assert build_and_read(root) == sound
    store = ReleaseStore(str(root / "board"))
    assert not verify_release(store, store.get(store.channel().release)).problems
