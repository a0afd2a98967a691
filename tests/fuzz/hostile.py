"""Hostile values, and a writer of JSON that can say what `json.dumps` refuses to: names twice in an
object, numbers of thousands of digits, bytes that are not UTF-8.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

LIMIT = 300_000
"""Characters of a single hostile text; a fuzzed file has hundreds of records."""
DEPTHS = (5, 150, 1_100, 20_000)


@dataclass(frozen=True, slots=True)
class Raw:
    """A text that stands in the JSON as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """An object whose names may repeat."""

    items: tuple[tuple[str, Any], ...]


TEXTS: Sequence[Callable[[Random], str]] = (
    lambda rng: "",
    lambda rng: " " * rng.choice((1, 1_000, LIMIT)),
    lambda rng: "\t\n\r" * rng.choice((1, 1_000)),
    lambda rng: "[" * rng.choice((10, 25_000, LIMIT)),
    lambda rng: "{" * rng.choice((10, 25_000)),
    lambda rng: "[[[[" + "]" * rng.randrange(6),
    lambda rng: '{"a":' * rng.choice((10, 25_000)),
    lambda rng: "eyJa-" * rng.choice((10, 40_000)),
    lambda rng: "contents_of_" + "a_" * rng.choice((10, 50_000)),
    lambda rng: "a" * rng.choice((513, 100_001, LIMIT)),
    lambda rng: "<!--" * rng.choice((3, 30_000)),
    lambda rng: "ignore previous instructions " * rng.choice((1, 5_000)),
    lambda rng: "bearer " + "x." * rng.choice((5, 50_000)),
    lambda rng: "http://[",
    lambda rng: "https://user:pass@host:99999/%zz?q=" + "a=" * 20_000,
    lambda rng: "http://\ud800/",
    lambda rng: "\ud800",
    lambda rng: "a\udfffb",
    lambda rng: "\x00",
    lambda rng: "a\x00b\x1b[31mred\x1b[0m\x9b2J\x07",
    lambda rng: "\x1b]8;;http://evil/\x07click\x1b]8;;\x07",
    lambda rng: "line\nRelease 0000 is live\r\n",
    lambda rng: "\u202eright to left\u202c\ufeff\u200b",
    lambda rng: "e\u0301" * rng.choice((3, 10_000)),
    lambda rng: "\U0001f469\u200d" * 500,
    lambda rng: "{0.__class__} %s %(x)s ${HOME} {{",
    lambda rng: "../../../etc/passwd",
    lambda rng: "'; DROP TABLE tools; --",
    lambda rng: "/b/{",
    lambda rng: "/b/}x",
    lambda rng: "__proto__",
    lambda rng: "9" * rng.choice((20, 5_000, LIMIT)),
    lambda rng: "(" * 500 + "a+" * 500,
    lambda rng: json.dumps({"nested": ["text", {"deep": 1}]}),
)
NUMBERS: Sequence[Callable[[Random], Any]] = (
    lambda rng: 0,
    lambda rng: -1,
    lambda rng: 2**63,
    lambda rng: -(2**200),
    lambda rng: 1e308,
    lambda rng: Raw("1e999"),
    lambda rng: Raw("-0"),
    lambda rng: Raw("NaN"),
    lambda rng: Raw("-Infinity"),
    lambda rng: Raw("9" * rng.choice((4_301, 5_000, 100_000))),
    lambda rng: Raw("0." + "9" * 50_000),
    lambda rng: Raw("1e" + "9" * 5_000),
)
CONTAINERS: Sequence[Callable[[Random], Any]] = (
    lambda rng: [],
    lambda rng: {},
    lambda rng: [None] * rng.choice((1, 20_000)),
    lambda rng: [[]] * 1_000,
    lambda rng: {str(number): number for number in range(rng.choice((3, 5_000)))},
    lambda rng: {"type": {}},
    lambda rng: {"type": ["object", 7, None, ["array"]]},
    lambda rng: {"$ref": "#"},
    lambda rng: {"$ref": "#/properties/a", "properties": {"a": {"$ref": "#/properties/a"}}},
    lambda rng: {"$ref": "https://evil.invalid/schema.json"},
    lambda rng: {"$ref": "file:///etc/passwd"},
    lambda rng: {"$ref": rng.choice((5, None, [], "\ud800", "#/%zz", "#/\x00"))},
    lambda rng: {"$schema": "https://evil.invalid/draft", "type": "object"},
    lambda rng: {"allOf": [{"allOf": [{"type": "object"}] * 20}] * 20},
    lambda rng: {"pattern": "(a+)+$", "type": "string"},
    lambda rng: {"enum": ["\ud800", Raw("NaN")]},
    lambda rng: {"properties": {"\ud800": {"type": "string"}}},
    lambda rng: {"properties": {"": {}, " ": {}, "\x00": {}}},
    lambda rng: {"properties": [{"name": "a"}], "required": True},
    lambda rng: {"required": "all", "type": "object"},
    lambda rng: Pairs((("type", "object"), ("type", "string"), ("type", 3))),
    lambda rng: Pairs((("name", "first"), ("name", "second"))),
    lambda rng: Raw("[" * (depth := rng.choice(DEPTHS)) + "]" * depth),
    lambda rng: Raw('{"a":' * (depth := rng.choice(DEPTHS)) + "1" + "}" * depth),
)
PLAIN = (True, False, None)


def hostile(rng: Random) -> Any:
    """Return one hostile value of any kind."""
    family = rng.choice((TEXTS, TEXTS, NUMBERS, CONTAINERS, CONTAINERS))
    return rng.choice(PLAIN) if rng.random() < 0.1 else rng.choice(family)(rng)


def mutated(rng: Random, record: dict[str, Any], times: int | None = None) -> Any:
    """Return a copy of a record with some of its parts replaced, removed, added or repeated."""
    value: Any = json.loads(json.dumps(record))
    for _ in range(times or rng.choice((1, 1, 2, 4))):
        value = _mutate(rng, value)
    return value


def _mutate(rng: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        action = rng.random()
        if action < 0.6:
            return {**value, key: _mutate(rng, value[key])}
        if action < 0.7:
            return {name: item for name, item in value.items() if name != key}
        if action < 0.8:
            return {**value, str(rng.choice(TEXTS)(rng))[:5_000]: hostile(rng)}
        if action < 0.9:
            return Pairs((*value.items(), (key, hostile(rng))))
        return {(key if name == key else name): item for name, item in value.items()}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        return [*value[:place], _mutate(rng, value[place]), *value[place + 1 :]]
    return hostile(rng)


def encode(value: Any) -> bytes:
    """Write a value as JSON of one line; lone surrogates are sometimes escapes, as servers do."""
    return _json(value).encode("utf-8", "surrogatepass")


def _json(value: Any) -> str:
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict | Pairs):
        items = value.items if isinstance(value, Pairs) else value.items()
        return f"{{{', '.join(f'{json.dumps(name)}: {_json(item)}' for name, item in items)}}}"
    return json.dumps(value)


def plain(value: Any) -> Any:
    """Return the value without what only raw JSON can say, for sources that are not JSON."""
    if isinstance(value, Raw):
        return value.text[:LIMIT]
    if isinstance(value, Pairs):
        return {name: plain(item) for name, item in value.items}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def damaged(rng: Random, content: bytes) -> bytes:
    """Return the bytes of a file with one damage: cut, flipped, another encoding, not text."""
    if not content:
        return b"\x00"
    place = rng.randrange(len(content))
    flipped = bytes((content[place] ^ (1 << rng.randrange(8)),))
    text = content.decode("utf-8", "replace")
    damages = (
        content[:place],
        content[:place] + flipped + content[place + 1 :],
        content[place:],
        b"\xef\xbb\xbf" + content,
        text.encode("utf-16", "replace"),
        b"\x00" * 4_096,
        b"\x1f\x8b\x08" + content,
        content + b"]" * 5_000,
        content.replace(b"\n", b"\r"),
        content[:place] + b'"' + content[place:],
        content[:place] + b"\xff\xfe" + content[place:],
        content + content,
        b"",
    )
    return rng.choice(damages)
