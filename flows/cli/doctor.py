"""What `pegboard doctor` looks at in the pipeline. Found under the entry-point group
`pegboard.checks`.
"""

import argparse
import tempfile
import uuid
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from flows.prefect.server import check_server, server_url
from pegboard.cli.doctor import Check
from pegboard.errors import PegboardError
from pegboard.formatting import count_text
from pegboard.store.database import public_uri

if TYPE_CHECKING:
    from tasks.settings.configuration import Configuration


def checks(options: argparse.Namespace) -> Iterable[Check]:
    """The checks of Prefect, and of the configuration if one is given."""
    yield _check("prefect", _prefect)
    if not options.config:
        return
    from tasks.settings.configuration import load_configuration

    try:
        configuration = load_configuration(options.config)
    except PegboardError as error:
        yield Check("configuration", "wrong", str(error))
        return
    catalogs = count_text(len(configuration.catalogs), "catalog")
    indexes = count_text(len(configuration.indexes), "index", "indexes")
    yield Check("configuration", "good", f"{catalogs}, {indexes}")
    yield _check("what a build needs", lambda: _needs(configuration))
    uri = configuration.uri
    if "://" in uri:
        yield _check("board store", lambda: _store(uri))
    else:
        yield _check("board folder", lambda: _writable(Path(uri)))


def _check(what: str, look: Callable[[], str]) -> Check:
    """A check that is good with what `look` returns, or wrong with the error that it raises."""
    try:
        return Check(what, "good", look())
    except PegboardError as error:
        return Check(what, "wrong", str(error))


def _prefect() -> str:
    if (url := server_url()) is None:
        return f"{version('prefect')}; no server is named, so builds run directly"
    check_server(url)
    return f"{version('prefect')}; the server at {public_uri(url)} answers"


def _needs(configuration: "Configuration") -> str:
    """The encoders, with the LLM of `[enrich]`; no request is sent to it."""
    from tasks.enrichment.models import configured_completer
    from tasks.settings.encoders import encoder_for
    from tasks.steps.preflight import check_before_run

    check_before_run(configuration)
    models = [encoder_for(index).fingerprint for index in configuration.indexes]
    if configuration.enrich is not None:
        completer = configured_completer(configuration.enrich, configuration.base)
        if key := getattr(completer, "missing_key", lambda: "")():
            raise PegboardError(f"{completer.name}: set the environment variable {key} to its key.")
        models.append(completer.name)
    return f"{', '.join(dict.fromkeys(models))}: ready"


def _writable(board: Path) -> str:
    folder = next(folder for folder in (board, *board.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return f"{board} can be written"
    except OSError as error:
        raise PegboardError(
            f"{folder} cannot be written: {error.strerror}. Change its permissions, or [board] uri."
        ) from error


def _store(uri: str) -> str:
    """List the tables at an address; write, read and delete a tiny file of the lake."""
    from pegboard.store.database import store_errors
    from pegboard.store.writing import connect, table_names
    from tasks.lake.files import Lake

    probe, lake = f"probe-{uuid.uuid4().hex}.txt", Lake(uri)
    database = connect(uri)
    with store_errors(uri):
        tables = len(table_names(database))
    lake.write_text(probe, "pegboard doctor")
    lake.read_text(probe)
    lake.delete(probe)
    return f"{public_uri(uri)} can be read, written and deleted in; {tables} tables"
