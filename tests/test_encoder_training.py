"""The data of the embedded encoder's training, as far as it goes without torch."""

import random
from collections import Counter

from benchmarks.encoder.batches import batches
from benchmarks.encoder.examples import EVALUATED, Example, grouped, written_requests


def test_no_written_request_is_for_a_catalog_that_is_evaluated():
    examples = list(written_requests())

    assert len(examples) > 4000
    assert [one.agent for one in examples if EVALUATED.search(one.agent)] == []
    assert [one for one in examples if not one.requests or not all(one.requests)] == []


def test_a_pass_shows_every_tool_once_and_whole_groups_together():
    groups = {
        agent: [
            Example(agent, f"{agent}_{n}", "Does it.", (), (f"{agent} {n} a", f"{agent} {n} b"))
            for n in range(size)
        ]
        for agent, size in (("files", 10), ("mail", 5), ("maps", 30))
    }

    every = list(batches(groups, {}, size=20, each=1, draw=random.Random(1)))

    documents = [text.split(". Does")[0] for batch in every for text in batch.documents]
    assert len(documents) == 45
    assert all(len(batch.requests) == len(batch.documents) for batch in every)
    names = Counter(text.split()[-2] for text in documents)
    assert names == {"files": 10, "mail": 5, "maps": 30}
    assert all(sum("mail" in text for text in batch.documents) in (0, 5) for batch in every)


def test_equal_tools_of_an_agent_are_one():
    twice = Example("mail", "send", "Sends.", (), ("send it",))

    assert grouped([twice, twice]) == {"mail": [twice]}
