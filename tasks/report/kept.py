"""Where a board's reports lie, `reports/<release>.html` and `.json`; and which of them go, since
their releases went.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from tasks.lake.files import Lake
from tasks.lake.orphans import Leftovers


class Reports(Lake):
    """The folder of a board's reports, written and read like the lake."""

    def __init__(self, uri: str) -> None:
        self.uri = f"{uri.rstrip('/')}/reports"


def remove_reports(
    uri: str, releases: Collection[str], *, before: datetime, dry_run: bool = False
) -> Leftovers:
    """Remove the reports on releases that are no more, as far as they were written before a moment.

    Args:
        releases: the ids of those that stay.
    """
    reports, now = Reports(uri), datetime.now(UTC)
    gone = {
        path: size
        for path, (size, age) in reports.walk().items()
        if path.split(".")[0] not in releases and now - timedelta(seconds=age) <= before
    }
    if not dry_run:
        for path in gone:
            reports.delete(path)
    return Leftovers(len(gone), sum(gone.values()))
