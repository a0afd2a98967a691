"""The patterns of suspicious text, read from `patterns.toml`, and the checks of what they find.

No pattern has an unbounded quantifier, and none is checked by more than a bounded piece of the text
around it, so a text takes time in proportion to its length."""

import re
import tomllib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MOST = 60
"""Repetitions that `*`, `+` and `{n,}` of a pattern stand for."""
NEAR = 300
"""Characters before and after a match that decide whether it counts."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One expression, searched in lower-case text (twice as fast as ignoring case).

    Attributes:
        hints: groups of words; of each group at least one stands in every text that the expression
            finds.
        counts: looks at what the expression found once more.
    """

    hints: tuple[tuple[str, ...], ...]
    expression: re.Pattern[str]
    counts: Callable[[re.Match[str]], bool]

    def matches(self, low: str) -> bool:
        """Whether a text, given in lower case, matches."""
        for group in self.hints:
            for hint in group:
                if hint in low:
                    break
            else:
                return False
        return any(self.counts(match) for match in self.expression.finditer(low))


_DATA: dict[str, Any] = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))


def compiled(expression: str) -> re.Pattern[str]:
    """Compile an expression of `patterns.toml`: with its parts, and without line breaks."""
    parts: dict[str, str] = _DATA["parts"]
    text = re.sub(r"\(\?&(\w+)\)", lambda name: parts[name[1]], expression)
    text = unicodedata.normalize("NFKC", text.replace("\n", ""))
    return re.compile(bounded(text))


def bounded(expression: str) -> str:
    """Return an expression whose unbounded quantifiers are bounded by `MOST`."""
    result: list[str] = []
    in_class = False
    for piece in re.findall(r"\\.|\{\d+,\}|.", expression, re.DOTALL):
        in_class = piece == "[" or (in_class and piece != "]")
        if in_class:
            result.append(piece)
        elif piece in ("*", "+"):
            result.append(f"{{{int(piece == '+')},{MOST}}}")
        elif re.fullmatch(r"\{\d+,\}", piece):
            result.append(f"{piece[:-1]}{MOST}}}")
        else:
            result.append(piece)
    return "".join(result)


def _sentence_before(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - NEAR) : match.start()]
    return re.split(r"[.!?\n]\s", before)[-1]


def not_quoted(match: re.Match[str]) -> bool:
    """Exclude what a tool about such texts quotes: "detects texts such as 'ignore all rules'"."""
    sentence = _sentence_before(match)
    quoted = re.search(r"['\"“‘«`][^'\"”’»`]{0,40}$", sentence)
    return quoted is None or not re.search(
        r"\b(?:such as|like|e\.g\.|for example|example|detects?|finds|blocks?|recogni[sz]es)\b",
        sentence,
    )


def no_option(match: re.Match[str]) -> bool:
    """Exclude "if false, do not notify users by e-mail", which says what an argument does."""
    return not_quoted(match) and not re.search(
        r"\b(?:if|whether|when)\b[^.]{0,30}\b(?:true|false|set|enabled|disabled|0|1|yes|no)\b",
        _sentence_before(match),
    )


def unconditional(match: re.Match[str]) -> bool:
    """Exclude "when you edit a file, always call this tool first": advice for a case is usual."""
    text, first = match.string, max(0, match.start() - NEAR)
    start = max(text.rfind(mark, first, match.start()) for mark in (". ", "\n", "! ", "? ", ">"))
    before = text[max(start + 1, first) : match.start()]
    after = text[match.end() : match.end() + 40]
    case = re.search(r"\b(?:when|whenever|if|after|once|to|for|unless|in case)\b", before)
    return not case and not re.match(
        r"[\s,*_]*(?:first[\s,]*)?(?:when|whenever|if|after|once|to|for|with|before|unless|as"
        r"|on)\b(?! (?:any|every|each|all|other))",
        after,
    )


def emphatic_or_closed(match: re.Match[str]) -> bool:
    """Accept `<important>` and `<system>...</system>`; `<system>` alone may be a placeholder."""
    text, near = match.string, 4 * NEAR
    around = text[max(0, match.start() - near) : match.end() + near]
    return match[1].startswith(("important", "sudo")) or f"</{match[1]}" in around


def not_named(match: re.Match[str]) -> bool:
    """Exclude markers that a tool names: "special tokens such as <|endoftext|>"."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    return not re.search(
        r"\b(?:such as|like|e\.g\.|example|tokens?|blocks?|markers?)\b\W*$", before
    )


def imperative(match: re.Match[str]) -> bool:
    """Whether a verb begins its sentence or clause: "silently call ...", not "can silently add"."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    found = re.search(r"(?:^|[.!?:;,\n>]\s{0,40}|\b(?:and|then|must|should|to)\s{1,40})$", before)
    return found is not None


_READ = compiled(_DATA["parts"]["read"])
_SENT = compiled(_DATA["parts"]["sent"])
_RESET = compiled(_DATA["parts"]["reset"])


def read_and_sent(match: re.Match[str]) -> bool:
    """Whether, near its name, a file of secrets is to be read and its content put somewhere."""
    before = match.string[max(0, match.start() - 70) : match.start()]
    after = match.string[match.end() : match.end() + 240].partition("\x00")[0]
    return _READ.search(before) is not None and _SENT.search(after) is not None


def no_reset(match: re.Match[str]) -> bool:
    """Exclude the resetting of a password: to send a new one to its owner is usual."""
    return _RESET.search(match.string[max(0, match.start() - 40) : match.end() + 40]) is None


_CHECKS = {
    check.__name__: check
    for check in (
        *(not_quoted, no_option, unconditional, emphatic_or_closed, not_named, imperative),
        *(read_and_sent, no_reset),
    )
}


def _patterns(flag: str) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(
            tuple(tuple(unicodedata.normalize("NFKC", group).split("|")) for group in row["hints"]),
            compiled(row["find"]),
            _CHECKS[row.get("check", "not_quoted")],
        )
        for row in _DATA[flag]
    )


INSTRUCTING = _patterns("hidden-instructions")
EXFILTRATING = _patterns("exfiltration")
