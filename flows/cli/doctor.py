"""What `pegboard doctor` looks at in the pipeline. Found under the entry-point group
`pegboard.checks`.
"""

import argparse
import tempfile
import uuid
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from flows.prefect.server import check_server, server_url
from pegboard.cli.doctor import Check
from pegboard.cli.tables import count_text
from pegboard.errors import PegboardError
from pegboard.store.database import public_uri

if TYPE_CHECKING:
    from tasks.settings.configuration import Configuration


def checks(options: argparse.Namespace) -> Iterable[Check]:
    """The checks of Prefect, and of the configuration if one is given."""
    yield _prefect()
    if options.config:
        yield from _configuration(options.config)


def _prefect() -> Check:
    if (url := server_url()) is None:
        return Check(
            "prefect", "good", f"{version('prefect')}; no server is named, so builds run directly"
        )
    try:
        check_server(url)
    except PegboardError as error:
        return Check("prefect", "wrong", str(error))
    return Check(
        "prefect", "good", f"{version('prefect')}; the server at {public_uri(url)} answers"
    )


def _configuration(file: str) -> Iterable[Check]:
    from tasks.embed import encoder_for
    from tasks.settings.configuration import load_configuration

    try:
        configuration = load_configuration(file)
    except PegboardError as error:
        yield Check("configuration", "wrong", str(error))
        return
    yield Check(
        "configuration",
        "good",
        f"{count_text(len(configuration.catalogs), 'catalog')}, "
        f"{count_text(len(configuration.indexes), 'index', 'indexes')}",
    )
    for index in configuration.indexes:
        try:
            yield Check(f"encoder of {index.name}", "good", encoder_for(index).fingerprint)
        except PegboardError as error:
            yield Check(f"encoder of {index.name}", "wrong", str(error))
    if configuration.enrich is not None:
        yield from _llm(configuration)
    yield (
        _store(configuration.uri)
        if "://" in configuration.uri
        else _writable(Path(configuration.uri))
    )


def _llm(configuration: "Configuration") -> Iterable[Check]:
    """The models of `[enrich]` and the prompts, without asking any model anything."""
    from tasks.enrichment.models import hosted_completers, hosted_models
    from tasks.enrichment.prompts import load_enrichment_prompts
    from tasks.settings.enrichment import PRODUCTS

    assert configuration.enrich is not None
    try:
        hosted_models(configuration)
        load_enrichment_prompts(configuration.base / "prompts", PRODUCTS)
        completers = hosted_completers(configuration.enrich)
    except PegboardError as error:
        yield Check("LLM", "wrong", str(error))
        return
    for completer in completers:
        if missing := completer.missing_key():
            yield Check(
                "LLM",
                "wrong",
                f"{completer.name}: set the environment variable {missing} to its key.",
            )
            continue
        price = completer.price_per_token()
        cost = (
            f"{price[0] * 1e6:g} and {price[1] * 1e6:g} USD for a million tokens in and out"
            if price
            else "its price is unknown"
        )
        yield Check("LLM", "good", f"{completer.name}; {cost}")


def _writable(board: Path) -> Check:
    folder = next(folder for folder in (board, *board.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("board folder", "good", f"{board} can be written")
    except OSError as error:
        say = (
            f"{folder} cannot be written: {error.strerror}. Change its permissions, or [board] uri."
        )
        return Check("board folder", "wrong", say)


def _store(uri: str) -> Check:
    """Whether tables can be listed at an address, and a tiny file of the lake written, read and
    deleted.
    """
    from pegboard.store.database import connect, store_errors, table_names
    from tasks.lake.files import Lake

    probe, lake = f"probe-{uuid.uuid4().hex}.txt", Lake(uri)
    try:
        database = connect(uri)
        with store_errors(uri):
            tables = len(table_names(database))
        lake.write_text(probe, "pegboard doctor")
        lake.read_text(probe)
        lake.delete(probe)
    except PegboardError as error:
        return Check("board store", "wrong", str(error))
    return Check(
        "board store",
        "good",
        f"{public_uri(uri)} can be read, written and deleted in; {tables} tables",
    )
