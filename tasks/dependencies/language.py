"""English in the names and descriptions of tools: closed classes of words, and noun phrases.

`get_stock_ticker` reads as the verb get and the noun phrase (stock, ticker). Each class is one of
the language or of programming, not of a catalog. A word that is missing costs an edge; a word too
many adds edges that are wrong."""

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain

from pegboard.search.text import identifier_words

MAX_PHRASE = 5
"""Words of a noun phrase; of a longer one the last are kept, where English puts the main noun."""
MAX_DESCRIPTION = 2_000
"""Characters of a description that are read; what a tool returns is said at the beginning."""


def _word_class(text: str) -> frozenset[str]:
    return frozenset(text.split())


FINDING = _word_class(
    "find search list lookup locate discover browse resolve query enumerate identify detect scan"
)
"""Verbs that return things which the caller cannot name yet, and their identifiers."""
SEEKING = _word_class("find search scan query")
"""Those after which `for` names what is looked for."""
READING = _word_class(
    "get fetch retrieve read return show view describe obtain load report provide determine "
    "extract display"
)
"""Verbs that return one thing."""
CREATING = _word_class("create add register open start new")
"""Verbs that bring a thing into being, and return its identifier."""
MAKING = _word_class(
    "generate calculate compute estimate convert translate transform encode decode hash encrypt "
    "parse"
)
"""Verbs that return something made of their arguments."""
CHANGING = _word_class(
    "set update delete remove cancel edit modify change rename move replace enable disable toggle "
    "turn switch reset adjust configure"
)
"""Verbs that change a thing which exists already."""
DELETING = _word_class("delete remove cancel")
"""Those of them that end it."""
CHECKING = _word_class("validate verify")
"""Verbs that say whether an argument is right."""

FUNCTION_WORDS = _word_class(
    "a an the of for by from in on at to with without within into per via using based as and or "
    "not all any each every its his her their your this that these those if whether when where "
    "which who is are be been has have given specified provided specific certain particular "
    "various multiple several one more other it they"
)
"""Words between which a noun phrase stands."""

PREPOSITIONS = _word_class("of for by from in on at to with within into per via using based as")

GENERIC = _word_class(
    "id name code key number value type text data input output content result response item "
    "object query info information detail status state title description message parameter option "
    "setting list count limit offset page size format mode kind label category tag note comment "
    "body string file path url uri link user account record entry field date time day year month "
    "amount total start end success error report summary resource source target index version "
    "action command unit api tool service system app application method request param argument "
    "property attribute param thing model level"
)
"""Words that alone do not say what a parameter is about: thousands of tools have an `id`."""

IDENTIFIERS = {
    **dict.fromkeys(("identifier", "uuid", "guid", "uid"), "id"),
    **dict.fromkeys(("number", "no", "num"), "number"),
}
"""Endings of names that mean the same."""
ABBREVIATIONS = {
    "repo": "repository", "org": "organization", "organisation": "organization",
    "env": "environment", "tx": "transaction", "txn": "transaction", "db": "database",
    "msg": "message", "dir": "directory", "config": "configuration", "addr": "address",
    "acct": "account", "img": "image",
}  # fmt: skip
"""Nouns that APIs shorten in one place and write out in another."""
_SAME = ABBREVIATIONS | IDENTIFIERS
_NO_PLURALS = _word_class(
    "alias canvas atlas bias dns sms https aws kubernetes series yes gas was has its gps fps vps "
    "ios always"
)
_IE_PLURALS = _word_class("movies cookies ties pies lies")
_ES_PLURALS = ("sses", "shes", "ches", "xes", "zzes", "iases", "tuses", "nuses", "ruses", "puses")
_IS_PLURALS = _word_class("apis emojis uris taxis menus skus cpus gpus")
ID_NOUNS = frozenset(IDENTIFIERS.values()) | {"code", "key", "token", "url", "uri", "path"}
"""Nouns by which things are identified."""

KEYS = _word_class("id number slug hash code key handle ref sha")
"""Endings of the names of parameters that take whatever identifies a thing."""
PLUMBING = _word_class(
    "page cursor sort order direction filter expand include before after since until metadata "
    "query search count field"
)
"""Words for how something is to be returned, or for what the caller writes."""

SEARCHED = _word_class("query search text keyword term name phrase question topic")
"""What a caller knows who looks for something."""

ROLES = _word_class(
    "current new old start end starting ending from to source target destination origin first "
    "last min max minimum maximum default preferred desired parent child next previous initial "
    "final base other input output given specified exact full unique valid related existing "
    "selected optional required stored basic 1 2 3"
)
"""Words that say which part a thing plays in a call, not what it is."""

CONTEXT = _word_class(
    "current now today system device my user own local present default machine host"
)
"""Words for the here and now of the caller: to get what has them, nothing need be known before."""
WORLD = _word_class(
    "date time timezone location position coordinate language locale currency country"
)
"""What of the caller's context is the same for every agent."""
CALENDAR = {
    **dict.fromkeys(("year", "month", "day", "week"), "date"),
    **dict.fromkeys(("hour", "minute"), "time"),
}
"""Parts of a date, and of a time of day."""

SECRETS = _word_class("session token credential cookie jwt auth authentication authorization")
"""What a login gives."""
STATE_ENDINGS = _word_class("status state mode setting service level enabled")
"""Words with which the name of a state ends."""
CONNECTION = _word_class(
    "wifi internet network connectivity connection online cellular ethernet hotspot wireless"
)
"""What connects a device with everything else."""

_RETURNS = re.compile(
    r"(?i)\b(?:returns?|returning|retrieves?|retrieving|fetch(?:es|ing)?|gets?|provides?|outputs?"
    r"|yields?|reports?|obtains?|shows?)\s+"
)
_SUCH_AS = re.compile(r"(?i)\b(?:such as|including|includes?|e\.g\.,?|containing|like)\s+")
_STOPS = re.compile(r"[.;:()\[\]\n]|\s-\s")
_PARTS = re.compile(r",|\band\b|\bor\b|\balong with\b|\bas well as\b")


@dataclass(frozen=True, slots=True)
class ParsedName:
    """The words of a name before its verb, the verb, and its noun phrase: that after the verb, or
    where there is none (`before_verb`) that before it.
    """

    before: tuple[str, ...]
    verb: str
    phrase: tuple[str, ...]
    before_verb: bool = False


def words_of(text: str) -> tuple[str, ...]:
    """Split a text into words: plurals as singulars, abbreviations written out, endings that mean
    an id as `id`. The text search has words of its own, which need not be words at all.
    """
    # No word goes across a blank, and few of the pieces between blanks are new.
    return tuple(chain.from_iterable(map(_words_between_blanks, text.split())))


@lru_cache(maxsize=100_000)
def _words_between_blanks(text: str) -> tuple[str, ...]:
    text = re.sub(r"(?i)\bwi-fi\b", "wifi", unicodedata.normalize("NFKC", text))
    words = (singular(word.casefold()) for word in identifier_words(text).split())
    return tuple(sys.intern(_SAME.get(word, word)) for word in words)


def singular(word: str) -> str:
    """Return an English noun without its plural ending: repository of repositories."""
    if len(word) < 3 or not word.endswith("s") or word in _NO_PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4 and word not in _IE_PLURALS:
        return word[:-3] + "y"
    if word.endswith(_ES_PLURALS):
        return word[:-2]
    return word if word.endswith(("us", "ss", "is")) and word not in _IS_PLURALS else word[:-1]


def noun_phrase(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words up to the first preposition, without articles: (list,) of list of a file."""
    phrase: list[str] = []
    for word in words:
        if word not in FUNCTION_WORDS:
            phrase.append(word)
        elif phrase:
            break
    return tuple(phrase[-MAX_PHRASE:])


def parameter_phrase(name: str) -> tuple[str, ...]:
    """Return the noun phrase of a parameter's name; `date_of_birth` is a birth date."""
    words = [word for word in words_of(name) if not word.isdigit()]
    if "or" in words[1:-1]:  # `hash_or_number` is either
        words = words[: words.index("or", 1)]
    if "of" in words[1:-1]:
        at = words.index("of", 1)
        words = words[at + 1 :] + words[:at]
    return noun_phrase(words)


@lru_cache(maxsize=20_000)
def parse_name(name: str) -> ParsedName:
    """Parse a tool's name. A name without a known verb is its own phrase."""
    words = words_of(name)
    forms = verb_forms()
    for at, word in enumerate(words):
        verb = forms.get(word, "return")
        if verb == "return":  # `return_book` returns nothing to its caller
            continue
        after = words[at + 1 :]
        if verb == "convert" and "to" in after:
            after = after[after.index("to") + 1 :]
        if phrase := _object_of(verb, after):
            return ParsedName(words[:at], verb, phrase)
        # `issues_list_for_repo`, `users.list`: what is listed is said before.
        return ParsedName((), verb, _joined_phrase(words[:at]), True)
    return ParsedName((), "", _joined_phrase(words))


def _object_of(verb: str, words: Sequence[str]) -> tuple[str, ...]:
    if words and words[0] in PREPOSITIONS and not (verb in SEEKING and words[0] == "for"):
        return ()
    return _joined_phrase(words)


_JOINING = _word_class("and or all every each")


def _joined_phrase(words: Sequence[str]) -> tuple[str, ...]:
    """Return the noun phrase of a name, in which `and` joins: news of religion and politics."""
    return noun_phrase([word for word in words if word not in _JOINING])


def has_plural(name: str, phrase: Sequence[str]) -> bool:
    """Whether the last word of this phrase stands in the name in the plural."""
    if not phrase:
        return False
    words = [word.casefold() for word in identifier_words(name).split()]
    plurals = [word for word in words if singular(word) != word]
    return phrase[-1] in {_SAME.get(singular(word), singular(word)) for word in plurals}


def first_verb(description: str) -> str:
    """Return the verb with which a description begins (`Retrieves the ...`), or an empty text."""
    words = words_of(description[:MAX_DESCRIPTION])[:3]
    return next((verb_forms()[word] for word in words if word in verb_forms()), "")


def returned_phrases(description: str) -> Iterator[tuple[str, ...]]:
    """Yield the noun phrases after verbs such as `returns`, and those in `such as ...`."""
    text = description[:MAX_DESCRIPTION]
    for match in _RETURNS.finditer(text):
        rest = _STOPS.split(text[match.end() :], maxsplit=1)[0]
        head, *examples = _SUCH_AS.split(rest, maxsplit=1)
        parts = _PARTS.split(head)[:3]
        parts += _PARTS.split(examples[0])[:8] if examples else []
        for part in parts:
            if phrase := noun_phrase(words_of(part)):
                yield phrase


@cache
def verb_forms() -> dict[str, str]:
    """Map each form of the classes' verbs to the verb: `retrieves` and `retrieve` to retrieve."""
    forms: dict[str, str] = {}
    for verb in sorted(FINDING | READING | CREATING | MAKING | CHANGING | CHECKING):
        third = verb + ("es" if verb.endswith(("s", "h")) else "s")
        if verb.endswith("y"):
            third = verb[:-1] + "ies"
        for form in (verb, third):
            forms.update(dict.fromkeys(words_of(form), verb))
    return forms
