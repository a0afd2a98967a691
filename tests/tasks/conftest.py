"""What the tests of steps share: `snapshots` lists catalogs, `written` stores enrichments."""

import pytest

from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.steps import maintain
from tasks.steps.snapshot import take_snapshot


@pytest.fixture
def large_from(monkeypatch):
    """A function that sets the rows from which a table has a vector index, and the rows of one of
    its partitions.
    """

    def large_from(rows, partition):
        monkeypatch.setattr(maintain, "IN_MEMORY_ROWS", rows)
        monkeypatch.setattr(maintain, "PARTITION_ROWS", partition)

    return large_from


@pytest.fixture
def snapshots(workshop):
    """A function that lists all catalogs of a configuration: catalog -> digest."""

    def take(configuration=None):
        configuration = configuration or workshop.configure()
        return {
            catalog: take_snapshot(configuration, catalog).digest
            for catalog in configuration.catalogs
        }

    return take


@pytest.fixture
def written(workshop):
    """A function that stores what an LLM wrote about tools and agents, and returns the folder."""

    def write(tools=None, agents=None):
        return write_enrichments(workshop.lake, tools or {}, agents or {})

    return write
