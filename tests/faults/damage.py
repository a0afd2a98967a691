"""Damage to the files of a board, and what readers and builds make of it."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pegboard
from flows.reindex import reindex
from pegboard.errors import PegboardError
from tasks.settings.configuration import load_configuration

REQUESTS = ("open an issue in a repository", "weather forecast", "book a room", "money")
TRUNCATIONS = (0, 0.5, 0.99)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to a board of which one file was damaged."""

    file: str
    damage: str
    outcome: str
    message: str = ""


def damages(
    files: list[Path], flips: int, seed: int, sample: int | None = None
) -> Iterator[tuple[Path, str, bytes | None]]:
    """Yield a file, the name of its damage, and its content then; None if it is deleted.

    Args:
        sample: how many of the deletions and truncations are chosen; all if None.
    """
    chance = random.Random(seed)
    whole = [(file, part) for file in files for part in (None, *TRUNCATIONS)]
    for file, part in whole if sample is None else chance.sample(whole, sample):
        content = file.read_bytes()
        if part is None:
            yield file, "deleted", None
        else:
            yield file, f"truncated to {part:.0%}", content[: int(len(content) * part)]
    sized = [(file, file.stat().st_size) for file in files]
    for _ in range(flips):
        # Half of the flips by file, half by byte: small files matter as much as large ones.
        weights = [size if chance.random() < 0.5 else 1 for _, size in sized]
        file, size = chance.choices(sized, weights)[0]
        if size:
            place, bit = chance.randrange(size), chance.randrange(8)
            content = bytearray(file.read_bytes())
            content[place] ^= 1 << bit
            yield file, f"bit {bit} of byte {place} flipped", bytes(content)


def read_everything(uri: str) -> dict[str, Any]:
    """Return what a reader of the channel `live` retrieves from the board."""
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


def outcome(call: Callable[[], Any], expected: Any) -> tuple[str, str]:
    """Return what became of a call."""
    try:
        value = call()
    except PegboardError as error:
        return "error", f"{type(error).__name__}: {error}"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is none of Exception
        return "crash", f"{type(error).__name__}: {error}"
    return ("same", "") if value == expected else ("other", "")


def build_and_read(root: Path) -> dict[str, Any]:
    """Do a build of changed sources, and return what a reader retrieves then."""
    servers = root / "servers.json"
    tools = json.loads(servers.read_text("utf-8"))
    tools["git"]["tools"][0]["description"] += " It is urgent."
    servers.write_text(json.dumps(tools), "utf-8")
    reindex(load_configuration(root / "pegboard.toml"))
    content = read_everything(str(root / "board"))
    return {name: value for name, value in content.items() if name != "release"}


def damaged_outcomes(
    place: str, root: Path, flips: int, seed: int, sample: int | None = None
) -> Iterator[Outcome]:
    """Damage the files of `tables` or `lake` of the board below a folder, one at a time.

    Damaged tables are read; with a damaged lake the next build, of which every tool has a new
    description, is done and read.
    """
    kept = Path(shutil.copytree(root, root.with_name(f"{root.name}-kept")))
    folder, uri = root / "board" / place, str(root / "board")

    def use() -> Any:
        return read_everything(uri) if place == "tables" else build_and_read(root)

    def reset() -> None:
        if place == "lake":  # a reader changes nothing, a build does
            shutil.rmtree(root)
            shutil.copytree(kept, root)

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    expected = use()
    reset()
    for file, damage, content in damages(files, flips, seed, sample):
        whole = file.read_bytes()
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        kind, message = outcome(use, expected)
        yield Outcome(str(file.relative_to(folder)), damage, kind, message)
        reset()
        file.write_bytes(whole)
    shutil.rmtree(kept)
