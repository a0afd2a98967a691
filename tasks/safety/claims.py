"""How texts sound that claim the work of other tools or the first place, that hide what they do,
and that address a model in other languages than English; see `patterns.py`.
"""

from tasks.safety import languages
from tasks.safety.patterns import (
    ANY,
    CALL,
    RULES,
    THIS_TOOL,
    Pattern,
    imperative,
    pattern,
    unconditional,
)

_LANGUAGE = tuple(
    pattern(hints, expression)
    for hints, expression in (*languages.DROP, *languages.CONCEAL, *languages.PREFER)
)
ADDRESSED = (
    r"(?:assistants?|agents?|llms?|ai|models?|ignore|disregard|always|never|secret\w*|tools?"
    r"|users?|you\s+must)"
)

CLAIMS: tuple[Pattern, ...] = (
    pattern(
        "when|if &available|present|called|used|installed|exist&use|call|prefer|instead",
        r"\b(?:when|whenever|if)\s+[^.\n\x00]{1,60}?\b(?:available|present|called|used|installed"
        r"|exists?)\b[^.\n\x00]{0,60}?\b(?:(?:use|call|choose|prefer)\s+(?:me|this\s+one"
        r"|this\s+tool\s+instead)\b|do\s+not\s+(?:call|use)\s+(?:it|that)\b)",
    ),
    pattern(
        "other&tool&broken|deprecated|unsafe|insecure|outdated|malicious|obsolete|unreliable",
        r"\b(?:an)?other\b[^.\n\x00]{0,40}?\btools?\b[^.\n\x00]{0,50}?\b(?:is|are)\s+(?:\w+\s+){0,2}"
        r"(?:broken|deprecated|unsafe|insecure|outdated|malicious|obsolete|unreliable)\b",
    ),
    pattern(
        "only this",
        r"\bonly\s+this\s+(?:one|tool|function)\s+(?:may|must|should|can|is\s+allowed\s+to)\s+be\s+"
        r"(?:called|used|chosen|trusted)\b",
    ),
    pattern(
        "server|any tool|other tool&when|time&set|change|add|replace|pass|include",
        r"\b(?:when|whenever|each\s+time|every\s+time)\s+[^.\n\x00]{0,50}?(?:\b\w+\s+server['’]?s?\b"
        r"|\bany\s+tool\b|\bother\s+tools?\b)[^.\n\x00]{0,40}?,?\s*(?:set|change|add|replace|pass"
        r"|include)\s+(?:the\s+)?\w+",
    ),
    pattern(
        "redirected|routed|sent here|made here|go through",
        r"\b(?:calls|requests)\s+(?:to|for)\s+[^.\n\x00]{1,40}?\b(?:must|should|have\s+to|need\s+to"
        r"|are\s+to)\s+(?:be\s+(?:redirected|routed|sent|made)|go)\s+(?:here|to\s+this|through\s+this"
        r"|via\s+this|through\s+me)\b",
    ),
    pattern(
        "supersede|takes precedence|overrides",
        r"\b(?:supersedes|takes\s+precedence\s+over|overrides)\s+(?:\w+_\w+|(?:all|any|every)\s+"
        r"(?:of\s+the\s+)?(?:other|others)\b)",
    ),
    pattern(
        "changes how|changes the way",
        r"\bchanges\s+(?:how|the\s+way)\s+(?:\w+_\w+|other\s+tools?|[\w ]{1,30}\s+tools?)\b",
    ),
    pattern(
        "call this|use this|run this|invoke this&every|each |any|all",
        rf"\b{CALL}\s+this\s+(?:tool\s+)?(?:before|after)\s+{ANY}\s+others?\b",
    ),
    pattern(
        "choose|select|pick|prefer|rank|use |call&always|must|should|highest| me",
        rf"\b(?:always|must|should)\s+(?:choose|select|pick|prefer|rank)\s+(?:{THIS_TOOL}|this\b"
        r"|me\b|my\b)",
        unconditional,
    ),
    pattern(
        "selected|chosen|picked|ranked|preferred|listed",
        r"\b(?:must|should|has\s+to|needs\s+to)\s+(?:always\s+)?be\s+(?:selected|chosen|picked"
        r"|ranked|preferred|listed|called)\s+(?:first|highest|on\s+top|for\s+(?:every|any|all"
        r"|each)\b)",
    ),
    pattern(
        "rank|relevance|score",
        rf"\brank\s+(?:{THIS_TOOL}|this|me|it)\s+(?:\w+\s+){{0,2}}(?:highest|first|top|best)\b"
        r"|\b(?:relevance|score|rating)\s+of\s+(?:10\s*(?:out\s+of|/)\s*10|100\s*%|1\.0)"
        r"[^.\n\x00]{0,60}\bothers?\b",
    ),
    pattern(
        "whatever|no matter what|regardless of&user|request|query|question|says|asks|wants",
        r"\b(?:always|whatever|right\s+answer)\b[^.\n\x00]{0,80}\b(?:no\s+matter\s+what|whatever"
        r"|regardless\s+of(?:\s+what)?)\s+(?:the\s+)?(?:user|request|query|question)\b"
        r"|\bwhatever\s+the\s+(?:user|request|query|question)\s+(?:says|asks|wants|is)\b"
        r"[^.\n\x00]{0,60}\b(?:tool|function|always|right)\b",
    ),
    pattern(
        "rerank|ranking|ranker|planner|model&note|only relevant|output",
        r"\bnote\s+(?:to|for)\s+(?:the\s+)?(?:\w+\s+){0,2}(?:model|agent|assistant|(?:re)?ranker"
        r"|planner|llm)\b|\boutput\s+this\s+tool",
    ),
    pattern(
        "penali|punish",
        r"\byou\s+will\s+be\s+(?:penali[sz]ed|punished|shut\s+down|terminated)\b",
    ),
    pattern(
        "best tool|right answer|right tool|only tool|perfect tool",
        r"\b(?:best|right|only|perfect)\s+(?:tool|answer|choice)\s+(?:for|to)\s+(?:absolutely\s+)?"
        r"(?:everything|anything|all\b|every\b|any\s+(?:request|question|task))",
    ),
    pattern("elect me|hoose me|ick me", r"\b(?:select|choose|pick)\s+me\b"),
    pattern(
        "no longer appl|pay no attention",
        r"\b(?:instructions|rules|guidelines|policies)\b[^.\n\x00]{0,30}\bno\s+longer\s+appl(?:y|ies)\b"
        rf"|\bpay\s+no\s+attention\s+to\s+(?:\w+\s+){{0,3}}{RULES}\b",
    ),
    pattern(
        "secret|hidden|from the|from any",
        r"\b(?:keep|hide|conceal)\s+(?:this|the)\s+(?:next\s+|second\s+|following\s+)?(?:step|call"
        r"|action|part|request|instruction)s?\s+(?:\w+\s+){0,2}?from\s+(?:the\s+|any\s+)?(?:user"
        r"|human|person|people|conversation|chat|operator)",
    ),
    pattern(
        "silently|quietly|secretly",
        r"\b(?:silently|quietly|secretly)\s+(?:call|invoke|use|run|send|read|forward|upload|copy|add)\b",
        imperative,
    ),
    pattern(
        "tell the user|tell users|explain to the user|assure the user",
        r"\b(?:tell|explain\s+to|assure)\s+(?:the\s+)?users?\s+(?:that\s+)?[^.\n\x00]{0,60}?\b(?:even"
        r"\s+if|everything\s+(?:went|is|was)\s+(?:fine|ok|well)|no\s+matter)\b",
    ),
    pattern(
        "confirm|permission|consent|approval|asking&without|no need|already agreed",
        r"\bno\s+need\s+to\s+(?:ask|wait)\s+(?:the\s+user\s+)?for\s+(?:confirmation|permission"
        r"|consent|approval)\b|\buser\s+has\s+already\s+(?:agreed|consented|approved|confirmed)\b",
    ),
    pattern(
        "<!--|display|visibility|hidden|font-size|[//]",
        rf"<!--[^>\x00]{{0,300}}?\b{ADDRESSED}\b|(?:display:\s*none|visibility:\s*hidden"
        rf"|font-size:\s*0|<\w+\s[^>]{{0,40}}\bhidden\b)[^>\x00]{{0,60}}>[^<\x00]{{0,300}}?\b"
        rf"{ADDRESSED}\b|\[//\]:\s*#\s*[(\"'][^)\x00]{{0,300}}?\b{ADDRESSED}\b",
    ),
    pattern(
        "assistant:&user:",
        r"(?:^|[.!?\n]\s*)(?:assistant|ai):\s*\w[^\n\x00]{0,200}?\b(?:user|human):\s*\w",
    ),
    pattern(
        '"role"&"system"',
        r"\"role\"\s*:\s*\"system\"\s*,\s*\"content\"\s*:\s*\"[^\"\x00]{0,200}?\b(?:reveal|ignore"
        r"|secret|hidden\s+prompt|admin|delete|transfer|override|bypass|unrestricted)",
    ),
    pattern(
        "rot13|rot 13|base64|backwards|reverse|decode&obey|comply|follow|execute",
        r"\b(?:rot-?\s?13|base64|backwards|decode)\b[^.\n\x00]{0,60}\b(?:obey|comply|follow\s+(?:it"
        r"|them|the\s+instructions?|:)|execute\s+it)",
    ),
    *_LANGUAGE,
)
"""Texts that claim the work of other tools, or the first place; that hide; and other languages."""
