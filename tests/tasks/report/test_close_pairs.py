"""Close pairs that are kept between reports are those that a look at all pairs finds."""

import random

import pytest

from pegboard.evaluation.collisions import collisions
from pegboard.search.loaded import IN_MEMORY_ROWS, LoadedRelease
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
from tasks.report import close_pairs as kept

WORDS = ("door", "window", "roof", "fence", "lamp", "chair", "table", "carpet")


@pytest.fixture
def compared(monkeypatch):
    """How many tools were compared with all, by look."""
    counts = list[int]()
    some, every = kept._pairs_with, kept.collisions

    def count_some(places, *rest):
        counts.append(len(places))
        return some(places, *rest)

    def count_every(loaded, *rest, **how):
        found = every(loaded, *rest, **how)
        counts.append(found.tools)
        return found

    monkeypatch.setattr(kept, "_pairs_with", count_some)
    monkeypatch.setattr(kept, "collisions", count_every)
    return counts


@pytest.mark.parametrize("shape", ["single", "multi"])
def test_after_changes_the_pairs_are_those_of_a_look_at_all(workshop, hashing, compared, shape):
    dice = random.Random(1)
    texts = {n: " ".join(dice.choices(WORDS, k=3)) for n in range(60)}
    for night in range(4):
        for _ in range(3 if night else 0):
            texts[dice.randrange(60)] = " ".join(dice.choices(WORDS, k=3))
        texts.pop(dice.choice(list(texts)), None)
        texts[100 + night] = "door window"
        tools = {"house": [workshop.tool(f"tool_{n}", text) for n, text in texts.items()]}
        workshop.servers(tools)
        index = f'[[indexes]]\nname = "full"\nencoder = "hashing/32"\nshape = "{shape}"\n'
        workshop.run(workshop.configure(index), encoder=hashing(32))
        store = ReleaseStore(workshop.uri)
        loaded = LoadedRelease(store, store.named("live"), IN_MEMORY_ROWS)

        found = kept.close_pairs(
            Lake(workshop.uri), loaded, "full", least=0.6, shown=20, store=True
        )

        assert found.total > 20
        assert found == collisions(loaded, "full", least=0.6, shown=20)
    assert compared[0] == 60
    assert all(count <= 5 for count in compared[1:])
    assert len(compared) == 4
