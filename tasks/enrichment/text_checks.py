"""Checks of single texts of a reply: refusals, copies of the prompt, language, names of tools."""

import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import Any

from tasks.enrichment.near_duplicates import words_in
from tasks.enrichment.products import REPLIES, ArgumentNote, Avoid

COPIED_WORDS = 12
"""Words in a row shared with the prompt that make a copy: shorter runs are turns of phrase."""
MIN_LANGUAGE_CHARACTERS = 80
"""In shorter texts identifiers and names weigh too much to tell the language."""
LANGUAGE_CONFIDENCE = 0.95
"""Probability above which a language is taken for certain."""
_LANGUAGE_CHARACTERS = 300
"""Characters that are looked at; more takes longer and tells nothing new."""

_CANNOT = (
    r"(?:can ?not|can['’]?t|am (?:not able|unable) to|['’]m (?:not able|unable) "
    r"to|won['’]?t be able to|must decline to|am not allowed to)"
)
_DO = (
    r"(?:assist|help|comply|provide|fulfil+|generate|create|produce|answer|continue|complete|"
    r"process|describe|write|do|engage)"
)
_THAT = (
    r"(?:(?:you|with|on|to|a|an|the|any|such|this|that|your|these|those)\s+){0,3}"
    r"(?:request|that|this|description|questions?|topics?|content|task|information|json|response|"
    r"answer|instructions?)"
)
_REFUSAL = re.compile(
    rf"\W*(?:"
    rf"(?:(?:i['’]?m|i am|we "
    rf"are)\s+(?:really\s+|very\s+|so\s+)?(?:sorry|afraid)|(?:my\s+)?apologies|i "
    rf"apologi[sz]e|sorry|unfortunately|regrettably)\b[^.\n]{{0,60}}?\b(?:i|we)\s*{_CANNOT}\s+{_DO}\b"
    rf"|i\s*{_CANNOT}\s+{_DO}\s+{_THAT}\b"
    r"|as an? (?:ai|artificial intelligence|(?:large )?language model)\b[^.\n]{0,30}\b(?:i|my)\b"
    r"|i(?:['’]m| am) (?:just )?an? (?:ai|(?:large )?language model)\b"
    r"|(?:there is |i have )?(?:not enough|insufficient) information (?:is |was "
    r")?(?:provided|given|available|to (?:describe|write|generate|determine|answer))"
    r"|(?:es tut mir leid|tut mir leid|entschuldigung|leider)\b[^.\n]{0,40}\b(?:kann ich|ich "
    r"kann)\b[^.\n]{0,60}\bnicht\b|ich kann (?:ihnen |dir )?(?:diese|bei "
    r"dieser|dabei|das)\b[^.\n]{0,40}\bnicht\b"
    r"|(?:je suis )?désolée?\b[^.\n]{0,40}\bje ne (?:peux|suis)\b|je ne (?:peux|suis) pas (?:en "
    r"mesure |capable )?(?:de |d['’])?(?:répondre|vous aider|aider|fournir|traiter)"
    r"|lo siento\b[^.\n]{0,40}\bno (?:puedo|me es posible)\b|no puedo "
    r"(?:ayudar|cumplir|proporcionar|responder|generar)"
    r"|(?:desculpe|lamento|sinto muito)\b[^.\n]{0,40}\bnão (?:posso|consigo)\b|não posso "
    r"(?:ajudar|fornecer|atender|responder|gerar)"
    r"|mi dispiace\b[^.\n]{0,40}\bnon posso\b|non posso "
    r"(?:aiutar|fornire|rispondere|generare|soddisfare)"
    r"|(?:helaas|het spijt me)\b[^.\n]{0,40}\bkan ik\b[^.\n]{0,40}\bniet\b"
    r"|(?:извините|к сожалению|простите)[^.\n]{0,30}\bя не могу\b|я не могу "
    r"(?:помочь|выполнить|ответить|предоставить)"
    r"|(?:很?抱歉|对不起|不好意思)[^。\n]{0,12}(?:我)?(?:无法|不能|没有办法)|我(?:无法|不能)(?:提供|完成|回答|帮助|协助|满足|处理)"
    r"|申し訳(?:ありません|ございません)[^。\n]{0,40}(?:できません|いたしかねます|お答えできません)"
    r"|죄송(?:합니다|하지만)[^.\n]{0,40}(?:수 없습니다|어렵습니다)"
    r")"
)
_FENCE = re.compile(
    r"<data label=|</data>|\\u003c|\{%|\[credential\]|\[cut\]"
    r"|\{\{ *(?:tool|neighbours|questions|agent|tools|examples|context|language|count|schema"
    r"|problem) *\}\}"
)
_PLACEHOLDERS = frozenset(
    (
        "string",
        "text",
        "note",
        "question",
        "topic",
        "description",
        "name",
        "argument",
        "n a",
        "none",
        "null",
        "tbd",
        "todo",
    )
)
_ANGLES = re.compile(r"\s*[<\[{]\s*[\w\s.,'-]{1,60}[>\]}]\s*")
_RELATIVES = (
    *(
        {"no", "nn", "da"},
        {"hr", "bs", "sr"},
        {"id", "ms"},
        {"es", "ext"},
        {"pt", "gl"},
        {"ar", "ary", "arz"},
    ),
    *(
        {"zh", "wuu", "yue"},
        {"fa", "uzs"},
        {"en", "pcm"},
        {"cs", "sk"},
        {"it", "vec", "lij"},
        {"he", "hbo"},
        {"el", "grc"},
    ),
)
"""Languages so alike in writing that one text is often both."""
_RELATIVE = {
    code: min(group, key=lambda name: (len(name), name)) for group in _RELATIVES for code in group
}
"""The code that stands for each group, by the codes in it."""
_NO_LANGUAGE = "zxx"

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*")
_PARTS = re.compile(r"[.-]")
_SNAKE = re.compile(r"[A-Za-z0-9]+_[A-Za-z0-9_]*[A-Za-z0-9]")
_CAMEL = re.compile(r"[a-z]{2}[a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z][a-z]+(?:[A-Z][a-z0-9]*){2,}")
"""`getWeather` and `AirQualityForecast`; two capitals alone may be a brand (`GitHub`, `iPhone`)."""
_KEBAB = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+){2,}")
"""Two hyphens and more: with one, `check-in` would be the name of a tool in every second hotel."""
_DOTTED = re.compile(r"[A-Za-z]\w+(?:\.[A-Za-z]\w+)+")


def is_refusal(text: str) -> bool:
    """Return whether a text begins as a refusal does; "I am sorry for being late" is none."""
    return _REFUSAL.match(text.lower()) is not None


def is_echo(text: str) -> bool:
    """Return whether a text is a placeholder (`...`, `<note>`) or holds a mark of a prompt."""
    words = normalised(text)
    return (
        _FENCE.search(text) is not None
        or _ANGLES.fullmatch(text) is not None
        or words in _PLACEHOLDERS
        or words in _schema_words()
        or (not words and bool(text.strip()))
    )


def copies_prompt(text: str, instructions: str, own: str = "") -> bool:
    """Return whether `COPIED_WORDS` words in a row are the prompt's.

    Args:
        own: the catalog's own text, which may resemble a few-shot example.
    """
    words = words_in(text)
    if len(words) < COPIED_WORDS:
        return False
    copied = _instruction_runs(instructions).intersection(_runs(words))
    return bool(copied) and not copied <= set(_runs(words_in(own)))


def normalised(text: str) -> str:
    """Return a text without case and punctuation."""
    return " ".join(words_in(text))


def language_of(text: str) -> str | None:
    """Return the ISO 639 code of a text's language; None if it is too short or not certain.

    py3langid knows 139 languages and a class for what is no language. Of 3,855 descriptions and
    requests of 80 characters and more in the benchmarks it was certain of another language than
    English for 18, all of which are Chinese, and not certain for 41. Languages that are hard to
    tell apart share one code.
    """
    text = " ".join(text.split())
    if len(text) < MIN_LANGUAGE_CHARACTERS:
        return None
    return _language(text[:_LANGUAGE_CHARACTERS])


def same_language(code: str, other: str) -> bool:
    """Return whether two codes mean one language, or two that are hard to tell apart."""
    return _RELATIVE.get(code, code) == _RELATIVE.get(other, other)


def is_identifier(name: str) -> bool:
    """Return whether a name joins several words as identifiers do, and so is no chance phrase."""
    return any(form.fullmatch(name) for form in (_SNAKE, _CAMEL, _KEBAB, _DOTTED))


class ToolNameMatcher:
    """The tool names of a catalog that are identifiers, to be found in texts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_folded(name) for name in names if is_identifier(name))

    def find(self, text: str, allowed: Container[str] = ()) -> str | None:
        """Return the first tool name in the text, as written there, that is not allowed."""
        for token in filter(_may_be_identifier, _TOKEN.findall(text)):
            for candidate in dict.fromkeys((token, token.replace(".", "_"), *_PARTS.split(token))):
                if (
                    _folded(candidate) in self._names
                    and candidate not in allowed
                    and token not in allowed
                ):
                    return candidate
        return None


def _may_be_identifier(token: str) -> bool:
    return any(mark in token for mark in "_-.") or not (token.islower() or token.istitle())


def _folded(name: str) -> str:
    """Case means nothing in `get_weather`, and everything in `getWeather`."""
    return name.lower() if any(mark in name for mark in "_-.") else name


def _runs(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    starts = range(len(words) - COPIED_WORDS + 1)
    return (words[start : start + COPIED_WORDS] for start in starts)


@lru_cache(maxsize=1)
def _schema_words() -> frozenset[str]:
    """The descriptions of schema fields, which some models return instead of a value."""
    return frozenset(
        normalised(field.description or "")
        for reply in (*REPLIES.values(), Avoid, ArgumentNote)
        for field in reply.model_fields.values()
    )


@lru_cache(maxsize=32)
def _instruction_runs(instructions: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_runs(words_in(instructions)))


@lru_cache(maxsize=4_096)
def _language(text: str) -> str | None:
    probabilities: dict[str, float] = {}
    ranked: list[tuple[str, float]] = _language_identifier().rank(text)
    for code, probability in ranked[:8]:
        shared = _RELATIVE.get(code, code)
        probabilities[shared] = probabilities.get(shared, 0.0) + probability
    best, probability = max(probabilities.items(), key=lambda item: item[1])
    return best if probability > LANGUAGE_CONFIDENCE and best != _NO_LANGUAGE else None


@lru_cache(maxsize=1)
def _language_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
