"""The prompts of the parts that ask an LLM: Markdown files, which a folder of one's own may replace
one by one.

A prompt file has a front matter between lines of `+++` and two sections, `# system` and `# user`;
`{{ name }}` stands for a value:

    +++
    version = "1"
    +++
    # system
    ...
    # user
    {{ request }}

Values, of which each part fills in its own; those that it does not have are empty:

    request   the request, or the step that is worked on     as JSON inside <data>
    history   the conversation before it                     as JSON inside <data>
    steps     the steps of the request                       as JSON inside <data>
    tools     tools: name, agent, description                as JSON inside <data>
    count     how many are asked for

Requests, conversations and catalogs are data: they are shown inside a fence that they cannot close,
and values are never read as templates."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.llm import ChatRequest, Message

OWN_PROMPTS = Path(__file__).parent / "prompts"
"""The library's own prompt files."""
VALUES = ("request", "history", "steps", "tools", "count")
REPLY_TOKENS = 600
"""The most tokens of a reply: twenty names or six steps take a third of that; models that think
aloud first need the rest.
"""

_SECTIONS = ("system", "user")
_VALUE = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file: its name, its version as it says, and its two templates."""

    name: str
    version: str
    system: str
    user: str

    def request(self, schema: Mapping[str, Any], **values: str) -> ChatRequest:
        """The question with its values filled in, at temperature 0: the same request is to find the
        same tools.
        """
        if unknown := values.keys() - set(VALUES):
            raise TypeError(
                f"The prompt {self.name!r} is given {sorted(unknown)}; there are: "
                f"{', '.join(VALUES)}."
            )
        return ChatRequest(
            messages=(
                Message("system", _filled(self.system, values)),
                Message("user", _filled(self.user, values)),
            ),
            max_tokens=REPLY_TOKENS,
            temperature=0.0,
            schema=schema,
            schema_name=self.name.replace("-", "_"),
        )


def prompt(name: str, folder: str | None = None) -> Prompt:
    """The prompt of that name: the file `NAME.md` of the folder if it has one, else the library's
    own. Read once.

    Raises:
        ConfigurationError: there is no such folder, or the file has problems; all of them are
            listed.
    """
    return _read(name, folder)


@lru_cache(maxsize=64)
def _read(name: str, folder: str | None) -> Prompt:
    own = Path(folder).expanduser() if folder is not None else OWN_PROMPTS
    if not own.is_dir():
        raise ConfigurationError(
            f"There is no folder of prompts {own}. Give one with {name}.md in it, or none."
        )
    file = own / f"{name}.md"
    return _parsed(file if file.is_file() else OWN_PROMPTS / f"{name}.md")


def fenced(label: str, value: Any) -> str:
    """A JSON value as a prompt shows it: data that cannot close its own fence, without characters
    that do not print.
    """
    text = json.dumps(_visible(value), ensure_ascii=False).replace("<", "\\u003c")
    return f'<data label="{label}">\n{text}\n</data>'


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join("".join(char if char.isprintable() else " " for char in value).split())
    if isinstance(value, Mapping):
        return {_visible(key): _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value


def _filled(template: str, values: Mapping[str, str]) -> str:
    text = _VALUE.sub(lambda found: values.get(found[1], ""), template)
    return re.sub(r"\n\s*\n", "\n\n", text).strip()


def _parsed(file: Path) -> Prompt:
    problems: list[str] = []
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The prompt {file} cannot be read: {error}.") from error
    _, *parts = re.split(r"^\+\+\+[ \t]*$", f"\n{text}", maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 2 or text.lstrip()[:3] != "+++":
        problems.append(
            'it does not begin with a front matter: a line `+++`, `version = "1"`, a line `+++`'
        )
    front, body = parts if len(parts) == 2 else ("", text)
    sections = _sections(body)
    problems += [
        f"it has no section `# {name}`, or nothing in it"
        for name in _SECTIONS
        if not sections.get(name)
    ]
    used = set(_VALUE.findall(body))
    problems += [
        f"there is no value `{name}`; there are: {', '.join(VALUES)}"
        for name in sorted(used - set(VALUES))
    ]
    if not used & {"request", "steps"}:
        problems.append(
            "it never shows `{{ request }}` or `{{ steps }}`, so nothing can be asked with it"
        )
    version = _version(front, problems)
    if problems:
        raise ConfigurationError(f"The prompt {file} cannot be used: {'; '.join(problems)}.")
    return Prompt(file.stem, version, sections["system"], sections["user"])


def _sections(body: str) -> dict[str, str]:
    _, *parts = re.split(rf"^# ({'|'.join(_SECTIONS)})[ \t]*$", body, flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _version(front: str, problems: list[str]) -> str:
    try:
        version = tomllib.loads(front).get("version")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"its front matter is no TOML: {error}")
        return ""
    if not isinstance(version, str) or not version.strip():
        problems.append('version: expected a text such as "1", to be changed with the wording')
        return ""
    return version
