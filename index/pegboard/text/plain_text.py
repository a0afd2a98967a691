"""Descriptions as plain sentences: without Markdown, HTML, addresses and blocks of code.

Only for an index: the `tools` table keeps a description as it is. Catalogs are untrusted, so every
pattern takes time that grows with the length of the text, and no faster.
"""

import re
from collections.abc import Sequence
from html import unescape

LONGEST_FIRST = 300
"""Characters of a first sentence; the words after it are cut off."""

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
    """Return the sentences of a text in order; headings and items of lists are sentences, too."""
    out: list[str] = []
    for paragraph in _PARAGRAPH.split(_without_markup(text)):
        words = _MARKS.sub("", _ITEM_MARK.sub("", paragraph.lstrip("\n"))).replace("|", " ")
        out += _split(" ".join(words.split()))
    return out


def joined(parts: Sequence[str]) -> str:
    """Return sentences as one text, each but the last with a full stop."""
    ended = (part if part.endswith(tuple(".!?:;。！？")) else f"{part}." for part in parts[:-1])
    return " ".join((*ended, *parts[-1:]))


def shortened(sentence: str) -> str:
    """Return a sentence, cut after a word if it is longer than a first sentence may be."""
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
    """Without what stands between ``` on lines of their own; `code` in a sentence stays."""
    parts = text.split("```")
    blocks = range(1, len(parts) - 1, 2)
    return "".join(
        "\n\n" if at in blocks and "\n" in part else part for at, part in enumerate(parts)
    )


def _ended(address: re.Match[str]) -> str:
    """What stays of an address: the full stop of its sentence."""
    return "." if address[0].endswith(".") else " "


def _split(text: str) -> list[str]:
    out: list[str] = []
    start = 0
    for end in _END.finditer(text):
        if not _ABBREVIATION.search(text, max(start, end.start() - 12), end.start()):
            out.append(text[start : end.end()].strip())
            start = end.end()
    out.append(text[start:].strip())
    return [sentence for sentence in out if any(map(str.isalnum, sentence))]
