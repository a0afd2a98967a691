"""References to secrets: `${VARIABLE}` in a setting stands for an environment variable."""

import os
import re

from pegboard.text.redaction import remember_secrets

REFERENCE = re.compile(r"\$\{[^${}]+\}")
REFERENCE_EXPECTED = (
    "secrets are not allowed in the file. Set an environment variable, and write "
    '"${NAME_OF_THE_VARIABLE}"'
)


def secret_of(reference: str) -> str:
    """Return the value of `${VARIABLE}`, which from then on is taken out of texts.

    Raises:
        ValueError: the text is not such a reference, or the variable is not set.
    """
    if not REFERENCE.fullmatch(reference):
        raise ValueError(REFERENCE_EXPECTED)
    variable = reference[2:-1]
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise ValueError(f"the environment variable {variable} is not set")
    remember_secrets([secret])
    return secret
