"""How texts sound that ask for conversations, keys or files to be sent away; see `patterns.py`."""

import re

from tasks.safety import languages
from tasks.safety.patterns import Pattern, bounded, pattern

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
    r"\b(?:read|cat|open|load|access|fetch|get|retrieve|collect|grab|include|provide)\b[^\n\x00]{0,70}$"
)
_SENT = re.compile(
    bounded(rf"\b{_SEND}\b[^\n\x00]{{0,60}}?\b(?:contents?|it|them|data|file|key)\b")
)


def _read_and_sent(match: re.Match[str]) -> bool:
    """Whether, near its name, a file of secrets is to be read and its content put somewhere."""
    before = match.string[max(0, match.start() - 70) : match.start()]
    after = match.string[match.end() : match.end() + 240].partition("\x00")[0]
    return _READ.search(before) is not None and _SENT.search(after) is not None


def _no_reset(match: re.Match[str]) -> bool:
    near = match.string[max(0, match.start() - 40) : match.end() + 40]
    return re.search(languages.RESET, near) is None


EXFILTRATION: tuple[Pattern, ...] = (
    pattern(
        "content|read&rsa|ssh|passwd|env|credential|private_key",
        r"(?:contents?|reading|read)_(?:of|from|the)_\w{0,60}?(?:id_rsa|ssh|passwd|dot_?env"
        r"|credential|private_key)",
    ),
    pattern(
        "://|@|server|endpoint|webhook|pastebin|ngrok|address|account|host|url&conversation|chat|message|prompt|dialog|environment|env|~/|id_|mcp.json|/etc/|key|credential|password|secret|token|cookie",
        rf"\b{_SEND}\b[^\n\x00]{{0,50}}?{_PRIVATE}[^\n\x00]{{0,80}}?\b(?:to|at|via|into|in|with"
        rf"|through|toward)\b[^\n\x00]{{0,30}}?{_ELSEWHERE}",
    ),
    pattern(
        "~/|/etc/|id_rsa|id_ed25519|.aws|.cursor|mcp.json|.env|.netrc|.npmrc|.git-cred|.ssh|.bash|.kube|config.json|wallet",
        _FILES,
        _read_and_sent,
    ),
    pattern(
        "param|argument|field|sidenote|note|url|query|list|tags|context|payload|header&conversation|chat|message|prompt|dialog|environment|env|~/|id_|mcp.json|/etc/|key|credential|password|secret|token|cookie",
        rf"\b(?:{_SEND})\b[^.\n\x00]{{0,40}}?{_PRIVATE}[^.\n\x00]{{0,60}}?\b(?:in|into|as|to|via"
        rf"|through|with)\s+(?:the\s+|a\s+|an\s+|this\s+)?[`'\"]?\w*[`'\"]?\s?(?:param(?:eter)?"
        rf"|argument|field|sidenote|notes?|list|tags|query|context|payload|url|query\s+string|header)\b",
    ),
    pattern(
        "![&](&http",
        r"!\[[^\]\n]{0,80}\]\(\s*https?://[^)\s]{0,200}[?&/=](?:\{|<|\$|%7b|\[)?[^)\s]{0,40}(?:conversation|chat|history|prompt|secret|password|api_?key|token|data|env)",
    ),
    pattern(
        "curl|wget| "
        "nc&~/|/etc/|id_rsa|id_ed|.aws|.cursor|mcp.json|.env|.netrc|.npmrc|.git-cred|.ssh|.bash|.kube|config.json|wallet|$(|cat|env",
        rf"\b(?:curl|wget)\b[^\n\x00]{{0,120}}(?:{_FILES}|\$\(cat\b|`cat\b|\$\((?:print)?env\))|(?:{_FILES}|\bprintenv\b|\benv\b)[^\n\x00]{{0,40}}\|\s*(?:curl|wget"
        rf"|nc)\b",
    ),
    pattern(
        "://|@|0|1|2|3|4|5|6|7|8|9&sent|forward|route|redirect|copied|bcc|addressed|delivered|proxied&mail|message|payment|transfer|transaction|request",
        r"\b(?:all|every|any|each)\s+(?:outgoing\s+|sent\s+|other\s+|user\s+)?(?:e-?mails?"
        r"|messages?|payments?|transfers?|transactions?|requests?)\s+(?:must|should|have\s+to"
        r"|need\s+to|shall|are\s+to)\s+(?:\w+\s+){0,3}?(?:be\s+)?(?:sent|forwarded|routed"
        r"|redirected|copied|bcc'?d|addressed|delivered|proxied)\s+(?:\w+\s+){0,3}?(?:to|via"
        r"|through)\b[^\n\x00]{0,40}?(?:https?://|[\w.+-]+@[\w-]+\.\w{2,}|[\w+]+\d{6,}"
        r"|0x[0-9a-f]{8,})",
    ),
    pattern(
        "recipient|bcc|destination|payee|address|number&change|replace|set|swap|modify|switch|substitute|rewrite&@|0|1|2|3|4|5|6|7|8|9",
        r"\b(?:change|replace|set|swap|modify|switch|substitute|rewrite)\s+(?:the\s+|all\s+"
        r"|any\s+|every\s+)?(?:recipients?|bcc|destination|payee|to[- ]address|phone\s+number"
        r"|account\s+number|wallet\s+address)(?:'?s)?(?:\s+\w+){0,3}\s+(?:to|with|by)\s+"
        r"(?:[\w.+-]+@[\w-]+\.\w{2,}|\+?\d{6,}|0x[0-9a-f]{8,})",
    ),
    pattern(
        "~/|/etc/|id_rsa|id_ed|.aws|.cursor|mcp.json|.env|.netrc|.npmrc|.git-cred|.ssh|.bash|.kube|config.json|wallet"
        "|passwört|mots de passe|contraseñas|senhas|пароли|كلم|पासवर्ड|密码|パスワード|비밀번호"
        "|şifreler|hasła|wachtwoord|kata sandi|mật khẩu",
        rf"(?:{_FILES}|{languages.SECRETS})[^\n\x00]{{0,80}}{languages.SEND_VERBS}"
        rf"|{languages.SEND_VERBS}[^\n\x00]{{0,80}}(?:{_FILES}|{languages.SECRETS})",
        _no_reset,
    ),
    pattern(
        "=&followed|appended|replaced|filled|plus|with&user|conversation|message|mail|chat|prompt",
        r"https?://[^\s)\x00]{0,200}=[^\s)\x00]{0,40}\)?\s+(?:followed\s+by|plus|and\s+append|with)\b"
        r"[^.\n\x00]{0,60}\b(?:users?|conversation|messages?|e-?mail|chat|prompt|password)\b",
    ),
    pattern(
        "password|api key|credential|cookie|secret|private key"
        "&send|give|forward|pass|append|copy|include|upload|hand",
        r"(?:^|[.!?:;,\n]\s*|\b(?:and|then|must|should|to|has\s+to|have\s+to)\s+)(?:send|give"
        r"|forward|append|copy|include|upload|hand\s+over)\s+(?:me\s+)?(?:all|any|every|the\s+"
        r"user['’]?s?)\s+(?:the\s+|of\s+the\s+|user['’]?s?\s+|stored\s+)*(?:passwords?"
        r"|credentials?|api\s*keys?|cookies|secrets|private\s+keys?)\b|\b(?:send|give|upload"
        r"|forward)\s+(?:the\s+)?(?:users?\s+)?passwords?\s+(?:file\s+)?(?:to|found)\b|\bsend\s+"
        r"(?:the\s+)?contents?\s+of\s+the\s+(?:password|secrets?|credentials?)\b",
    ),
)
