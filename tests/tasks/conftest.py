"""What the tests of steps share: `snapshots` lists catalogs, `written` stores enrichments."""

import pytest

from tasks.enrichment.enrichment_sets import write_enrichments
from tasks.snapshot import take_snapshot


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
        return write_enrichments(workshop.lake, "enriched", tools or {}, agents or {}).path

    return write
