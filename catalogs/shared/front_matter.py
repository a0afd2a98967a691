"""The front matter of a SKILL.md: YAML between two lines `---`.

Much of it is written by hand and is not YAML throughout, mostly because a text with a colon lacks
quotes. Clients read it nevertheless, so each entry is then read on its own, as its author meant."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from catalogs.openapi.document import parse_yaml
from pegboard.errors import SourceError
from pegboard.foreign.files import RepeatedNames

MARK = "---"
"""Line before and after the front matter."""
ENTRY = re.compile(r"\A([A-Za-z][\w-]*)[ \t]*:(?!//)[ \t]*(.*)")
"""Matches the first line of an entry, which is not indented."""
ITEM = re.compile(r"\A[ \t]*-[ \t]+(.*)")
"""Matches an item of a list."""
BLOCK = re.compile(r"([|>])[-+0-9]*(?:[ \t]+(.*))?")
"""Matches the sign of a text in the following lines, with text that does not belong there."""
QUOTED = re.compile(r"""(["'])(.*)\1""", re.DOTALL)
"""Matches a text in quotes, which may have such quotes within."""
CLOSED_EARLY = re.compile(r"""(["'])[^"']*\1(?=[\s:,.;!?)])""")
"""Matches quotes that end before the text does."""
TEXTS = ("name", "description")
"""Keys whose values are text, even if they look like a number, a list or a mapping."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of front matter.

    Attributes:
        line: the number of its first line in the file.
        value: what follows the key in that line.
        rest: the following lines that belong to the entry.
    """

    key: str
    line: int
    value: str
    rest: list[str]

    def read(self, where: str) -> Any:
        """Return the value as YAML, or as its author meant it. Raises SourceError with the line."""
        lines = [f"{self.key}: {self.value}", *self.rest]
        try:
            head = parse_yaml("\n" * (self.line - 1) + "\n".join(map(_with_blanks, lines)), where)
            return head[self.key]
        except SourceError as error:
            if (meant := self.meant()) is None:
                raise SourceError(
                    f"its `{self.key}`, at line {self.line}, begins with a bracket or quote that "
                    f"is never closed; close it, or put the whole text in quotes"
                ) from error
            return meant

    def meant(self) -> str | list[str] | None:
        """Return the text or list that is meant; None if it ends before a bracket or quote does."""
        lines = [line.strip() for line in self.rest]
        items = [ITEM.fullmatch(line) for line in lines if line]
        if not self.value and items and all(items):
            return [_unquoted(item[1]) for item in items if item]
        if block := BLOCK.fullmatch(self.value):
            separator = "\n" if block[1] == "|" else " "
            return separator.join(line for line in (block[2] or "", *lines) if line)
        text = " ".join(line or "\n" for line in (self.value, *lines)).replace(" \n ", "\n").strip()
        sign = text[:1]
        if sign in ("[", "{") and text.count(sign) > text.count("]" if sign == "[" else "}"):
            return None
        if sign in ('"', "'") and text.count(sign) == 1:
            return None
        return _unquoted(text)


def split_front_matter(text: str, where: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and the body of a file.

    Raises:
        SourceError: there is no front matter, or an entry cannot be read; with its line.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    start = next((number for number, line in enumerate(lines) if line), 0)
    if lines[start] != MARK or MARK not in lines[start + 1 :]:
        raise SourceError(
            "it has no front matter; begin the file with a line ---, name and description, and "
            "another line ---"
        )
    end = lines.index(MARK, start + 1)
    head = _head(lines[start + 1 : end], start + 2, where)
    if not isinstance(head, dict):
        raise SourceError(f"its front matter is {type(head).__name__}, expected names and values")
    return head, "\n".join(lines[end + 1 :]).strip()


def _head(lines: list[str], number: int, where: str) -> Any:
    """Return the value of front matter whose first line has that number in its file."""
    entries = list(_entries(lines, number))
    try:
        head = parse_yaml("\n" * (number - 1) + "\n".join(lines), where)
    except SourceError:
        if "description" not in [entry.key for entry in entries]:
            raise
        pairs = [(entry.key, entry.read(where)) for entry in entries]
        counts = Counter(key for key, _ in pairs)
        head = RepeatedNames(pairs) if max(counts.values()) > 1 else dict(pairs)
    if isinstance(head, dict):
        for entry in entries:
            value = head.get(entry.key)
            if entry.key in TEXTS and not isinstance(value, str | None):
                scalar = isinstance(value, bool | int | float)
                head[entry.key] = (
                    entry.value.partition(" #")[0].strip() if scalar else entry.meant()
                )
    return head


def _entries(lines: list[str], number: int) -> Iterator[Entry]:
    """Yield the entries of front matter; comments and lines before the first entry are left out."""
    entry: Entry | None = None
    for line_number, line in enumerate(lines, number):
        if line.startswith("#"):
            continue
        if match := ENTRY.fullmatch(line):
            if entry is not None:
                yield entry
            entry = Entry(match[1], line_number, match[2], [])
        elif entry is not None:
            entry.rest.append(line)
    if entry is not None:
        yield entry


def _with_blanks(line: str) -> str:
    """Return a line that is indented by blanks, since YAML refuses tabs."""
    text = line.lstrip(" \t")
    return line[: len(line) - len(text)].expandtabs(2) + text


def _unquoted(text: str) -> str:
    """Return a text without the quotes around the whole of it."""
    quoted = QUOTED.fullmatch(text)
    return quoted[2] if quoted and not CLOSED_EARLY.match(text) else text
