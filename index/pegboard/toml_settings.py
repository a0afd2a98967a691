"""Settings in common: reading pegboard.toml, the base class of its tables, and the wording of
problems.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from pegboard.errors import ConfigurationError, did_you_mean
from pegboard.llm.options import check_file_options
from pegboard.text.redaction import is_secret_name, redact_opaque
from pegboard.text.secret_references import REFERENCE, REFERENCE_EXPECTED

SECRET_TABLES = ("headers", "env", "storage")
"""Names of tables whose values may be secrets, regardless of their keys."""
MESSAGES = {
    "model_type": 'expected a table, such as { name = "value" }',
    "extra_forbidden": "no such setting",
    "missing": "missing",
    "tuple_type": "expected a list",
}


class Settings(BaseModel):
    """A table of pegboard.toml: immutable, and without unknown settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_toml(file: str | Path, alternative: str) -> dict[str, Any]:
    """Read a pegboard.toml, without checking what is in it.

    Args:
        alternative: what to do instead of giving a file with -c, for the error message.

    Raises:
        ConfigurationError: the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(Path(file).expanduser().read_text("utf-8"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"No configuration at {Path(file).expanduser().absolute()}. Give one with -c (in a "
            f"flow run with the parameter config), or {alternative}."
        ) from error
    except (OSError, ValueError, RecursionError) as error:  # of the text, of TOML, or of the path
        raise ConfigurationError(
            f"{file} cannot be read as TOML: {error}. Correct that place."
        ) from error


def configured_encoders(tables: Mapping[str, Any]) -> list[str]:
    """Return the encoders of `[[indexes]]`, unchecked, whatever is wrong with the tables."""
    indexes: Any = tables.get("indexes")
    return [
        index["encoder"]
        for index in (indexes if isinstance(indexes, list) else ())
        if isinstance(index, Mapping) and isinstance(index.get("encoder"), str)
    ]


def _with_reference(text: str) -> str:
    if not REFERENCE.search(text):
        raise ValueError(REFERENCE_EXPECTED)
    return text


def _whole_reference(text: str) -> str:
    if not REFERENCE.fullmatch(text):
        raise ValueError(REFERENCE_EXPECTED)
    return text


TextWithReference = Annotated[str, AfterValidator(_with_reference)]
"""A setting that may contain `${VARIABLE}`, such as `user:${PASSWORD}`."""
SecretReference = Annotated[str, AfterValidator(_whole_reference)]
"""A secret setting, which must be exactly `${VARIABLE}`."""
ProviderOptions = Annotated[dict[str, Any], AfterValidator(check_file_options)]
"""Provider options of an LLM; a secret in them is given as `${VARIABLE}`."""


def problems_of(error: ValidationError, model: type[BaseModel], prefix: str = "") -> list[str]:
    """Return the problems of a table, each as `place: what is wrong`.

    Args:
        model: the settings that were validated, whose names are suggested for misspelt ones.
        prefix: the place of the table.
    """
    problems: list[str] = []
    for problem in error.errors(include_url=False):
        kind = problem["type"]
        parts = [str(part) for part in problem["loc"]]
        message = MESSAGES.get(kind, problem["msg"].removeprefix("Value error, "))
        if kind == "extra_forbidden":
            message += did_you_mean(parts[-1], _setting_names(model, parts[:-1]))
        elif kind == "literal_error":
            expected = problem["msg"].split("'")[1::2]
            message += f" (got {_shown(problem['input'], parts)})"
            message += did_you_mean(str(problem["input"]), expected)
        elif kind not in ("missing", "value_error"):
            message += f" (got {_shown(problem['input'], parts)})"
        problems.append(f"{prefix}{'.'.join(parts)}: {message}")
    return problems


def _shown(value: Any, place: list[str]) -> str:
    """Return a wrong value for a message; only its type where it may be a secret."""
    if any(part in SECRET_TABLES or is_secret_name(part) for part in place):
        return f"a value of type {type(value).__name__}"
    return f"{redact_opaque(repr(value)):.80}"


def _setting_names(model: type[BaseModel], place: list[str]) -> Collection[str]:
    """Return the settings of the table at a place below a model; none where it has any names."""
    for name in place:
        field = model.model_fields.get(name)
        inner = [] if field is None else list(_models(field.annotation))
        if inner:
            model = inner[0]
    return model.model_fields.keys()


def _models(annotation: Any) -> Iterable[type[BaseModel]]:
    """Return the models in an annotation, such as of `Settings | None` or of a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def duplicates(names: list[str]) -> list[str]:
    """Return the names that occur more than once, in their order, each once."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]
