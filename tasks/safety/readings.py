"""The readings of a text: as written, and decoded from common disguises.

A model reads `1gn0r3`, Cyrillic letters that look Latin, base64 and reversed text nearly as well as
plain words; a list of words does not match them. Each reading takes time linear in the length of
the text."""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

_LOOKALIKES = str.maketrans(
    # Cyrillic, Greek, Armenian and Latin letters of other shapes or sizes, in lower case.
    "аеосрхуіјѕһԁԛԝкмтнвгпѵ" + "αονρικτυχηεγβω" + "ոօսհցզ" + "ıɩɑɡʀɢɴᴏᴇᴀɪʟᴘᴠᴜᴛᴄᴅᴋᴍʙꜰʜᴊꜱᴡʏᴢǝℓ",
    "aeocpxyijshdqwkmthbrnv" + "aovpiktuxneybw" + "nouhgq" + "iiagrgnoeailpvutcdkmbfhjswyzel",
)
_LEET = str.maketrans("0345@$7", "oeasast")
_LEET_WORD = re.compile(
    r"(?<![\w@$])(?=[\w@$]{0,30}[a-z])[a-z]{0,30}[0134578@$][a-z0134578@$]{0,30}"
)
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ ._-][^\W_](?![^\W_])){2,400}")
_JOINED = re.compile(r"[a-z]{1,20}(?:[-_.][a-z]{1,20}){2,40}")
_ESCAPE = re.compile(r"\\u([0-9a-f]{4})|\\x([0-9a-f]{2})", re.IGNORECASE)
_BASE64 = re.compile(r"(?<![\w+/-])[\w+/-]{12,}(?:\n[\w+/-]{4,}){0,1000}={0,2}", re.ASCII)
_HEX = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{2}){8,}(?![0-9a-f])", re.IGNORECASE)
_URL_SAFE = str.maketrans("-_", "+/")
_BLANKS = re.compile(r"[^\S\n]{2,}")
_TRIGGER = re.compile(
    r"ignor|disreg|forget|overrid|bypass|previous|instruc|prompt|syst|tell|inform|secret|user|always"
    r"|never|tool|first|send|forward|passw|rules|assist|model|agent|reveal|conceal|hide"
)
"""Parts of words. Disguised words are only decoded if one of them contains such a part."""
_COMMON = re.compile(r"\b(?:the|you|your|user|this|tool|all|any|system|instructions?|password)\b")
"""Common words. A reversed or rotated text is only read if it contains one of them."""


def readings(text: str) -> Iterator[str]:
    """Yield the distinct readings of a visible text in lower case, the plain one first."""
    seen: set[str] = set()
    for raw in _readings(text):
        reading = _BLANKS.sub(" ", raw)
        if reading not in seen:
            seen.add(reading)
            yield reading


def _readings(text: str) -> Iterator[str]:
    lower_text = text.lower()
    yield lower_text
    unescaped = _unescaped(text)
    yield from _letters(unescaped.lower())
    for decoded in _decoded(unescaped):
        yield from _letters(_unescaped(decoded).lower())
    for turned in (codecs.encode(lower_text, "rot13"), lower_text[::-1]):
        if _COMMON.search(turned):
            yield turned


def _letters(lower_text: str) -> Iterator[str]:
    """Yield a text with look-alikes, leet and separated letters as plain letters."""
    folded = lower_text
    if not lower_text.isascii():
        decomposed = unicodedata.normalize("NFD", lower_text)
        bare = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
        folded = bare.translate(_LOOKALIKES)
    yield folded
    for letter in ("i", "l"):
        yield from _replaced(
            folded, _LEET_WORD, lambda word, letter=letter: _plain_word(word, letter)
        )
    yield from _replaced(folded, _SPACED, lambda run: re.sub(r"[ ._-]", "", run))
    yield from _replaced(folded, _JOINED, lambda run: re.sub(r"[-_.]", " ", run))


def _replaced(text: str, disguised: re.Pattern[str], plain: Callable[[str], str]) -> Iterator[str]:
    """Yield the text with every disguised run replaced, if one of them contains a trigger word."""
    if any(_TRIGGER.search(plain(match[0])) for match in disguised.finditer(text)):
        yield disguised.sub(lambda match: plain(match[0]), text)


def _plain_word(word: str, letter: str) -> str:
    """Return a leet word in letters, with `letter` for each 1."""
    return word.translate(_LEET).replace("1", letter).replace("8", "b")


def _unescaped(text: str) -> str:
    """Return a text with HTML entities, percent-encoding and backslash escapes decoded."""
    if "&" in text:
        text = html.unescape(text)
    if "%" in text:
        text = unquote(text, errors="replace")
    if "\\" in text:
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    return text


def _decoded(text: str) -> Iterator[str]:
    """Yield the texts encoded in base64, joined, and then those encoded in hexadecimal."""
    base64_texts = [_from_base64(match[0]) for match in _BASE64.finditer(text)]
    yield "\n".join(part for part in base64_texts if part)
    hex_texts = [_readable(bytes.fromhex(match[0])) for match in _HEX.finditer(text)]
    yield "\n".join(part for part in hex_texts if part)


def _from_base64(text: str) -> str:
    if text.isalpha() and (text.islower() or text[1:].islower()):
        return ""  # a long word
    data = text.replace("\n", "").rstrip("=").translate(_URL_SAFE)
    try:
        return _readable(base64.b64decode(data + "=" * (-len(data) % 4)))
    except (binascii.Error, ValueError):
        return ""


def _readable(data: bytes) -> str:
    """Return bytes as text, or an empty text if most of them are not printable."""
    text = data.decode("utf-8", errors="ignore")
    printable = "".join(filter(str.isprintable, text.replace("\n", " ")))
    return printable if len(printable.encode()) > 0.9 * len(data) else ""
