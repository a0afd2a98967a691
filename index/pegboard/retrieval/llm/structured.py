"""Reading a reply that should follow a JSON schema. Not every server enforces one, so nothing is
taken on trust.

The JSON may stand in a code fence or amid prose; it is never mended. Texts become single lines of
bounded length. Names count only if they were offered, so whatever a tool's description asks for,
nothing can come out that did not go in."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pegboard.llm.replies import answer_text, json_objects

MAX_CHARACTERS = 300
"""Of one text: a step or a variation is a sentence. What is longer is cut; an encoder would not
read on much further either.
"""

# A person may well be unable to log in, and sorry to ask; a refusal is about answering.
_CANNOT = (
    r"(?:can ?not|can['’]?t|won['’]?t|(?:am|['’]m) (?:not able|unable|not allowed) to|must "
    r"decline to)"
)
_ANSWER = r"(?:assist|help|comply|provide|fulfil+|answer|respond|continue|process|engage|generate|create|decompose|rewrite|rank)"
_REFUSAL = re.compile(
    rf"\W*(?:(?:(?:i['’]?m|i am) (?:\w+ )?(?:sorry|afraid)|sorry|(?:my )?apologies|i "
    rf"apologi[sz]e|unfortunately)\b[^.\n]{{0,40}}?\b(?:i|we) ?{_CANNOT} {_ANSWER}\b"
    rf"|i ?{_CANNOT} {_ANSWER} (?:you|with|that|this|the|your|to)\b"
    r"|as an? (?:ai|(?:large )?language model)\b[^.\n]{0,30}\bi\b"
    r"|(?:es tut mir leid|leider)\b[^.\n]{0,60}\bnicht (?:helfen|beantworten)|(?:je suis "
    r")?désolée?\b[^.\n]{0,40}\bje ne peux pas"
    r"|lo siento\b[^.\n]{0,40}\bno "
    r"puedo|很?抱歉[^。\n]{0,12}(?:无法|不能)|对不起[^。\n]{0,12}(?:无法|不能)|申し訳[^。\n]{0,40}できません)"
)


class Unusable(Exception):
    """A reply that cannot be used; the message says why, as the end of a sentence that begins with
    "the reply".
    """


def text_schema(field: str) -> dict[str, Any]:
    """The schema of an object with one text. Like the others it keeps to what every provider's
    strict mode takes: no bounds.
    """
    return _object(field, {"type": "string"})


def texts_schema(field: str) -> dict[str, Any]:
    """The schema of an object with a list of texts."""
    return _object(field, {"type": "array", "items": {"type": "string"}})


def names_schema(field: str, names: Iterable[str]) -> dict[str, Any]:
    """The schema of an object with a list of these names and no others."""
    return _object(field, {"type": "array", "items": {"type": "string", "enum": list(names)}})


def read_text(reply: str, field: str) -> str:
    """The text of a reply. Raises Unusable."""
    value = _value(reply, field)
    if not isinstance(value, str):
        raise Unusable(f"has no text as '{field}'")
    if not (line := _line(value)):
        raise Unusable(f"says nothing as '{field}'")
    return line


def read_texts(reply: str, field: str, most: int) -> list[str]:
    """The first `most` texts of a reply, none blank and none twice; may be none at all. Raises
    Unusable.
    """
    lines = [line for item in _items(reply, field) if (line := _line(item))]
    return list({line.casefold(): line for line in reversed(lines)}.values())[::-1][:most]


def read_names(reply: str, field: str, names: Iterable[str]) -> list[str]:
    """The names of a reply that were offered, each once and as it was offered; may be none. Raises
    Unusable.

    Invented names are passed over; a reply of invented names alone is unusable.
    """
    offered = {_key(name): name for name in names}
    items = _items(reply, field)
    known = [offered[key] for item in items if (key := _key(item)) in offered]
    if items and not known:
        raise Unusable("names only tools that it was not shown")
    return list(dict.fromkeys(known))


def _object(field: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field: schema},
        "required": [field],
        "additionalProperties": False,
    }


def _value(reply: str, field: str) -> Any:
    for found in json_objects(reply):
        if field not in found:
            raise Unusable(f"has no '{field}'")
        return found[field]
    text = answer_text(reply)
    raise Unusable("is a refusal" if _REFUSAL.match(text.lower()) else "holds no JSON object")


def _items(reply: str, field: str) -> list[str]:
    value = _value(reply, field)
    items = cast("list[Any]", value) if isinstance(value, list) else None
    if items is None or not all(isinstance(item, str) for item in items):
        raise Unusable(f"has no list of texts as '{field}'")
    return cast("list[str]", items)


def _line(text: str) -> str:
    """The text on one line without what does not print; empty if it holds no word."""
    line = " ".join(
        "".join(char if char.isprintable() else " " for char in text[: 2 * MAX_CHARACTERS]).split()
    )
    if _REFUSAL.match(line.lower()):
        raise Unusable("is a refusal")
    if len(line) > MAX_CHARACTERS:
        line = line[:MAX_CHARACTERS].rpartition(" ")[0] or line[:MAX_CHARACTERS]
    return line if re.search(r"\w", line) else ""


def _key(name: str) -> str:
    return name.strip(" `'\"\n").casefold()
