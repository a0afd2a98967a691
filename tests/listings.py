"""What the lake has of a catalog, for tests of listings."""

from types import SimpleNamespace

from tasks.lake.snapshot_rows import agents_of, tools_of


def listing_of(lake, **snapshots):
    """Return the agents and the tools of snapshots, the digest of each given by its catalog."""
    return SimpleNamespace(agents=agents_of(lake, snapshots), tools=tools_of(lake, snapshots))
