"""Keep `lake/public` in step with the board, after each build and each prune.

Everything is found from what is recorded, so a killed run's files are completed by the next build,
and a release that was promoted or removed by hand is noticed."""

import logging
import time
from collections.abc import Collection, Mapping
from typing import Any

from pegboard.errors import PegboardError
from pegboard.store.releases import ReleaseStore
from tasks.lake.files import DamagedFile, Lake
from tasks.public_lake.days import merge_days, write_replies, write_run
from tasks.public_lake.releases import write_releases
from tasks.public_lake.schema import EMPTY, FOLDER, TABLES, schema_values
from tasks.settings.configuration import Configuration

NAME = "public lake"
"""The name of this step among what a run leaves unfinished."""
SCHEMA = f"{FOLDER}/schema.json"

logger = logging.getLogger(__name__)


def with_public_lake(configuration: Configuration, outcome: dict[str, Any]) -> dict[str, Any]:
    """Write the public lake after a run, and return the run's outcome.

    A failure is added to what the run left `unfinished`, and changes nothing else. A dry run
    writes nothing.
    """
    if not configuration.board.public_lake or outcome["outcome"] == "planned":
        return outcome
    unfinished: dict[str, str] = {}
    start = time.monotonic()
    try:
        write_public_lake(configuration.uri, outcome)
    except Exception as error:  # several libraries write the tables: none of them may fail a run
        unexpected = not isinstance(error, PegboardError)
        logger.warning("The %s failed: %s", NAME, error, exc_info=unexpected)
        unfinished[NAME] = f"{error} The next build tries again."
    seconds = round(time.monotonic() - start, 3)
    return {
        **outcome,
        "unfinished": {**outcome["unfinished"], **unfinished},
        "seconds": {**outcome["seconds"], "public": seconds},
    }


def write_public_lake(uri: str, outcome: Mapping[str, Any] | None = None) -> None:
    """Write what `lake/public` of the board at `uri` lacks, and remove what the board lacks.

    Args:
        outcome: of the run that just ended; None adds no run.

    Raises:
        StoreError: the store refuses, or a release cannot be read.
    """
    lake = Lake(uri)
    files_there = lake.walk(FOLDER)
    _write_schema(lake, files_there)
    if outcome is not None:
        write_run(lake, outcome)
    merge_days(lake, files_there)
    write_replies(lake, files_there)
    write_releases(lake, ReleaseStore(uri), files_there)


def prune_public_lake(uri: str) -> None:
    """Bring the public tables of releases in step with the releases that a prune left, if there are
    any such tables.
    """
    lake = Lake(uri)
    if files_there := lake.walk(FOLDER):
        write_releases(lake, ReleaseStore(uri), files_there)


def _write_schema(lake: Lake, files_there: Collection[str]) -> None:
    """Write the description of the tables, and a file without rows for each."""
    for table in TABLES:
        path = f"{FOLDER}/{table.name}/{EMPTY}/0.parquet"
        if path not in files_there:
            lake.write(path, table.frame([]))
    values = schema_values()
    try:
        current = lake.read_json(SCHEMA) == values
    except DamagedFile:
        current = False
    if not current:
        lake.write_json(SCHEMA, values)
