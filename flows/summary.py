"""What a run did: the results of its steps, the seconds of its phases, and its outcome."""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Literal

from pegboard.errors import PegboardError
from tasks.edges import Edges
from tasks.embed import EmbedResult
from tasks.enrich import Enriched
from tasks.enrichment.figures import EnrichmentEstimate
from tasks.filter import Filtered
from tasks.forecast import Forecast
from tasks.gate.decision import GateDecision
from tasks.lake.files import Lake
from tasks.plan import Plan
from tasks.prune import PruneResult
from tasks.report.storage import Report
from tasks.revise import Revision
from tasks.safety.capture import Suspicious
from tasks.settings.configuration import Configuration
from tasks.snapshot import Snapshot

logger = logging.getLogger(__name__)
Outcome = Literal["planned", "unchanged", "withdrawn", "held", "published"]


class RunSummary:
    """Filled step by step; `end` returns it as JSON values."""

    def __init__(self, configuration: Configuration) -> None:
        self.board = configuration.uri
        self.snapshots: list[Snapshot] = []
        self.plan: Plan | None = None
        self.revised: Revision | None = None
        self.estimate: EnrichmentEstimate | None = None
        self.forecast: Forecast | None = None
        self.enriched: Enriched | None = None
        self.filtered: Filtered | None = None
        self.edges: Edges | None = None
        self.advice: tuple[str, ...] = ()
        self.encoded = EmbedResult()
        self.suspicious: Suspicious = {}
        self.gated: GateDecision | None = None
        self.pruned: PruneResult | None = None
        self.report: Report | None = None
        self.unfinished: dict[str, str] = {}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Time a phase."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - start, 3)
            logger.info("%s took %.1f s", name, self.seconds[name])

    @contextmanager
    def afterwards(self, name: str) -> Generator[None]:
        """Record a failure of what follows the outcome, which no longer changes it."""
        try:
            yield
        except PegboardError as error:
            logger.warning("%s failed: %s", name, error)
            self.unfinished[name] = str(error)

    @property
    def held(self) -> bool:
        """Whether the gate holds the release."""
        return self.gated is not None and not self.gated.passed

    @cached_property
    def gate(self) -> dict[str, Any] | None:
        """What the gate measured and decided, as JSON values; None without a gate."""
        return Lake(self.board).read_json(self.gated.details) if self.gated is not None else None

    def end(self, outcome: Outcome, release: str | None = None) -> dict[str, Any]:
        """Return the whole run as JSON values.

        `problems` and `rejected` list what was left out of the release, and why; `unfinished` has
        the error of each step that failed after the outcome was decided.
        """
        assert self.plan is not None
        assert self.revised is not None
        return {
            "outcome": outcome,
            "board": self.board,
            "release": release or self.plan.live,
            "encoded": self.encoded.texts,
            "truncated": self.encoded.truncated,
            "plan": self.plan.to_dict(),
            "catalogs": {
                snapshot.catalog: {
                    "tools": snapshot.tools,
                    "agents": snapshot.agents,
                    "rejected": len(snapshot.rejected),
                    "kept": list(snapshot.kept),
                    "problems": list(snapshot.problems),
                }
                for snapshot in self.snapshots
            },
            "rejected": [
                {"catalog": row.catalog, "where": row.where, "why": row.why}
                for row in (
                    *(row for snapshot in self.snapshots for row in snapshot.rejected),
                    *self.revised.quarantined,
                )
            ],
            "edges": self.edges.to_dict() if self.edges else None,
            "gate": self.gate,
            "overridden": list(self.revised.applied),
            "held_out": self.revised.held_out,
            "enrichment": self._enrichment(),
            "forecast": self.forecast.to_dict() if self.forecast else None,
            "filter": self.filtered.to_dict() if self.filtered else None,
            "pruned": self.pruned.to_dict() if self.pruned else None,
            "report": self.report.to_dict() if self.report else None,
            "unfinished": self.unfinished,
            "problems": [*self.revised.problems, *self._enrichment_problems()],
            "advice": list(self.advice),
            "suspicious": self.suspicious,
            "seconds": self.seconds,
        }

    def _enrichment(self) -> dict[str, Any] | None:
        """The estimate, and after a run the actual figures; None without an LLM."""
        if self.enriched is None:
            return {"estimate": self.estimate.to_dict()} if self.estimate else None
        return {
            "estimate": self.enriched.estimate,
            "actual": self.enriched.actual,
            "stopped": self.enriched.stopped,
        }

    def _enrichment_problems(self) -> list[str]:
        if self.enriched is None:
            return []
        last = [self.enriched.stopped, self.filtered.problem if self.filtered else ""]
        return [*self.enriched.problems, *filter(None, last)]
