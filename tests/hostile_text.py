"""A text that tries to control a terminal or to forge a line of a command, and what it must not
leave.
"""

import re

HOSTILE = (
    "dollars\x1b[2J\x1b]0;title\x07\x1b]8;;http://x\x1b\\\x9b31m\x9d52;c;x\x9c\x85\x7f\x00\x08\u202e"
    "\u2066\u2028FORGED\nFORGED: release 0000 is live\rFORGED\x0bFORGED\u2029FORGED"
)
UNSAFE = re.compile(
    r"[^\n\t -~\xa0-\u061b\u061d-\u200d\u2010-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]"
)
