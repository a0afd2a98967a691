"""A runner that reports when each step begins and ends, so that a test can record it or wait."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flows.runner import Runner


class StepEvents:
    """Has another runner call the steps. Calls of one step at the same time count as one step.

    Args:
        runner: who calls the steps: `DirectRunner`, or the runner of a Prefect flow.
        report: called with `begin STEP` and no results, then with `end STEP` and the results of all
            calls of the step. The run goes on when it returns, and ends with what it raises.
    """

    def __init__(self, runner: Runner, report: Callable[[str, Sequence[Any]], None]) -> None:
        self._runner, self._report = runner, report

    def call(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._report(f"begin {step.__name__}", ())
        result = self._runner.call(step, *args, **kwargs)
        self._report(f"end {step.__name__}", (result,))
        return result

    def each(self, calls: Sequence[partial[Any]], at_once: int) -> list[Any]:
        if not calls:
            return []
        name = calls[0].func.__name__
        self._report(f"begin {name}", ())
        results = self._runner.each(calls, at_once)
        self._report(f"end {name}", results)
        return results
