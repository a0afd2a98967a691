"""Descriptions as plain sentences: without Markdown, HTML, addresses and blocks of code.

Only for indexes: the `tools` table keeps the original description. Catalogs are untrusted, so
every pattern runs in linear time.
"""

import re
from collections.abc import Sequence
from html import unescape

LONGEST_FIRST = 300
"""Maximum length of a first sentence in characters; the words beyond it are cut off."""

_INLINE = "a|abbr|b|big|code|del|em|font|i|img|ins|kbd|mark|s|small|span|strong|sub|sup|tt|u|var"
_BLOCK = (
    "blockquote|br|center|dd|details|div|dl|dt|h[1-6]|hr|li|ol|p|pre|section|summary|table|tbody"
    "|td|th|thead|tr|ul"
)
# No other tags: "an option of a <select> element" would lose its word.
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE})(?:\s[^<>]*+)?>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK})(?:/|\s[^<>]*+)?>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--[^<>]*+>")
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\((?:[^()]|\([^()]*+\))*+\)")
_ADDRESS = re.compile(r" ?+<?\bhttps?://[^\s<>()\"'`]++>?")
_QUOTE = re.compile(r"^[ \t]*+>(?!>>)[ \t>]*+(?:\[![A-Za-z]++\])?+", re.MULTILINE)
_CODE_LINE = re.compile(r"^[ \t]*+(?:>>>|\.\.\.[ \t]|\.\. [\w-]++::).*+$", re.MULTILINE)
_RULE = re.compile(r"^[-=*_~|:+ \t]{3,}+$", re.MULTILINE)
_ITEM = r"(?:[-*+•]|\d{1,3}[.)]|#{1,6})[ \t]"
_PARAGRAPH = re.compile(rf"\n(?:[ \t]*+\n)++|\n(?=[ \t]*+{_ITEM})")
_ITEM_MARK = re.compile(rf"^[ \t]*+{_ITEM}")
_MARKS = re.compile(r"[`*]++|~~|\\(?=[_*`\[\]<>#|-])|(?<![\w\\])_++(?=\w)|(?<=[^\W_])_++(?!\w)")
_END = re.compile(r"(?<=[.!?])[\"')\]]?+\s++(?![a-z])|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|approx|incl|no|fig|ca)|(?<!\w)[A-Z])\.$")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order; headings and list items count as sentences."""
    result: list[str] = []
    for paragraph in _PARAGRAPH.split(_without_markup(text)):
        words = _MARKS.sub("", _ITEM_MARK.sub("", paragraph.lstrip("\n"))).replace("|", " ")
        result += _split(" ".join(words.split()))
    return result


def joined(parts: Sequence[str]) -> str:
    """Return sentences as one text; all but the last end with a punctuation mark."""
    punctuated = (
        part if part.endswith(tuple(".!?:;。！？")) else f"{part}." for part in parts[:-1]
    )
    return " ".join((*punctuated, *parts[-1:]))


def shortened(sentence: str) -> str:
    """Return a sentence of at most `LONGEST_FIRST` characters, cut between words."""
    if len(sentence) <= LONGEST_FIRST:
        return sentence
    cut = sentence[:LONGEST_FIRST]
    return cut.rpartition(" ")[0] or cut


def _without_markup(text: str) -> str:
    text = _without_code("\n".join(text.splitlines()))
    text = _QUOTE.sub("", _CODE_LINE.sub("\n", text))
    text = _ADDRESS.sub(_ended, _LINK.sub(r"\1", text))
    text = _BLOCK_TAG.sub("\n\n", _INLINE_TAG.sub("", _COMMENT.sub(" ", text)))
    return unescape(_RULE.sub("\n", text))


def _without_code(text: str) -> str:
    """Remove fenced blocks of several lines; fenced code within a line stays."""
    parts = text.split("```")
    blocks = range(1, len(parts) - 1, 2)
    return "".join(
        "\n\n" if index in blocks and "\n" in part else part for index, part in enumerate(parts)
    )


def _ended(address: re.Match[str]) -> str:
    """Return the replacement of an address: the full stop if it ends a sentence, else a blank."""
    return "." if address[0].endswith(".") else " "


def _split(text: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for end in _END.finditer(text):
        if not _ABBREVIATION.search(text, max(start, end.start() - 12), end.start()):
            parts.append(text[start : end.end()].strip())
            start = end.end()
    parts.append(text[start:].strip())
    return [sentence for sentence in parts if any(map(str.isalnum, sentence))]
