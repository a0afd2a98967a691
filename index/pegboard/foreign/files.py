"""Read untrusted files and JSON within limits. One invalid record does not affect the others."""

import json
import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from pegboard.errors import SourceError
from pegboard.foreign.limits import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_RECORD

CHUNK = 1 << 20
"""Bytes read from a file at a time."""
TWICE = "it has the name {names} twice in one object"
"""Problem of an object with repeated names."""
TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
"""Matches strings, of which the last may be unterminated, and brackets outside of strings. The
possessive quantifiers make it linear."""


class RepeatedNames(dict[str, Any]):
    """A JSON object with repeated names; it has the last value of each, as `json.loads` has."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.repeated = frozenset(name for name, count in counts.items() if count > 1)


class Unreadable:
    """Placeholder for a JSON value that was not read; `description` says what the value is."""

    def __init__(self, description: str) -> None:
        self.description = description

    def __repr__(self) -> str:
        return f"<{self.description}>"


def matching_files(base: Path, pattern: str) -> list[Path]:
    """Return the files that match a path or glob pattern, sorted; `base` is the folder from which
    relative patterns count.

    Raises SourceError if no file matches.
    """
    path = Path(pattern).expanduser()
    path = path if path.is_absolute() else base / path
    if path.is_file():
        return [path]
    anchor = Path(path.anchor)
    files = sorted(p for p in anchor.glob(str(path.relative_to(anchor))) if p.is_file())
    if not files:
        raise SourceError(
            f"There is no file {path}. Expected a file, or a pattern such as 'dumps/*.json' that "
            f"matches some; "
            "relative paths count from the folder of pegboard.toml."
        )
    return files


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file. Raises SourceError if it cannot be read or has more than `max_bytes`."""
    content = bytearray()
    try:
        # Opening a pipe waits for a writer, and a device may never end.
        if path.exists() and not path.is_file():
            raise SourceError(f"{path} is not a file. Expected a file, not a folder or a pipe.")
        with path.open("rb", buffering=0) as file:
            # The reported size is not reliable: files in /proc report 0.
            while chunk := file.read(CHUNK):
                content += chunk
                if len(content) > max_bytes:
                    raise SourceError(
                        f"{path} has more than {max_bytes:,} bytes. Split it, or raise "
                        f"`max_bytes` of its catalog."
                    )
    except OSError as error:
        raise SourceError(
            f"Cannot read {path}: {error.strerror}. Check the path and its permissions."
        ) from error
    return bytes(content)


def read_text(path: Path, max_bytes: int = MAX_BYTES) -> str:
    """Read a text file, see `decoded`. Raises SourceError as `read_bytes` and `decoded` do."""
    return decoded(read_bytes(path, max_bytes), str(path))


def decoded(content: bytes, where: str) -> str:
    """Return the text of a file or reply without its byte order mark.

    It is UTF-8, whose invalid bytes become lone surrogates, which mark a record as invalid; or
    UTF-16 or UTF-32, as PowerShell and Excel write it, with a mark or with the zero bytes of an
    ASCII character at its beginning.

    Raises:
        SourceError: the content begins like UTF-16 or UTF-32, but is not.
    """
    encoding = json.detect_encoding(content)
    if encoding.startswith("utf-8"):
        return content.decode("utf-8-sig", "surrogateescape")
    try:
        return content.decode(encoding, "surrogatepass")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{where} begins like {encoding.upper()}, but is not at byte {error.start:,}: "
            f"{error.reason}. Save it as UTF-8."
        ) from error


def parse_json(text: str, where: str) -> Any:
    """Return the value of a JSON text. Raises only SourceError, with the position of the error.

    Invalid values are left to the caller (see `flaw_of`): an object with repeated names becomes
    `RepeatedNames`; a number with too many digits, or a part nested too deeply, `Unreadable`."""
    try:
        try:
            return json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError):
            return _parse_tolerantly(text)
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. Save "
            f"it again, or correct that place."
        ) from error


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a JSON file. Raises SourceError as `read_text` and `parse_json` do."""
    return parse_json(read_text(path, max_bytes), str(path))


def check_names(value: Any, where: str) -> None:
    """Raise SourceError if the value is an object with repeated names, which is ambiguous."""
    if isinstance(value, RepeatedNames):
        raise SourceError(f"{where}: {TWICE.format(names=_names(value))}. Remove one.")


def read_lines(path: Path, max_bytes: int = MAX_BYTES) -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines of a file, each with its number, counted from 1.

    Raises SourceError as `read_text` does.
    """
    content = read_bytes(path, max_bytes)
    if not json.detect_encoding(content).startswith("utf-8"):
        content = decoded(content, str(path)).encode("utf-8", "surrogatepass")
    for number, encoded in enumerate(BytesIO(content), 1):
        encoding = "utf-8" if number > 1 else "utf-8-sig"
        line = encoded.decode(encoding, "surrogateescape").removesuffix("\n")
        if line.strip():
            yield number, line


def flaw_of(*values: Any) -> str | None:
    """Return why a record with these values cannot be used at all; None if it can be used.

    A record is unusable with repeated names or unreadable values, or if it is too deep or too
    large. A value that is referred to several times counts each time."""
    size = 0
    stack = [(value, 0) for value in values]
    while stack:
        value, depth = stack.pop()
        size += 1
        kind = type(value)  # comparing exact types first is faster than isinstance
        if kind is str or isinstance(value, str):
            size += len(value)
        elif kind is dict or isinstance(value, Mapping):
            if isinstance(value, RepeatedNames):
                return f"{TWICE.format(names=_names(value))}; remove one"
            items = cast("Mapping[Any, Any]", value)
            for name, item in items.items():
                size += len(name) if isinstance(name, str) else 0
                stack.append((item, depth + 1))
        elif isinstance(value, list | tuple):
            stack += [(item, depth + 1) for item in cast("list[Any]", value)]
        elif isinstance(value, Unreadable):
            return f"it has {value.description}; correct it"
        if depth > MAX_DEPTH:
            return f"it is nested deeper than {MAX_DEPTH} levels; flatten it"
        if size > MAX_RECORD:
            return f"it has more than {MAX_RECORD:,} characters; shorten it"
    return None


def _names(value: RepeatedNames) -> str:
    return ", ".join(repr(name)[:100] for name in sorted(value.repeated)[:3])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else RepeatedNames(pairs)


def _parse_tolerantly(text: str) -> Any:
    """Parse JSON in which too long numbers and too deep parts become `Unreadable`."""
    marker = secrets.token_hex(16)

    def value_of(pairs: list[tuple[str, Any]]) -> Any:
        if len(pairs) == 1 and pairs[0][0] == marker:
            return Unreadable(f"a part nested deeper than {MAX_DEPTH} levels")
        return _object(pairs)

    shallow = _without_depth(text, f'{{"{marker}":0}}')
    return json.loads(shallow, object_pairs_hook=value_of, parse_int=_integer)


def _integer(digits: str) -> Any:
    if len(digits) <= MAX_DIGITS:
        return int(digits)
    return Unreadable(f"a number of {len(digits):,} digits")


def _without_depth(text: str, marker: str) -> str:
    """Replace parts nested deeper than MAX_DEPTH by the marker, so that the rest can be parsed."""
    parts: list[str] = []
    depth = start = 0
    for match in TOKENS.finditer(text):
        token = match[0]
        if token in ("[", "{"):
            if depth == MAX_DEPTH:
                parts.append(text[start : match.start()])
            depth += 1
        elif token in ("]", "}"):
            depth -= 1
            if depth == MAX_DEPTH:
                parts.append(marker)
                start = match.end()
    return "".join([*parts, marker if depth > MAX_DEPTH else text[start:]])
