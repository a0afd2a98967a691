"""The watch: which sources changed since they were published. `flows/prefect/flows.py` turns each
into an event.

A watch compares with what was published, not with what an earlier watch saw: until the run that its
event asked for has published, the next watch emits the same event again. That costs one more run,
which waits for its turn, finds nothing left to do and stops before it encodes; and it is what
repeats a run that failed or an event that was lost."""

from functools import partial

from flows.artifacts import sources_artifact
from flows.reindex import SOURCES_AT_ONCE
from flows.runner import Direct, Runner
from tasks.changes import Change, compare_with_source
from tasks.settings.configuration import Configuration


def watch(configuration: Configuration, runner: Runner | None = None) -> list[Change]:
    """List every source and compare it with what was published. A source that fails is no change;
    its problems are in the result.
    """
    runner = runner or Direct()
    calls = [partial(compare_with_source, configuration, name) for name in configuration.catalogs]
    changes = runner.each(calls, SOURCES_AT_ONCE)
    runner.show(sources_artifact(str(configuration.file), changes))
    return changes
