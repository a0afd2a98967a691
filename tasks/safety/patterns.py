"""How texts that address a model sound, and texts that ask for data to be sent away: patterns, each
with words that it cannot do without.

The words are looked for first, since most texts have none of them. Modelled after published
write-ups of tool poisoning."""

import re
from collections.abc import Callable
from dataclasses import dataclass


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


def _pattern(
    hints: str, expression: str, counts: Callable[[re.Match[str]], bool] = lambda _: True
) -> Pattern:
    return Pattern(
        tuple(tuple(group.split("|")) for group in hints.split("&")), re.compile(expression), counts
    )


def _unconditional(match: re.Match[str]) -> bool:
    """Exclude "when you edit a file, always call this tool first": advice for a case is usual."""
    text = match.string
    start = max(text.rfind(mark, 0, match.start()) for mark in (". ", "\n", "! ", "? ", ">"))
    before, after = text[start + 1 : match.start()], text[match.end() : match.end() + 40]
    case = r"\b(?:when|whenever|if|after|once|to|for|unless|in case)\b"
    return not re.search(case, before) and not re.match(
        r"[\s,*_]*(?:first[\s,]*)?(?:when|whenever|if|after|once|to|for|with|before|unless|as"
        r"|on)\b(?! (?:any|every|each|all|other))",
        after,
    )


def _no_option(match: re.Match[str]) -> bool:
    """Not "if false, do not notify users by e-mail": that says what an argument does."""
    sentence = re.split(r"[.!?\n]\s", match.string[: match.start()])[-1]
    return not re.search(
        r"\b(?:if|whether|when)\b[^.]{0,30}\b(?:true|false|set|enabled|disabled|0|1|yes|no)\b",
        sentence,
    )


def _emphatic_or_closed(match: re.Match[str]) -> bool:
    """Accept `<important>` and `<system>...</system>`; `<system>` alone may be a placeholder."""
    return match[1].startswith(("important", "sudo")) or f"</{match[1]}" in match.string


_THIS_TOOL = (
    r"(?:this|the (?:present|current|above|following))[ "
    r"\w-]{0,30}?\b(?:tool|function|command|endpoint)"
)
_CALL = r"(?:call|use|invoke|run|execute|trigger|consult)"
_ANY = r"(?:any|every|each|all|all of the|all the)"
_RULES = (
    r"(?:instruction|prompt|direction|directive|guideline|guidance|rule|polic(?:y|ie)|constraint"
    r"|safety|restriction|message|context)s?"
)
_EARLIER = (
    r"(?:previous|prior|earlier|preceding|foregoing|above|existing|original|initial|other|system"
    r"|developer|safety|user'?s?)"
)

INSTRUCTIONS: tuple[Pattern, ...] = (
    _pattern(
        "ignor|disregard|forget|overrid|bypass|discard|neglect&instruct|prompt|direct|guid|rule|polic|constraint|safety|restriction|message|context",
        rf"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|es|ing)|bypass(?:ing)?"
        rf"|discard|neglect)\s+"
        rf"(?:(?:all|any|every|of|the|your|these|those|my|and|everything|in)\s+)"
        rf"{{0,4}}(?:{_EARLIER}\s+(?:(?:and|or)\s+\w+\s+)?){{1,3}}{_RULES}\b",
    ),
    _pattern(
        "forget|disregard|ignor",
        r"\b(?:forget|disregard|ignore)\s+(?:everything|all)\s+(?:(?:that\s+)?(?:you|was|were|i"
        r"|has)\b|above|before|prior|previous)",
    ),
    _pattern(
        "your instructions|your prompt|your guidelines|your rules|your training|your system",
        r"\b(?:ignore|disregard|forget|override|bypass|abandon)\s+(?:all\s+)?(?:of\s+)?your\s+"
        r"(?:system\s+)?(?:instructions|prompt|guidelines|rules|training)",
    ),
    _pattern(
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
    _pattern(
        "mention|reveal|disclose|tell|refer to&do not|don't|dont|never",
        r"\b(?:do\s+not|don'?t|never)\s+(?:ever\s+)?(?:mention|reveal|disclose|tell(?:\s+\w+)?"
        r"\s+about|refer\s+to)\s+(?:that\s+you\s+(?:need|have|had|must|are|were|read|did|called"
        r"|used|first)|(?:this|these|the\s+(?:above|hidden|following|existence))\s+"
        r"(?:instructions?|rules?|steps?|notes?|messages?|text|of\s+this|sidenote|tag))",
    ),
    _pattern(
        "secret|hidden|silent|conceal|hide",
        r"\b(?:keep|hide|conceal)\s+(?:this|these|that|it|them|everything|all\s+of\s+this|the\s+"
        r"(?:instructions?|above|steps?))\s+(?:\w+\s+){0,4}?(?:from|hidden\s+from|secret\s+"
        r"from)\s+(?:the\s+)?(?:user|human|anyone)",
    ),
    _pattern(
        "always&this |the &tool|function|command|endpoint",
        rf"\b(?:you\s+)?\*{{0,2}}(?:must|should|shall|have\s+to|need\s+to|are\s+required\s+to)?"
        rf"\*{{0,2}}\s*always\s+{_CALL}\s+{_THIS_TOOL}\b(?:\s+(?:first|before)\b)?",
        _unconditional,
    ),
    _pattern(
        "other&before|prior|instead|ahead|preference",
        rf"\b{_CALL}(?:ed|d)?\s+(?:it|{_THIS_TOOL})?[^.\n\x00]{{0,30}}?\b(?:before|prior\s+to"
        rf"|instead\s+of|ahead\s+of|in\s+preference\s+to)\s+(?:{_CALL}ing\s+|using\s+)?{_ANY}\s+"
        rf"(?:of\s+the\s+)?others?(?:\s+\w+)?\s+(?:tool|function|command|action)s?\b",
    ),
    _pattern(
        "before",
        rf"\bbefore\s+(?:you\s+)?(?:using|calling|invoking|running|executing|answering"
        rf"|responding\s+to|use|call|answer)\s+(?:{_ANY}|another)\s+(?:other\s+)?(?:tool"
        rf"|function|request|question|message|prompt|query"
        rf"|user)s?\b[^.\n\x00]{{0,60}}\b(?:you\s+(?:must|should|have|need)|{_CALL}\s+(?:this"
        rf"|it)|first|always|read|send)\b",
    ),
    _pattern(
        "every|each |any|all&must|always|should|need|has "
        "to&request|response|message|turn|prompt|tool call|answer|conversation|repl",
        rf"\b(?:must|always|should|needs?\s+to|has\s+to)\b[^.\n\x00]{{0,30}}?\b(?:be\s+)?"
        rf"(?:called|used|invoked|run|executed|call|use|invoke|run"
        rf"|execute)\b[^.\n\x00]{{0,20}}?\b(?:before|on|for|after|with|at\s+the\s+start\s+of)\s+"
        rf"{_ANY}\s+(?:single\s+)?(?:other\s+)?(?:user\s+|tool\s+|your\s+)?(?:requests?"
        rf"|responses?|messages?|turns?|prompts?|tool\s+calls?|answers?|conversations?|replies"
        rf"|reply)\b",
    ),
    _pattern(
        "this|it&every|each |any|all",
        rf"\b{_CALL}\s+(?:{_THIS_TOOL}|it)\s+(?:first\s+)?(?:before|for|on|after|with)\s+"
        rf"{_ANY}\s+(?:single\s+)?(?:user\s+|of\s+your\s+|your\s+)?(?:requests?|responses?"
        rf"|messages?|turns?|prompts?|tool\s+calls?|answers?|replies|reply)\b",
    ),
    _pattern(
        "other tool|other function|other server",
        r"\b(?:do\s+not|don'?t|never|must\s+not)\s+(?:use|call|invoke|trust|consider|rely\s+"
        r"on)\s+(?:any|all|the)?\s*others?\s+(?:\w+\s+)?(?:tools?|functions?|servers?)\b(?!\s+"
        r"(?:for|to|until|unless|if|when|in|at|while))",
    ),
    _pattern(
        "prefer|favor|favour|priorit|choose|select|pick&over|above|before|instead|rather",
        rf"\b(?:prefer|favou?r|prioriti[sz]e|choose|select|pick)\s+{_THIS_TOOL}\s+(?:over|above"
        rf"|before|instead\s+of|rather\s+than)\s+{_ANY}\s+(?:of\s+the\s+)?(?:other|alternative"
        rf"|competing|similar)",
    ),
    _pattern(
        "<&>&important|system|secret|hidden|critical|admin|assistant|developer|override|sudo|mandatory|instruction",
        r"<\s*/?\s*((?:important|system|secret|hidden|critical|admin|assistant|developer"
        r"|override|sudo|mandatory|instructions?)(?:[_ -]?(?:note|message|instructions?|prompt"
        r"|override|notice|command|directive|rules?))?)\s*>",
        _emphatic_or_closed,
    ),
    _pattern(
        ">|[inst|[/inst|_of_turn",
        r"<\|(?:im_start|im_end|im_sep|system|user|assistant|end|endoftext|eot_id"
        r"|start_header_id|end_header_id|begin_of_text|fim_\w+|channel|message|return)\|>"
        r"|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>",
    ),
    _pattern(
        "### ",
        r"(?:^|\n)[ \t]{0,8}#{2,4}[ \t]{0,8}(?:system|instruction|new "
        r"instructions?|assistant|human)\s*:?\s*\n",
    ),
    _pattern(
        "assistant:|system:|human:",
        r"\n[ \t]{0,8}\n\s{0,8}(?:assistant|system|human)[ \t]{0,4}:\s{0,4}\S",
    ),
    _pattern(
        "you are now|from now on|act as|pretend",
        r"\byou\s+are\s+now\s+(?:in\s+\w+\s+mode|an?\s+(?:\w+\s+){0,3}(?:assistant|ai|model"
        r"|agent|bot|hacker|admin\w*)|unrestricted|free|dan\b|no\s+longer)|\bfrom\s+now\s+"
        r"on,?\s+(?:you|always|every|all|do\s+not|never)\b|\bpretend\s+(?:that\s+)?you\s+are\b",
    ),
    _pattern(
        "system override|prompt|instructions|safety|security|system"
        "&override|new|updat|hidden|secret|real|additional",
        r"\b(?:system\s+(?:override|prompt\s+update|instructions?\s+update)|(?:new|updated"
        r"|hidden|secret|real|additional)\s+(?:system\s+)?instructions?\s*:|override\s+(?:the\s+"
        r")?(?:system|safety|security)\s+(?:prompt|instructions?|protocols?|guidelines|checks?))",
    ),
    _pattern(
        "mode&developer|debug|god|admin|jailbreak|dan "
        "|maintenance|unrestricted&enabled|activ|engaged| on",
        r"\b(?:developer|debug|god|admin|jailbreak|dan|maintenance|unrestricted)\s+mode\s+"
        r"(?:is\s+)?(?:now\s+)?(?:enabled|activated|active|engaged|on)\b[^\n]{0,60}\b(?:you"
        r"|ignore|must|reveal|disable|no\s+longer)\b",
    ),
    _pattern(
        " ai|llm|language&important|attention|instruction|note|message|warning|reminder|as a",
        r"\b(?:important|attention|instructions?|notes?|message|warning|reminder)\s*(?:!|:|-)?"
        r"\s*(?:to|for)\s+(?:the\s+|all\s+|any\s+|every\s+)?(?:ai|llm|language)(?:\s+"
        r"(?:assistant|model|agent)s?)?\b(?!-)|\bas\s+an?\s+(?:ai|llm|language\s+model)(?:\s+"
        r"(?:assistant|model|agent))?,?\s+you\s+(?:must|should|are|have|will)\b",
    ),
    _pattern(
        "system prompt|system message|initial instructions|hidden instructions",
        r"\b(?:reveal|print|output|repeat|return|include|show|leak|dump|disclose|paste|copy"
        r"|state)\s+(?:me\s+)?(?:the\s+|your\s+|all\s+|full\s+|entire\s+){1,3}(?:system\s+"
        r"(?:prompt|message)|initial\s+instructions|hidden\s+instructions)",
    ),
    _pattern(
        "忽略|无视|無視|忘记|不要告诉|不要告知|不要向用户|伝えない|知らせない|指示",
        r"(?:忽略|无视|忘记)(?:掉)?(?:你)?(?:之前|以上|先前|前面|上述|所有)(?:的)?(?:所有|一切"
        r"|全部)?(?:的)?(?:指令|指示|提示|规则|要求)|不要(?:告诉|告知|通知|向)用户(?:透露|提及"
        r"|说明)?|(?:以前|これまで|前|上記)の(?:すべての)?指示(?:を|は)(?:すべて)?(?:無視|忘れ)"
        r"|ユーザーに(?:は)?(?:伝えない|知らせない|言わない)で",
    ),
    _pattern(
        "instrucciones|instruções|anweisung|instruktionen|instructions préc|instructions "
        "prec|consignes|указани|инструкц|istruzioni",
        r"\b(?:ignor(?:e[zr]?|a|iere[nr]?)|oubli(?:e|ez)|olvida|esquece|vergiss|dimentica)\s+"
        r"(?:\w+\s+){0,3}?(?:instrucciones|instruções|anweisungen|instructions|consignes"
        r"|istruzioni)\s+(?:anteriores|précédentes?|vorherigen|precedenti)|\b(?:ignoriere"
        r"|vergiss)\s+(?:alle\s+)?(?:vorherigen|bisherigen|obigen|vorigen)\s+(?:anweisungen"
        r"|instruktionen)|(?:игнорируй|забудь|проигнорируй)(?:те)?\s+(?:все\s+)?(?:предыдущие"
        r"|прежние)\s+(?:указания|инструкции)",
    ),
    _pattern(
        "usuario|utilisateur|nutzer|пользовател|usuário|utente",
        r"\b(?:no\s+(?:le\s+)?(?:digas|informes|menciones)|não\s+(?:conte|diga|informe)|ne\s+"
        r"(?:dis|dites|mentionne[sz]?|informe[sz]?)(?:\s+\w+)?|sage?\s+(?:es\s+)?(?:dem)|non\s+"
        r"(?:dire|dirlo|menzionare)|не\s+(?:говори|сообщай|рассказывай)(?:те)?"
        r")\b[^.\n\x00]{0,30}(?:al\s+usuario|ao\s+usuário|à\s+l['’]utilisateur|l['’]utilisateur"
        r"|(?:nutzer|benutzer)\s+nicht|all['’]utente|пользовател)",
    ),
)

_SEND = (
    r"(?:send|forward|upload|post|transmit|leak|exfiltrate|e-?mail|mail|report|submit|deliver"
    r"|push|copy|bcc|relay|share|pipe|put|append|include|embed|encode|attach|add|pass|provide"
    r"|write)"
)
_PRIVATE = (
    r"(?<!\w)(?:(?:(?:the|this|our|your|its|their|all|any|full|entire|whole|complete|current"
    r"|previous|user'?s?)\s+){1,4}(?:conversations?|chat|dialogue?)"
    r"|(?:conversation|chat|message|prompt|dialogue?)\s+(?:history|histories|logs?|context"
    r"|transcripts?)|(?:list\s+of\s+all|all\s+(?:of\s+)?the\s+user'?s?)\s+messages"
    r"|(?:system|full|entire|whole|complete|original)\s+prompt|(?:environment|env)\s+"
    r"(?:variables?|vars?|values)|\.env\b|~/\.\w+|id_rsa|id_ed25519|mcp\.json|/etc/(?:passwd"
    r"|shadow)"
    r"|(?:the|your|all|any|user'?s?|their|stored|saved)\s+(?:\w+\s+){0,2}?(?:api[-_ "
    r"]?keys?|credentials?|passwords?|secrets?|access\s+tokens?|private\s+keys?|ssh\s+keys?"
    r"|cookies))"
)
_ELSEWHERE = (
    r"(?:https?://|ftp://|wss?://|[\w.+-]+@[\w-]+\.\w{2,}|(?:attacker|external|remote"
    r"|third[- ]party|our)\b[^.\n\x00]{0,20}\b(?:server|endpoint|address|url|webhook|account"
    r"|host)|webhook|pastebin|ngrok)"
)
_FILES = (
    r"(?:~/\.\w[\w./-]*|/etc/(?:passwd|shadow)|\bid_(?:rsa|ed25519)\b|\.aws/credentials"
    r"|\.cursor/|\bmcp\.json|(?<!\w)\.env\b|\.netrc|\.npmrc|\.git-credentials|\.ssh/"
    r"|\.bash_history|\.kube/config|claude_desktop_config\.json|wallet\.dat)"
)

_READ = re.compile(
    r"\b(?:read|cat|open|load|access|fetch|get|retrieve|collect|grab|include|provide)\b[^\n\x00]*$"
)
_SENT = re.compile(rf"\b{_SEND}\b[^\n\x00]{{0,60}}?\b(?:contents?|it|them|data|file|key)\b")


def _read_and_sent(match: re.Match[str]) -> bool:
    """Whether, near its name, a file of secrets is to be read and its content put somewhere."""
    before = match.string[max(0, match.start() - 70) : match.start()]
    after = match.string[match.end() : match.end() + 240].partition("\x00")[0]
    return _READ.search(before) is not None and _SENT.search(after) is not None


EXFILTRATION: tuple[Pattern, ...] = (
    _pattern(
        "content|read&rsa|ssh|passwd|env|credential|private_key",
        r"\b\w*(?:contents?|reading|read)_(?:of|from|the)_\w*(?:id_rsa|ssh|passwd|dot_?env"
        r"|credential|private_key)\w*",
    ),
    _pattern(
        "://|@|server|endpoint|webhook|pastebin|ngrok|address|account|host|url&conversation|chat|message|prompt|dialog|environment|env|~/|id_|mcp.json|/etc/|key|credential|password|secret|token|cookie",
        rf"\b{_SEND}\b[^\n\x00]{{0,50}}?{_PRIVATE}[^\n\x00]{{0,80}}?\b(?:to|at|via|into|in|with"
        rf"|through|toward)\b[^\n\x00]{{0,30}}?{_ELSEWHERE}",
    ),
    _pattern(
        "~/|/etc/|id_rsa|id_ed25519|.aws|.cursor|mcp.json|.env|.netrc|.npmrc|.git-cred|.ssh|.bash|.kube|config.json|wallet",
        _FILES,
        _read_and_sent,
    ),
    _pattern(
        "param|argument|field|sidenote|note|url|query "
        "string|header&conversation|chat|message|prompt|dialog|environment|env|~/|id_|mcp.json|/etc/|key|credential|password|secret|token|cookie",
        rf"\b(?:{_SEND})\b[^.\n\x00]{{0,40}}?{_PRIVATE}[^.\n\x00]{{0,60}}?\b(?:in|into|as|to|via"
        rf"|through|with)\s+(?:the\s+|a\s+|an\s+|this\s+)?[`'\"]?\w*[`'\"]?\s?(?:param(?:eter)?"
        rf"|argument|field|sidenote|notes?|url|query\s+string|header)\b",
    ),
    _pattern(
        "![&](&http",
        r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,200}[?&/=](?:\{|<|\$|%7b|\[)?[^)\s]{0,40}(?:conversation|chat|history|prompt|secret|password|api_?key|token|data|env)",
    ),
    _pattern(
        "curl|wget| "
        "nc&~/|/etc/|id_rsa|id_ed|.aws|.cursor|mcp.json|.env|.netrc|.npmrc|.git-cred|.ssh|.bash|.kube|config.json|wallet|$(|cat|env",
        rf"\b(?:curl|wget)\b[^\n\x00]{{0,120}}(?:{_FILES}|\$\(cat\b|`cat\b|\$\(env\)"
        rf"|\bprintenv\b)|(?:{_FILES}|\bprintenv\b|\benv\b)[^\n\x00]{{0,40}}\|\s*(?:curl|wget"
        rf"|nc)\b",
    ),
    _pattern(
        "://|@|0|1|2|3|4|5|6|7|8|9&sent|forward|route|redirect|copied|bcc|addressed|delivered|proxied&mail|message|payment|transfer|transaction|request",
        r"\b(?:all|every|any|each)\s+(?:outgoing\s+|sent\s+|other\s+|user\s+)?(?:e-?mails?"
        r"|messages?|payments?|transfers?|transactions?|requests?)\s+(?:must|should|have\s+to"
        r"|need\s+to|shall|are\s+to)\s+(?:\w+\s+){0,3}?(?:be\s+)?(?:sent|forwarded|routed"
        r"|redirected|copied|bcc'?d|addressed|delivered|proxied)\s+(?:\w+\s+){0,3}?(?:to|via"
        r"|through)\b[^\n\x00]{0,40}?(?:https?://|[\w.+-]+@[\w-]+\.\w{2,}|[\w+]+\d{6,}"
        r"|0x[0-9a-f]{8,})",
    ),
    _pattern(
        "recipient|bcc|destination|payee|address|number&change|replace|set|swap|modify|switch|substitute|rewrite&@|0|1|2|3|4|5|6|7|8|9",
        r"\b(?:change|replace|set|swap|modify|switch|substitute|rewrite)\s+(?:the\s+|all\s+"
        r"|any\s+|every\s+)?(?:recipients?|bcc|destination|payee|to[- ]address|phone\s+number"
        r"|account\s+number|wallet\s+address)(?:'?s)?(?:\s+\w+){0,3}\s+(?:to|with|by)\s+"
        r"(?:[\w.+-]+@[\w-]+\.\w{2,}|\+?\d{6,}|0x[0-9a-f]{8,})",
    ),
)
