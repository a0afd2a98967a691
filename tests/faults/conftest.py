"""A publisher of a board of its own, and a check that what is live is whole."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pegboard
from pegboard.store.database import open_table
from pegboard.store.verify import verify_release
from tests.faults import world
from tests.faults.processes import Publisher


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[Callable[..., Publisher]]:
    """Start the publisher of a new board; the argument is what stands under [board]."""
    started: list[Publisher] = []

    def start(keep: str = "") -> Publisher:
        folder = tmp_path / f"board-{len(started)}"
        folder.mkdir()
        started.append(Publisher(folder, keep))
        return started[-1]

    yield start
    for publisher in started:
        publisher.close()


@pytest.fixture(scope="session")
def whole() -> Callable[[Publisher, set[int]], int]:
    """Check that the live release verifies, and that every table and mode shows one of the allowed
    states; returns which.
    """

    def check(publisher: Publisher, allowed: set[int]) -> int:
        store = publisher.store
        release = store.get(store.channel().release)
        report = verify_release(store, release)
        assert not report.problems, report.problems
        n = publisher.states()[release.id]
        assert n in allowed
        content = world.content(n)

        def rows(name: str, *columns: str) -> list[dict[str, str]]:
            pin = release.tables[name]
            table = open_table(store.database, pin.table, store.uri, pin.version)
            return table.search().select(list(columns)).limit(1_000).to_list()

        tools = {row["id"]: row["description"] for row in rows("tools", "id", "description")}
        assert tools == content
        for name in ("emb_full", "emb_fine"):
            assert {row["tool"] for row in rows(name, "tool", "text")} == set(content)
        board = pegboard.open(publisher.uri)
        for tool in range(0, world.TOOLS, 5):
            for mode in ("hybrid", "vector", "text"):
                hits = board.search(f"handle {world.WORDS[tool]}", 5, mode=mode)
                world.check_hits(tool, n, [hit.tool.id for hit in hits])
        return n

    return check
