"""A process that checks arguments: a JSON line with digest, schema and arguments on stdin, and one
with the problems of the arguments on stdout.

It is run by its path and imports nothing of Pegboard, so that it starts quickly. A check holds the
interpreter's lock until it ends, and a schema may make it endless: the system ends this process."""

import json
import signal
import sys
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import jsonschema_rs

MAX_SECONDS = 1.0
"""Of processor time, for one check."""
MAX_MEMORY = 1_000_000_000
"""Bytes of this process."""
MAX_VALIDATORS = 1_000
MAX_ERRORS = 5
VALUES = ("const", "default", "enum", "examples")
"""Keywords that hold no schemas."""
SHOWN = 300
"""Characters of one error, and of the place where it is."""


def main() -> None:
    """Answer each line of stdin, after a first line that says that the process is ready."""
    with suppress(ImportError, OSError, ValueError):  # a system without such limits
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    validators: OrderedDict[str, Any] = OrderedDict()
    _answer([])
    for line in sys.stdin.buffer:
        with _limited_time():
            digest, schema, arguments = json.loads(line)
            if digest not in validators:
                validators[digest] = _validator_of(schema)
                if len(validators) > MAX_VALIDATORS:
                    validators.popitem(last=False)
            validators.move_to_end(digest)
            problems = _problems(validators[digest], arguments)
        _answer(problems)


@contextmanager
def _limited_time() -> Generator[None]:
    """Let the system end this process when it takes too long, whatever it is doing."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def _problems(validator: Any, arguments: Any) -> list[str]:
    if validator is None:
        return []
    problems: list[str] = []
    try:
        for error in validator.iter_errors(arguments):
            place = ".".join(str(part) for part in error.instance_path)[:SHOWN]
            problems.append(f"{place or 'arguments'}: {error.message[:SHOWN]}")
            if len(problems) == MAX_ERRORS:
                break
    except Exception as error:  # such as half of a character
        problems.append(f"arguments: they cannot be checked: {str(error)[:SHOWN]}")
    return problems


def _validator_of(schema: Any) -> Any:
    """Return a validator without network and with regular expressions of linear time, or None."""
    try:
        return _compiled(_lenient(schema))
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


def _answer(problems: list[str]) -> None:
    print(json.dumps(problems), flush=True)


if __name__ == "__main__":
    main()
