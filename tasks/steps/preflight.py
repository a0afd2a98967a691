"""Check what can be checked before any source is listed or an LLM is called, and report all
problems together."""

from collections.abc import Callable, Iterable
from functools import partial

from pegboard.errors import ConfigurationError, EncoderError, PegboardError
from tasks.enrichment.models import configured_completer
from tasks.enrichment.prompts import load_enrichment_prompts
from tasks.gate.spec import read_gate
from tasks.golden.few_shots import few_shot_queries
from tasks.safety.lock import lock_file, read_lock
from tasks.settings.configuration import Configuration, IndexSettings
from tasks.settings.encoders import encoder_for


def check_before_run(configuration: Configuration, *, locked: bool = False) -> None:
    """Read the gate's files and the prompts, load the encoder of every index, and check for its
    key.

    LiteLLM, which takes seconds to load, checks the model and its price only if a run has requests
    (`tasks.steps.enrich`), or if there is a problem here anyway.

    Args:
        locked: read the lock file, too.

    Raises:
        PegboardError: there is one problem.
        ConfigurationError: there are several problems; lists all of them.
    """
    encoders = {(index.encoder, str(index.options)): index for index in configuration.indexes}
    checks: list[Callable[[], object]] = [partial(_check_queries, configuration)]
    checks += [partial(_check_encoder, index) for index in encoders.values()]
    if locked:
        checks.append(partial(read_lock, lock_file(configuration)))
    if (enrich := configuration.enrich) is not None:
        checks.append(
            partial(load_enrichment_prompts, configuration.base / "prompts", enrich.products)
        )
    failures = failures_of(checks)
    if failures and enrich is not None:
        failures += failures_of([partial(configured_completer, enrich, configuration.base)])
    raise_together(configuration, failures)


def _check_queries(configuration: Configuration) -> None:
    read_gate(configuration)
    few_shot_queries(configuration)


def _check_encoder(index: IndexSettings) -> None:
    missing: str | None = getattr(encoder_for(index), "missing_key", lambda: None)()
    if missing is not None:
        raise EncoderError(
            f"The encoder {index.encoder} of index '{index.name}' needs a key, and the environment "
            f"variable {missing} is not set. Set it, or name the variable that holds the key as "
            f"api_key_env in the index's options."
        )


def failures_of(checks: Iterable[Callable[[], object]]) -> list[PegboardError]:
    """Return the errors that the checks raise."""
    failures: list[PegboardError] = []
    for check in checks:
        try:
            check()
        except PegboardError as error:
            failures.append(error)
    return failures


def raise_together(configuration: Configuration, failures: list[PegboardError]) -> None:
    """Raise a single failure as it is, and several as one ConfigurationError that lists them."""
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ConfigurationError.from_problems(str(configuration.file), list(map(str, failures)))
