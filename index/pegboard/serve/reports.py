"""What a gateway reports of its requests, as far as it is configured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pegboard.serve.metrics import Metrics
from pegboard.serve.observer import Observer
from pegboard.serve.request_log import RequestLog
from pegboard.serve.settings import ServeSettings
from pegboard.serve.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Reports:
    """The observers of a gateway.

    Attributes:
        log: None if none is configured.
        observers: all of them.
    """

    metrics: Metrics
    log: RequestLog | None
    observers: tuple[Observer, ...]

    @classmethod
    def open(cls, settings: ServeSettings, base: Path) -> Self:
        """Open what `[serve]` configures; relative paths count from `base`.

        Raises:
            ConfigurationError: the request log cannot be written.
        """
        metrics = Metrics()
        log = RequestLog(base / settings.log) if settings.log is not None else None
        observers = (metrics, log, Tracing(texts=settings.trace_requests))
        return cls(metrics, log, tuple(one for one in observers if one is not None))

    def close(self) -> None:
        """Write what the log still holds."""
        if self.log is not None:
            self.log.close()
