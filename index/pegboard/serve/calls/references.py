"""Secrets of the configuration, read from the environment at the moment of a call."""

import os
import re

from pegboard.serve.calls.results import CallProblem
from pegboard.servers.references import resolve_references


def resolved(value: str) -> str:
    """Return a configured value with each `${NAME}` replaced by that environment variable.

    Raises:
        CallProblem: a variable is not set.
    """

    def read(match: re.Match[str]) -> str:
        text = os.environ.get(match["name"]) or match["default"]
        if not text:
            raise CallProblem(
                "refused",
                f"The environment variable {match['name']} of the gateway is not set; whoever runs "
                f"it has to set it.",
            )
        return text

    return resolve_references(value, read)
