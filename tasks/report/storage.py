"""Store the reports of a board as `reports/<release>.html` and `.json`, on disk or in a bucket."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pegboard.errors import StoreError
from pegboard.store.database import public_uri
from pegboard.store.releases import ReleaseStore
from tasks.report.data import Reports, report_data
from tasks.report.page import report_page
from tasks.settings.configuration import Configuration

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """A report, or the problem because of which there is none.

    Attributes:
        html, json: addresses of the page and of its values; None if they were not stored.
        bytes: size of the page in bytes.
        title, says: the headline and its reason.
        problem: why there is no report; empty if there is one.
    """

    html: str | None = None
    json: str | None = None
    bytes: int = 0
    title: str = ""
    says: str = ""
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the addresses, the size and the problem as JSON values."""
        return {name: getattr(self, name) for name in ("html", "json", "bytes", "problem")}


def report_release(
    configuration: Configuration, release: str, outcome: dict[str, Any] | None = None
) -> Report:
    """Write the report of a published release; a failure is returned in `problem`.

    Args:
        outcome: the outcome of the run that made it.
    """
    try:
        return make_report(configuration.uri, release, outcome)[0]
    except Exception as error:  # No library that the page needs may fail a run.
        is_unexpected = not isinstance(error, StoreError)
        logger.warning("No report on release %s: %s", release, error, exc_info=is_unexpected)
        retry = f"`pegboard report --release {release}` tries again."
        return Report(problem=f"{type(error).__name__}: {error} {retry}")


def has_report(uri: str, release: str) -> bool:
    """Return whether the board at `uri` has the page of a release."""
    return Reports(uri).exists(f"{release}.html")


def make_report(
    uri: str, release: str, outcome: Mapping[str, Any] | None = None, *, store: bool = True
) -> tuple[Report, dict[str, Any], str]:
    """Return the report on a release, its values, and its page.

    Args:
        uri: the board.
        outcome: the outcome of the run that made the release; by default the values of that run in
            an earlier report are used.
        store: write the report to the board, replacing an earlier one.

    Raises:
        BoardNotFound: there is no such release.
        StoreError: the store fails.
    """
    reports = Reports(uri)
    name = ReleaseStore(uri).get(release).id
    data = report_data(uri, name, outcome)
    html = report_page(data)
    if store:
        reports.write_json(f"{name}.json", data)
        reports.write_text(f"{name}.html", html)
    address = f"{public_uri(reports.uri)}/{name}" if store else None
    report = Report(
        html=f"{address}.html" if address else None,
        json=f"{address}.json" if address else None,
        bytes=len(html.encode()),
        title=data["verdict"]["title"],
        says=data["verdict"]["says"],
    )
    return report, data, html


def remove_reports(
    uri: str, releases: Collection[str], *, before: datetime, dry_run: bool = False
) -> int:
    """Remove old reports on other releases, and return their bytes.

    Args:
        releases: ids of the releases whose reports are kept.
        before: only reports that were written before this time, with a time zone, are removed.
    """
    reports = Reports(uri)
    now = datetime.now(UTC)
    removed = {
        path: size
        for path, (size, age) in reports.walk().items()
        if path.split(".")[0] not in releases and now - timedelta(seconds=age) <= before
    }
    if not dry_run:
        reports.delete(*removed)
    return sum(removed.values())
