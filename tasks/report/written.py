"""The report of a release as files of the board: `reports/<release>.html` and `.json`, in a folder
or in an object store alike.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pegboard.errors import StoreError
from pegboard.store.database import public_uri
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import Lake
from tasks.report.gathered import report_data
from tasks.report.kept import Reports
from tasks.report.page import page, vega, vega_digest
from tasks.settings.configuration import Configuration

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written:
    """Where a report lies; or, without one, why not.

    Attributes:
        html, json: addresses of the page and of its values.
        bytes: of the page.
        title, says: the headline and why, in words.
        measures: the rows of the configuration that is the default.
    """

    html: str | None = None
    json: str | None = None
    bytes: int = 0
    title: str = ""
    says: str = ""
    measures: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Where it lies, as JSON values."""
        return {name: getattr(self, name) for name in ("html", "json", "bytes", "problem")}

    def markdown(self) -> str:
        """The headline, the measures and where the page is, for whoever looks at a run
        elsewhere.
        """
        if self.problem:
            return f"# No report\n\n{self.problem}"
        rows = [
            f"| {row['measure']} | {row['value']:.3f} | {row['low']:.3f} – {row['high']:.3f} |"
            for row in self.measures
        ]
        table = ["", "| measure | mean | 95 % interval |", "|---|---|---|", *rows] if rows else []
        return "\n".join(
            [
                f"# {self.title}",
                "",
                self.says,
                *table,
                "",
                f"Page: `{self.html}`",
                "",
                f"JSON: `{self.json}`",
            ]
        )


def report_release(
    configuration: Configuration, release: str, run: dict[str, Any] | None = None
) -> Written:
    """Write the report. A failure is returned in `problem` instead of raised, since the release is
    published by then.
    """
    try:
        return write_report(configuration, release, run)
    except (
        Exception
    ) as error:  # numbers of any kind are drawn by several libraries: none of them may fail a run
        logger.warning(
            "There is no report on release %s: %s",
            release,
            error,
            exc_info=not isinstance(error, StoreError),
        )
        problem = (
            f"{type(error).__name__}: {error} `pegboard report --release {release}` tries again."
        )
        return Written(problem=problem)


def write_report(
    configuration: Configuration, release: str, run: Mapping[str, Any] | None = None
) -> Written:
    """Gather what is known of a release and write its page and its JSON, replacing those that are
    there.

    Args:
        run: what `RunSummary.end` said of the run that made it; without it what an earlier report
            remembers of that.

    Raises BoardNotFound if there is no such release, StoreError if the store refuses.
    """
    return make_report(configuration.uri, release, run)[0]


def make_report(
    uri: str, release: str, run: Mapping[str, Any] | None = None, *, store: bool = True
) -> tuple[Written, dict[str, Any], str]:
    """The report on a release of the board at `uri`: where it was written, its values, and its
    page.

    Args:
        store: write it into the board.
    """
    reports, name = Reports(uri), ReleaseStore(uri).get(release).id
    data = report_data(uri, name, run, None if run else _earlier(reports, name))
    text = page(data, _library(Lake(uri), keep=store))
    if store:
        reports.write_json(f"{name}.json", data)
        reports.write_text(f"{name}.html", text)
    chosen = data["gate"].get("chosen") or {}
    shown = public_uri(reports.uri)
    written = Written(
        html=f"{shown}/{name}.html" if store else None,
        json=f"{shown}/{name}.json" if store else None,
        bytes=len(text.encode()),
        title=data["verdict"]["title"],
        says=data["verdict"]["says"],
        measures=tuple(
            row
            for row in data["measures"]["rows"]
            if (row["strategy"], row["index"]) == (chosen.get("strategy"), chosen.get("index"))
        ),
    )
    return written, data, text


def _library(lake: Lake, *, keep: bool) -> str:
    """The plotting library for a page, which the lake remembers: to bundle it takes 3 s."""
    path = f"charts/{vega_digest()}.js"
    if lake.exists(path):
        return lake.read_text(path)
    if keep:
        lake.write_text(path, vega())
    return vega()


def _earlier(reports: Reports, release: str) -> dict[str, Any] | None:
    try:
        earlier = reports.read_json(f"{release}.json")
    except (StoreError, json.JSONDecodeError):
        return None
    return earlier if isinstance(earlier, dict) else None  # pyright: ignore[reportUnknownVariableType]
