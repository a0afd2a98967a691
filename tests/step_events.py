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
        self._runner = runner
        self._report = report

    def phase(self, phase: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._runner.phase(phase, *args, **kwargs)

    def call(self, step: partial[Any], **inputs: Any) -> Any:
        name = step.func.__name__
        self._report(f"begin {name}", ())
        result = self._runner.call(step, **inputs)
        self._report(f"end {name}", (result,))
        return result

    def each(self, steps: Sequence[partial[Any]], at_once: int, **inputs: Any) -> list[Any]:
        if not steps:
            return []
        name = steps[0].func.__name__
        self._report(f"begin {name}", ())
        results = self._runner.each(steps, at_once, **inputs)
        self._report(f"end {name}", results)
        return results
