"""The encodings in which a hostile source may repeat a secret."""

import base64
import html
import json
from urllib.parse import quote, quote_plus


def encodings(secret: str) -> dict[str, str]:
    """Texts with the secret in them, by the name of their encoding."""
    data = secret.encode()
    return {
        "as it is": secret,
        "another case": secret.upper(),
        "JSON": json.dumps(secret),
        "an address": quote(secret, safe=""),
        "a form": quote_plus(f"a b {secret}").lower(),
        "every character of an address": "".join(f"%{byte:02X}" for byte in data),
        "JSON escapes": "".join(f"\\u{ord(char):04x}" for char in secret),
        "Python escapes": "".join(f"\\x{byte:02x}" for byte in data),
        "HTML": html.escape(f"<{secret}>"),
        "HTML entities": "".join(f"&#{ord(char)};" for char in secret),
        "hexadecimal digits": data.hex(),
        "one character a line": "\n".join(secret),
        "a quoted reply": f"> {secret[:7]}\n> {secret[7:]}",
        "JSON over lines": json.dumps(f"{secret[:9]}\n{secret[9:]}"),
        "JSON over lines behind signs": json.dumps(f"{secret[:9]}/\n-\n{secret[9:]}"),
        "zero-width spaces": "\u200b".join(secret),
        **{f"base64 at {at}": base64.b64encode(b"x" * at + data).decode() for at in range(4)},
        "base64 in an address": base64.urlsafe_b64encode(f"me:{secret} you".encode()).decode(),
        "base64 over lines": base64.encodebytes(f"{'long ' * 20}{secret}".encode()).decode(),
    }
