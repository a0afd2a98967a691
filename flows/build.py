"""Build a board from Python, directly or as a Prefect flow."""

from pathlib import Path
from typing import Any

from flows.options import BuildOptions, Incomplete
from flows.reindex import reindex
from pegboard.errors import GateFailed
from tasks.settings.configuration import Configuration, load_configuration


def build(
    configuration: Configuration | str | Path = "pegboard.toml",
    options: BuildOptions = BuildOptions(),  # noqa: B008  frozen
    *,
    prefect: bool = False,
) -> dict[str, Any]:
    """Index the catalogs of a configuration, and publish a release if anything changed.

    Repeating it is safe, and so is killing it: what was listed and encoded is kept, and readers see
    the old release until the new one is complete.

        >>> from flows.build import BuildOptions, build
        >>> outcome = build("demo/pegboard.toml")  # doctest: +SKIP
        >>> outcome["outcome"], outcome["release"]  # doctest: +SKIP
        ('published', '3c1f0e9a2b7d')
        >>> plan = build("demo/pegboard.toml", BuildOptions(dry_run=True))  # doctest: +SKIP

    Args:
        configuration: the path of a pegboard.toml, or what `load_configuration` returns.
        prefect: run as a Prefect flow, on the configured server, or else on one that Prefect starts
            for the run.

    Returns:
        What `pegboard build --json` prints, as JSON values. `outcome` is `planned`, `unchanged`,
        `withdrawn`, `held` by the gate, or `published`; `release` is the id of the release,
        `catalogs` what each source listed, `problems` what could not be done, `unfinished` what
        failed after publishing, and `seconds` the time of each phase.

    Raises:
        ConfigurationError: the configuration has problems; all are listed.
        SourceError: no source could be read, or published tools would be lost.
        EncoderError: an encoder cannot load or does not answer.
        CompletionError: the LLM refused, and `incomplete` is `stop`.
        StoreError: the board's store cannot be read or written.
        PublishError: another run published meanwhile; run again.
    """
    if not isinstance(configuration, Configuration):
        configuration = load_configuration(configuration)
    if not prefect:
        return reindex(configuration, options)
    from flows.prefect.flows import start_reindex

    try:
        return start_reindex(configuration, options)
    except (GateFailed, Incomplete) as error:
        return dict(error.outcome)
