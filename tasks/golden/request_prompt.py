"""The prompt by which an LLM writes golden queries: a Markdown file with the sections `# system`
and `# user`, templates of Jinja2.

Values: `tools` (JSON inside <data>), `count` (of them), `kind` (single, parallel, sequential),
`form` (in which the request is put), `language`, `context`, `schema` (of the reply as text, where
the model takes none). Catalog text is a value, and values are never read as templates."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.llm import Message
from tasks.enrichment.prompt_files import template

OWN_PROMPT = Path(__file__).parent / "prompts" / "requests.md"
"""The prompt that comes with the package."""
VALUES: dict[str, Any] = {
    "tools": "",
    "count": 1,
    "kind": "single",
    "form": "",
    "language": "",
    "context": "",
    "schema": "",
}


@dataclass(frozen=True)
class RequestPrompt:
    """The text of a prompt file."""

    text: str

    @classmethod
    def read(cls, path: Path = OWN_PROMPT) -> "RequestPrompt":
        """The prompt of a file. Raises ConfigurationError that says what is wrong with it."""
        try:
            prompt = cls(path.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"{path} cannot be read: {getattr(error, 'strerror', None) or error}. Expected a "
                f"prompt file."
            ) from error
        if set(prompt.sections) != {"system", "user"}:
            raise ConfigurationError(
                f"{path} has the sections {', '.join(prompt.sections) or 'none'}; expected `# "
                f"system` and `# user`."
            )
        try:
            shown = prompt.messages(**VALUES | {"tools": "\x00"})
        except Exception as error:  # a template is a program of the user's, and may fail in any way
            raise ConfigurationError(
                f"{path} cannot be filled in: {error}. The values are {', '.join(VALUES)}."
            ) from error
        if not any("\x00" in message.content for message in shown):
            raise ConfigurationError(
                f"{path} never shows `{{{{ tools }}}}`, so nothing can be asked with it."
            )
        return prompt

    @property
    def digest(self) -> str:
        """The sha256 of the text: another wording asks anew."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def sections(self) -> dict[str, str]:
        """The templates by the name of their section."""
        parts = re.split(r"^#\s+(\w+)\s*$", self.text, flags=re.MULTILINE)[1:]
        return {name.lower(): text for name, text in zip(parts[::2], parts[1::2], strict=True)}

    def messages(self, **values: Any) -> tuple[Message, ...]:
        """The sections filled in."""
        whole = VALUES | values
        return tuple(
            Message(
                role,
                re.sub(r"\n\s*\n", "\n\n", template(self.sections[role]).render(whole)).strip(),
            )
            for role in ("system", "user")
        )
