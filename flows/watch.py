"""The watch: which sources changed since they were published. `flows/prefect/flows.py` emits an
event for each of them.

A watch compares with what was published, not with what an earlier watch saw: until the run that an
event started has published, the next watch emits the same event again. That repeats a run that
failed, or an event that was lost, and costs at most a run that finds nothing to do."""

from functools import partial

from flows.artifacts import sources_artifact
from flows.reindex import SOURCES_AT_ONCE
from flows.runner import DirectRunner, Runner
from tasks.plan import SourceChange, compare_with_source
from tasks.settings.configuration import Configuration


def watch(configuration: Configuration, runner: Runner | None = None) -> list[SourceChange]:
    """List every source and compare it with what was published.

    A source that fails is no change; its problems are in the result.
    """
    runner = runner or DirectRunner()
    calls = [partial(compare_with_source, configuration, name) for name in configuration.catalogs]
    changes = runner.each(calls, SOURCES_AT_ONCE)
    runner.show(sources_artifact(str(configuration.file), changes))
    return changes
