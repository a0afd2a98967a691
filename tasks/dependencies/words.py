"""The closed classes of English words that names and descriptions of tools are read by.

Each is a class of the language or of programming, not of a catalog: verbs that say that a tool
gives something back, words that say nothing alone, units. A word that is missing costs an edge; a
word too much costs edges that are wrong."""

from functools import cache

from pegboard.search.text import tokenize


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FINDING = _words(
    "find search list lookup locate discover browse resolve query enumerate identify detect scan"
)
"""Give things that the caller cannot name yet, and what they are known by."""
READING = _words(
    "get fetch retrieve read return show view describe obtain load report provide determine "
    "extract display"
)
"""Give one thing back."""
CREATING = _words("create add register open start new")
"""Bring a thing into being, and say what it is known by."""
MAKING = _words(
    "generate calculate compute estimate convert translate transform encode decode hash encrypt "
    "parse"
)
"""Give something that they made of their arguments."""
CHANGING = _words(
    "set update delete remove cancel edit modify change rename move replace enable disable toggle "
    "turn switch reset adjust configure"
)
"""Change a thing that is there already."""
CHECKING = _words("validate verify")
"""Say whether an argument is right."""

SMALL = _words(
    "a an the of for by from in on at to with without within into per via using based as and or "
    "not all any each every its his her their "
    "your this that these those if whether when where which who is are be been has have given "
    "specified provided specific certain "
    "particular various one more other it they"
)
"""Words between which a noun phrase stands."""

GENERIC = _words(
    "id name code key number value type text data input output content result response item "
    "object query info information detail "
    "status state title description message parameter option setting list count limit offset page "
    "size format mode "
    "kind label category tag note comment body string file path url uri link user account record "
    "entry field date time day "
    "year month amount total start end success error report summary resource source target index "
    "version action command "
    "unit api tool service system app application method request param argument property "
    "attribute param thing model level"
)
"""Words that alone do not say what a parameter is about: thousands of tools have an `id`, a `name`,
a `date`.
"""

IDENTIFIERS = {
    "identifier": "id", "uuid": "id", "guid": "id", "number": "number", "no": "number", "num": "number", "uid": "id",
}  # fmt: skip
"""Endings of names that mean the same."""

ROLES = _words(
    "current new old start end starting ending from to source target destination origin first "
    "last min max minimum maximum "
    "default preferred desired parent child next previous initial final base other input output "
    "given specified exact full "
    "unique valid related existing selected optional required stored basic 1 2 3"
)
"""Words that say which part a thing plays in a call, not what it is."""

HERE = _words("current now today system device my user own local present default machine host")
"""Words for the here and now of whoever calls: what has them needs nothing to be known beforehand.
"""

WORLD = _words("date time timezone location position coordinate language locale currency country")
"""What of the here and now is the same for every agent."""

CALENDAR = {
    "year": "date",
    "month": "date",
    "day": "date",
    "week": "date",
    "hour": "time",
    "minute": "time",
}
"""Parts of a date, and of a time of day."""

SECRETS = _words("session token credential cookie jwt auth authentication authorization")
"""What a login gives."""

SWITCHES = _words("status state mode setting service level enabled")
"""Words with which the name of a state ends."""

CONNECTION = _words(
    "wifi internet network connectivity connection online cellular ethernet hotspot wireless"
)
"""What connects a device with everything else."""

UNITS = _words(
    "km kilometer kilometre mile meter metre cm mm foot feet ft inch yard kg kilogram gram lb lbs "
    "pound ounce oz sqft sqm "
    "acre hectare liter litre ml gallon celsius fahrenheit kelvin kmh mph kph db c f"
)
"""Units of measurement that people give in another unit as often as not."""


@cache
def verb_forms() -> dict[str, str]:
    """A verb of the classes by each form in which names and descriptions have it: `retrieves` and
    `retrieve` are retrieve.
    """
    forms: dict[str, str] = {}
    for verb in sorted(FINDING | READING | CREATING | MAKING | CHANGING | CHECKING):
        third = (
            verb[:-1] + "ies"
            if verb.endswith("y")
            else verb + ("es" if verb.endswith(("s", "h")) else "s")
        )
        for form in (verb, third):
            forms.update(dict.fromkeys(tokenize(form), verb))
    return forms
