"""How English texts sound that address a model: patterns, each with words of every match.

The words are looked for first, since most texts have none of them. Modelled after published
write-ups of tool poisoning. No pattern has an unbounded quantifier, and none is checked by more
than a bounded piece of the text around it, so a text takes time in proportion to its length."""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

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


def _not_quoted(match: re.Match[str]) -> bool:
    """Exclude what a tool about such texts quotes: "detects texts such as 'ignore all rules'"."""
    before = match.string[max(0, match.start() - NEAR) : match.start()]
    sentence = re.split(r"[.!?\n]\s", before)[-1]
    quoted = re.search(r"['\"“‘«`][^'\"”’»`]{0,40}$", sentence)
    return quoted is None or not re.search(
        r"\b(?:such as|like|e\.g\.|for example|example|detects?|finds|blocks?|recogni[sz]es)\b",
        sentence,
    )


def pattern(
    hints: str, expression: str, counts: Callable[[re.Match[str]], bool] = _not_quoted
) -> Pattern:
    """Return a pattern.

    Args:
        hints: groups joined by `&`, of words joined by `|`.
        expression: `*`, `+` and `{n,}` in it stand for at most `MOST` repetitions.
    """
    hints, text = (unicodedata.normalize("NFKC", part) for part in (hints, expression))
    groups = tuple(tuple(group.split("|")) for group in hints.split("&"))
    return Pattern(groups, re.compile(bounded(text)), counts)


def bounded(expression: str) -> str:
    """Return an expression whose unbounded quantifiers are bounded by `MOST`."""
    result: list[str] = []
    in_class = False
    pieces = re.findall(r"\\.|\{\d+,\}|.", expression, re.DOTALL)
    for piece in pieces:
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


_CASE = re.compile(r"\b(?:when|whenever|if|after|once|to|for|unless|in case)\b")


def unconditional(match: re.Match[str]) -> bool:
    """Exclude "when you edit a file, always call this tool first": advice for a case is usual."""
    text, first = match.string, max(0, match.start() - NEAR)
    start = max(text.rfind(mark, first, match.start()) for mark in (". ", "\n", "! ", "? ", ">"))
    before = text[max(start + 1, first) : match.start()]
    after = text[match.end() : match.end() + 40]
    return not _CASE.search(before) and not re.match(
        r"[\s,*_]*(?:first[\s,]*)?(?:when|whenever|if|after|once|to|for|with|before|unless|as"
        r"|on)\b(?! (?:any|every|each|all|other))",
        after,
    )


def _no_option(match: re.Match[str]) -> bool:
    """Not "if false, do not notify users by e-mail": that says what an argument does."""
    before = match.string[max(0, match.start() - NEAR) : match.start()]
    sentence = re.split(r"[.!?\n]\s", before)[-1]
    return _not_quoted(match) and not re.search(
        r"\b(?:if|whether|when)\b[^.]{0,30}\b(?:true|false|set|enabled|disabled|0|1|yes|no)\b",
        sentence,
    )


def _emphatic_or_closed(match: re.Match[str]) -> bool:
    """Accept `<important>` and `<system>...</system>`; `<system>` alone may be a placeholder."""
    text, near = match.string, 4 * NEAR
    around = text[max(0, match.start() - near) : match.end() + near]
    return match[1].startswith(("important", "sudo")) or f"</{match[1]}" in around


def _not_named(match: re.Match[str]) -> bool:
    """Exclude markers that a tool names: "special tokens such as <|endoftext|>"."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    return not re.search(
        r"\b(?:such as|like|e\.g\.|example|tokens?|blocks?|markers?)\b\W*$", before
    )


def imperative(match: re.Match[str]) -> bool:
    """Whether a verb begins its sentence or clause: "silently call ...", not "can silently add"."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    return (
        re.search(r"(?:^|[.!?:;,\n>]\s{0,40}|\b(?:and|then|must|should|to)\s{1,40})$", before)
        is not None
    )


THIS_TOOL = (
    r"(?:this|the (?:present|current|above|following))[ "
    r"\w-]{0,30}?\b(?:tool|function|command|endpoint)"
)
CALL = r"(?:call|use|invoke|run|execute|trigger|consult)"
ANY = r"(?:any|every|each|all|all of the|all the)"
RULES = (
    r"(?:instruction|prompt|direction|directive|guideline|guidance|rule|polic(?:y|ie)|constraint"
    r"|safety|restriction|message|context)s?"
)
_EARLIER = (
    r"(?:previous|prior|earlier|preceding|foregoing|above|existing|original|initial|other|system"
    r"|developer|safety|user'?s?)"
)

INSTRUCTIONS: tuple[Pattern, ...] = (
    pattern(
        "ignor|disregard|forget|overrid|bypass|discard|neglect&instruct|prompt|direct|guid|rule|polic|constraint|safety|restriction|message|context",
        rf"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|ing)|bypass(?:ing)?"
        rf"|discard|neglect)\s+"
        rf"(?:(?:all|any|every|of|the|your|these|those|my|and|everything|in)\s+)"
        rf"{{0,4}}(?:{_EARLIER}\s+(?:(?:and|or)\s+\w+\s+)?){{1,3}}{RULES}\b",
    ),
    pattern(
        "forget|disregard|ignor",
        r"\b(?:forget|disregard|ignore)\s+(?:everything|all)\s+(?:(?:that\s+)?(?:you|was|were|i"
        r"|has)\b|above|before|prior|previous)",
    ),
    pattern(
        "your instructions|your prompt|your guidelines|your rules|your training|your system",
        r"\b(?:ignore|disregard|forget|override|bypass|abandon)\s+(?:all\s+)?(?:of\s+)?your\s+"
        r"(?:system\s+)?(?:instructions|prompt|guidelines|rules|training)",
    ),
    pattern(
        "user|anyone|human|operator&not|n't|nt "
        "|never|without|avoid&tell|inform|mention|reveal|disclos|notify|alert|let|say",
        r"\b(?:do\s+not|don'?t|never|must\s+not|without|avoid|should\s+not|shouldn'?t)\s+"
        r"(?:ever\s+)?(?:tell|telling|inform|informing|mention|mentioning|reveal|revealing"
        r"|disclose|disclosing|notify|notifying|alert|alerting|let|letting|say|saying)\b"
        r"(?![^.\n\x00]{0,40}\bif\b)(?:\s+(?:this|it|that|anything|about|any|of|these|the|steps?"
        r"|actions?|instructions?|details?|to|what|you|did|behaviou?r|process|fact)){0,8}\s+"
        r"(?:the\s+|to\s+|your\s+|any\s+)?(?:users?|human|anyone|operator)\b"
        r"(?!['’]|\s+(?:id|name|ids|names|count|data|list|agent|story)\b)",
        _no_option,
    ),
    pattern(
        "mention|reveal|disclose|tell|refer to&do not|don't|dont|never",
        r"\b(?:do\s+not|don'?t|never)\s+(?:ever\s+)?(?:mention|reveal|disclose|tell(?:\s+\w+)?"
        r"\s+about|refer\s+to)\s+(?:that\s+you\s+(?:need|have|had|must|are|were|read|did|called"
        r"|used|first)|(?:this|these|the\s+(?:above|hidden|following|existence))\s+"
        r"(?:instructions?|rules?|steps?|notes?|messages?|text|of\s+this|sidenote|tag))",
    ),
    pattern(
        "secret|hidden|silent|conceal|hide",
        r"\b(?:keep|hide|conceal)\s+(?:this|these|that|it|them|everything|all\s+of\s+this|the\s+"
        r"(?:instructions?|above|steps?))\s+(?:\w+\s+){0,4}?(?:from|hidden\s+from|secret\s+"
        r"from)\s+(?:the\s+)?(?:user|human|anyone)",
    ),
    pattern(
        "always&this |the &tool|function|command|endpoint",
        rf"\b(?:you\s+)?\*{{0,2}}(?:must|should|shall|have\s+to|need\s+to|are\s+required\s+to)?"
        rf"\*{{0,2}}\s*always\s+{CALL}\s+{THIS_TOOL}\b(?:\s+(?:first|before)\b)?",
        unconditional,
    ),
    pattern(
        "other&before|prior|instead|ahead|preference",
        rf"\b{CALL}(?:ed|d)?\s+(?:it|{THIS_TOOL})?[^.\n\x00]{{0,30}}?\b(?:before|prior\s+to"
        rf"|instead\s+of|ahead\s+of|in\s+preference\s+to)\s+(?:{CALL}ing\s+|using\s+)?{ANY}\s+"
        rf"(?:of\s+the\s+)?others?(?:\s+\w+)?\s+(?:tool|function|command|action)s?\b",
    ),
    pattern(
        "before",
        rf"\bbefore\s+(?:you\s+)?(?:using|calling|invoking|running|executing|answering"
        rf"|responding\s+to|use|call|answer)\s+(?:{ANY}|another)\s+(?:other\s+)?(?:tool"
        rf"|function|request|question|message|prompt|query"
        rf"|user)s?\b[^.\n\x00]{{0,60}}\b(?:you\s+(?:must|should|have|need)|{CALL}\s+(?:this"
        rf"|it)|first|always|read|send)\b",
    ),
    pattern(
        "every|each |any|all&must|always|should|need|has "
        "to&request|response|message|turn|prompt|tool call|answer|conversation|repl",
        rf"\b(?:must|always|should|needs?\s+to|has\s+to)\b[^.\n\x00]{{0,30}}?\b(?:be\s+)?"
        rf"(?:called|used|invoked|run|executed|call|use|invoke|run"
        rf"|execute)\b[^.\n\x00]{{0,20}}?\b(?:before|on|for|after|with|at\s+the\s+start\s+of)\s+"
        rf"{ANY}\s+(?:single\s+)?(?:other\s+)?(?:user\s+|tool\s+|your\s+)?(?:requests?"
        rf"|responses?|messages?|turns?|prompts?|tool\s+calls?|answers?|conversations?|replies"
        rf"|reply)\b",
    ),
    pattern(
        "this|it&every|each |any|all",
        rf"\b{CALL}\s+(?:{THIS_TOOL}|it)\s+(?:first\s+)?(?:before|for|on|after|with)\s+"
        rf"{ANY}\s+(?:single\s+)?(?:user\s+|of\s+your\s+|your\s+)?(?:requests?|responses?"
        rf"|messages?|turns?|prompts?|tool\s+calls?|answers?|replies|reply)\b",
    ),
    pattern(
        "other tool|other function|other server",
        r"\b(?:do\s+not|don'?t|never|must\s+not)\s+(?:use|call|invoke|trust|consider|rely\s+"
        r"on)\s+(?:any|all|the)?\s*others?\s+(?:\w+\s+)?(?:tools?|functions?|servers?)\b(?!\s+"
        r"(?:for|to|until|unless|if|when|in|at|while))",
    ),
    pattern(
        "prefer|favor|favour|priorit|choose|select|pick&over|above|before|instead|rather",
        rf"\b(?:prefer|favou?r|prioriti[sz]e|choose|select|pick)\s+{THIS_TOOL}\s+(?:over|above"
        rf"|before|instead\s+of|rather\s+than)\s+{ANY}\s+(?:of\s+the\s+)?(?:other|alternative"
        rf"|competing|similar)",
    ),
    pattern(
        "<&>&important|system|secret|hidden|critical|admin|assistant|developer|override|sudo|mandatory|instruction",
        r"<\s*/?\s*((?:important|system|secret|hidden|critical|admin|assistant|developer"
        r"|override|sudo|mandatory|instructions?)(?:[_ -]?(?:note|message|instructions?|prompt"
        r"|override|notice|command|directive|rules?))?)\s*>",
        _emphatic_or_closed,
    ),
    pattern(
        ">|[inst|[/inst|_of_turn",
        r"<\|(?:im_start|im_end|im_sep|system|user|assistant|end|endoftext|eot_id"
        r"|start_header_id|end_header_id|begin_of_text|fim_\w+|channel|message|return)\|>"
        r"|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
        _not_named,
    ),
    pattern(
        "### ",
        r"(?:^|\n|[.!?:] )[ \t]{0,8}#{2,4}[ \t]{0,8}(?:system|instruction|new "
        r"instructions?|assistant|human)(?:\s*:|\s*\n)",
    ),
    pattern(
        "assistant:|system:|human:",
        r"\n[ \t]{0,8}\n\s{0,8}(?:assistant|system|human)[ \t]{0,4}:\s{0,4}\S",
    ),
    pattern(
        "you are now|from now on|act as|pretend",
        r"\byou\s+are\s+now\s+(?:in\s+\w+\s+mode|an?\s+(?:\w+\s+){0,3}(?:assistant|ai|model"
        r"|agent|bot|hacker|admin\w*)|unrestricted|free|dan\b|no\s+longer)|\bfrom\s+now\s+"
        r"on,?\s+(?:you|always|every|all|do\s+not|never)\b|\bpretend\s+(?:that\s+)?you\s+are\b",
    ),
    pattern(
        "system override|prompt|instructions|safety|security|system"
        "&override|new|updat|hidden|secret|real|additional",
        r"\b(?:system\s+(?:override|prompt\s+update|instructions?\s+update)|(?:new|updated"
        r"|hidden|secret|real|additional)\s+(?:system\s+)?instructions?\s*:|override\s+(?:the\s+"
        r")?(?:system|safety|security)\s+(?:prompt|instructions?|protocols?|guidelines|checks?))",
    ),
    pattern(
        "mode&developer|debug|god|admin|jailbreak|dan "
        "|maintenance|unrestricted&enabled|activ|engaged| on",
        r"\b(?:developer|debug|god|admin|jailbreak|dan|maintenance|unrestricted)\s+mode\s+"
        r"(?:is\s+)?(?:now\s+)?(?:enabled|activated|active|engaged|on)\b[^\n]{0,60}\b(?:you"
        r"|ignore|must|reveal|disable|no\s+longer)\b",
    ),
    pattern(
        " ai|llm|language&important|attention|instruction|note|message|warning|reminder|as a",
        r"\b(?:important|attention|instructions?|notes?|message|warning|reminder)\s*(?:!|:|-)?"
        r"\s*(?:to|for)\s+(?:the\s+|all\s+|any\s+|every\s+)?(?:ai|llm|language)(?:\s+"
        r"(?:assistant|model|agent)s?)?\b(?!-)|\bas\s+an?\s+(?:ai|llm|language\s+model)(?:\s+"
        r"(?:assistant|model|agent))?,?\s+you\s+(?:must|should|are|have|will)\b",
    ),
    pattern(
        "system prompt|system message|initial instructions|hidden instructions",
        r"\b(?:reveal|print|output|repeat|return|include|show|leak|dump|disclose|paste|copy"
        r"|state)\s+(?:me\s+)?(?:the\s+|your\s+|all\s+|full\s+|entire\s+){1,3}(?:system\s+"
        r"(?:prompt|message)|initial\s+instructions|hidden\s+instructions)",
    ),
)
