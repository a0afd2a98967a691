"""The problems of arguments by a JSON Schema, found in a worker process.

It imports nothing heavy, so that a process starts quickly. A check holds the interpreter's lock
until it ends, and a schema may make it endless: the system ends the process then."""

import json
import signal
from contextlib import suppress
from functools import lru_cache
from typing import Any

import jsonschema_rs

MAX_MEMORY = 1_000_000_000
"""Bytes of this process."""
MAX_VALIDATORS = 1_000
MAX_ERRORS = 5
VALUES = ("const", "default", "enum", "examples")
"""Keywords that hold no schemas."""
SHOWN = 300
"""Characters of one error, and of the place where it is."""


def problems_of(schema: str, arguments: str, max_seconds: float) -> list[str]:
    """Return what is wrong with arguments, both as JSON; nothing if the schema cannot be used.

    Args:
        max_seconds: of processor time, after which the system ends this process.
    """
    with suppress(ImportError, OSError, ValueError):  # a system without such limits
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    setitimer = getattr(signal, "setitimer", lambda *_: None)
    timer = getattr(signal, "ITIMER_PROF", None)
    setitimer(timer, max_seconds)
    problems: list[str] = []
    try:
        if (validator := _validator_of(schema)) is None:
            return []
        for error in validator.iter_errors(json.loads(arguments)):
            place = ".".join(str(part) for part in error.instance_path)[:SHOWN]
            problems.append(f"{place or 'arguments'}: {error.message[:SHOWN]}")
            if len(problems) == MAX_ERRORS:
                break
    except Exception as error:
        problems.append(f"arguments: they cannot be checked: {str(error)[:SHOWN]}")
    finally:
        setitimer(timer, 0)
    return problems


@lru_cache(MAX_VALIDATORS)
def _validator_of(schema: str) -> Any:
    """Return a validator without network and with regular expressions of linear time, or None."""
    try:
        return _compiled(_lenient(json.loads(schema)))
    except Exception:
        return None


def _compiled(schema: Any) -> Any:
    return jsonschema_rs.validator_for(
        schema,
        retriever=_refuse,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=1_000_000),
    )


def _lenient(schema: Any) -> Any:
    """Return a schema without patterns that cannot be used, in which a property that has a default
    is not required: its tool fills it in."""
    if isinstance(schema, list):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: value if key in VALUES else _lenient(value) for key, value in schema.items()}
    properties, required = out.get("properties"), out.get("required")
    if isinstance(properties, dict) and isinstance(required, list):
        filled = {
            name for name, one in properties.items() if isinstance(one, dict) and "default" in one
        }
        out["required"] = [name for name in required if name not in filled]
    if isinstance(out.get("pattern"), str):
        try:
            _compiled({"pattern": out["pattern"]})
        except Exception:
            del out["pattern"]
    return out


def _refuse(uri: str) -> Any:
    raise ValueError("references to other documents are not followed")
