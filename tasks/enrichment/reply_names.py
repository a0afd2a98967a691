"""Names of tools in a text: identifiers such as `get_weather` and `getWeather`, which nobody writes
by chance.
"""

import re
from collections.abc import Container, Iterable

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*")
_PARTS = re.compile(r"[.-]")
_SNAKE = re.compile(r"[A-Za-z0-9]+_[A-Za-z0-9_]*[A-Za-z0-9]")
_CAMEL = re.compile(r"[a-z]{2,}[a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z][a-z]+(?:[A-Z][a-z0-9]*){2,}")
"""`getWeather` and `AirQualityForecast`; two capitals alone are a brand's as well (`GitHub`,
`iPhone`).
"""
_KEBAB = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+){2,}")
"""Two hyphens and more: with one, `check-in` would be the name of a tool in every second hotel."""
_DOTTED = re.compile(r"[A-Za-z]\w+(?:\.[A-Za-z]\w+)+")


def is_identifier(name: str) -> bool:
    """Whether a name is made of several words as identifiers are, so that it does not stand in a
    sentence by chance.
    """
    return any(form.fullmatch(name) for form in (_SNAKE, _CAMEL, _KEBAB, _DOTTED))


class OtherNames:
    """The names of a catalog's tools, as far as they are identifiers. Built once; finding takes a
    look at each word of a text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_folded(name) for name in names if is_identifier(name))

    def find(self, text: str, allowed: Container[str] = ()) -> str | None:
        """The first name of a tool in the text, as it is written there, that is not among the
        allowed names.
        """
        for token in _TOKEN.findall(text):
            if not (
                "_" in token
                or "-" in token
                or "." in token
                or not (token.islower() or token.istitle())
            ):
                continue
            for candidate in dict.fromkeys((token, token.replace(".", "_"), *_PARTS.split(token))):
                if (
                    _folded(candidate) in self._names
                    and candidate not in allowed
                    and token not in allowed
                ):
                    return candidate
        return None


def _folded(name: str) -> str:
    """Case tells nothing in `get_weather`, and everything in `getWeather`."""
    return name.lower() if "_" in name or "-" in name or "." in name else name
