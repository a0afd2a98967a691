"""The names by which models call tools: valid for every API, unique and stable."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from unicodedata import category

MAX_CALL_NAME = 64
"""Characters of a tool's name for OpenAI and Anthropic, which take letters, digits, `_` and `-`."""
_HASH = 8
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_WORD = re.compile(r"(?:[A-Za-z0-9]|[^\x00-\x7f])+")
_TOKEN = re.compile(r"[^\s,;:!?()\[\]{}<>\"'`]+")
_CAMEL_CASE = re.compile(r"[a-z]{2,}[A-Z][a-z]")
_AROUND = " \t\r\n\"'`.,:;!?()[]{}<>"


def valid_name(name: str) -> str:
    """Return the name with `_` for what APIs do not take, cut to 64 characters. Words of other
    scripts are transliterated, since nothing of them would be left.

    Example:
        >>> valid_name("get_天气"), valid_name("größe.suchen")
        ('get_TianQi', 'gr__e_suchen')
    """
    readable = name if name.isascii() else _WORD.sub(_transliterated, name)
    return _REFUSED.sub("_", readable)[:MAX_CALL_NAME]


def _transliterated(match: re.Match[str]) -> str:
    """Return a word in ASCII if it has more letters and digits of other scripts than of ASCII."""
    word = match[0]
    foreign = sum(not char.isascii() and category(char)[0] in "LMN" for char in word)
    if foreign <= sum(char.isascii() for char in word):
        return word
    from anyascii import anyascii

    return anyascii(word)


class CallNames:
    """A name for each of some tools, whatever their order: a tool that joins them takes no other's.

    A tool keeps its true name if no other tool has it. Otherwise each of them is called
    `agent__name`, and those that share that as well have a hash of their id. Names that differ by
    upper and lower case only count as one. Characters that APIs do not take become `_`, and words
    of other scripts are transliterated.

    Args:
        tools: id, true name and agent's name of every tool, as `LoadedRelease.tool_names` returns
            them.
        reserved: names that no tool may have, such as those of the application's own tools.

    Attributes:
        tools: the arguments, sorted by id.
        names: the name of each tool, by id.
        ids: the id of each tool, by name.
    """

    def __init__(
        self, tools: Iterable[tuple[str, str, str]], reserved: Collection[str] = ()
    ) -> None:
        self.tools = sorted(set(tools))
        self.names: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        refused = {name.lower() for name in reserved}
        short_names = [valid_name(name) for _, name, _ in self.tools]
        long_names = [valid_name(f"{agent}__{name}") for _, name, agent in self.tools]
        short_counts = Counter(name.lower() for name in short_names)
        long_counts = Counter(name.lower() for name in long_names)
        ambiguous: list[tuple[str, str]] = []
        for (identity, name, _), short, long in zip(
            self.tools, short_names, long_names, strict=True
        ):
            is_taken = short_counts[long.lower()] or long.lower() in refused
            if short_counts[short.lower()] == 1 and short.lower() not in refused:
                self._give(identity, short)
            elif long_counts[long.lower()] == 1 and not is_taken:
                self._give(identity, long)
            else:
                ambiguous.append((identity, name))
        taken = {*short_counts, *long_counts, *refused}
        for identity, name in ambiguous:
            candidates = _with_hash(identity, name)
            unused = next(candidate for candidate in candidates if candidate.lower() not in taken)
            self._give(identity, unused)
        self._exact: dict[str, list[str]] | None = None

    def _give(self, identity: str, name: str) -> None:
        self.names[identity] = name
        self.ids[name] = identity

    def named_in(self, request: str) -> list[str]:
        """Return the ids of the tools that a request names exactly, in the order of the request.

        A request names a tool if it consists of the name, or contains a name in snake_case or
        camelCase. Other words are ignored, since a catalog could name a tool `e-mail` or `GitHub`.
        Names are true names, those of this class, ids, and `agent/name`, regardless of case.
        """
        if self._exact is None:
            self._exact = self._by_exact_name()
        ids: dict[str, None] = {}
        for word in _name_like(request):
            ids.update(dict.fromkeys(self._exact.get(word.casefold(), ())))
        return list(ids)

    def _by_exact_name(self) -> dict[str, list[str]]:
        exact: dict[str, list[str]] = {}
        for identity, name, agent in self.tools:
            aliases = (identity, name, self.names[identity], f"{agent}/{name}")
            for key in {alias.casefold() for alias in aliases}:
                exact.setdefault(key, []).append(identity)
        return exact


def _with_hash(identity: str, name: str) -> Iterator[str]:
    """Yield the name with increasingly long hashes of the id, which collide only on purpose."""
    hashed = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(_HASH, MAX_CALL_NAME, _HASH):
        yield f"{valid_name(name)[: MAX_CALL_NAME - length - 1]}_{hashed[:length]}"
    yield hashed


def _name_like(request: str) -> Iterator[str]:
    """Yield the whole request, and its words in snake_case or camelCase."""
    yield request.strip(_AROUND)
    for token in _TOKEN.findall(request):
        word = token.strip(_AROUND)
        if "_" in word or _CAMEL_CASE.match(word):
            yield word
