"""Prompt files, and the fence around untrusted data in a prompt.

A prompt file is Markdown with a TOML front matter between lines of `+++` and named sections, one
message each:

    +++
    version = "1"                     change it with the wording
    context = "Tools of a bank."      optional: the domain, joined to the value `context`
    [[examples]]                      optional, repeated: few-shot examples, the value `examples`
    input = "..."
    output = "..."
    +++
    # system
    ...
    # user
    {{ request }}

Sections are Jinja2 templates of the kind that `templates.py` allows. `{{ examples }}` shows all
examples, and a loop over them shows them in any other form. Requests and catalogs reach a template
as values only; values are never read as templates.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pegboard.errors import ConfigurationError, did_you_mean
from pegboard.llm import ChatRequest, Message
from pegboard.llm.templates import names_of, render

COMMON_VALUES = ("context", "examples")
"""Values of every prompt: the domain and the examples in its front matter, joined to those that are
given.
"""
REPLY_TOKENS = 600
"""Default maximum tokens of a reply. Twenty names or six steps take a third; reasoning models need
the rest.
"""

MAX_EXAMPLES = 100
"""Few-shot examples in a prompt file."""

_FRONT_MATTER = ("version", "context", "examples")
_FRONT = re.compile(r"\+\+\+[ \t]*(\n.*?)\n\+\+\+[ \t]*(?:\n|$)", re.DOTALL)
_HEADING = re.compile(r"^#[ \t]+(\w+)[ \t]*$", re.MULTILINE)


class Examples(list[dict[str, str]]):
    """Few-shot examples, each with `input` and `output`; as text, one paragraph for each.

    Args:
        more: what the text says behind them.
    """

    def __init__(self, shots: Iterable[dict[str, str]] = (), more: str = "") -> None:
        super().__init__(shots)
        self._more = more

    def __str__(self) -> str:
        shots = "\n\n".join(f"{shot['input']}\n{shot['output']}" for shot in self)
        text = f"{'Examples' if len(self) > 1 else 'An example'}:\n\n{shots}" if self else ""
        return "\n\n".join(filter(None, (text, self._more)))


_TRIAL_VALUES: dict[str, Any] = {"count": 3, "examples": Examples([{"input": "x", "output": "x"}])}
_EMPTY_VALUES: dict[str, Any] = {"count": 0, "examples": Examples()}

Problems = list[tuple[int | None, str]]
"""Problems of one file: the line number where it is known, and the problem."""


@dataclass(frozen=True, slots=True)
class PromptFormat:
    """The required content of one kind of prompt file.

    Attributes:
        values: the names that its templates may use, besides `COMMON_VALUES`.
        sections: the names of its sections, in the order of its messages. `system` becomes a
            system message, any other name a user message.
        required: values of which the templates must use at least one; empty requires none.
    """

    values: tuple[str, ...]
    sections: tuple[str, ...] = ("system", "user")
    required: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All values that a template may use."""
        return tuple(dict.fromkeys((*self.values, *COMMON_VALUES)))


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file, validated.

    Attributes:
        version: as the file states it.
        digest: the sha256 of the file.
        sections: the templates by section name, in the order of the format; each begins with the
            blank lines that give it the line numbers of the file.
        context: the domain, as the file states it.
        examples: the few-shot examples, as (input, output).
    """

    name: str
    path: Path
    format: PromptFormat
    version: str
    digest: str
    sections: tuple[tuple[str, str], ...]
    context: str = ""
    examples: tuple[tuple[str, str], ...] = ()

    def messages(self, **values: Any) -> tuple[Message, ...]:
        """Render every section as one message; values that are not given are empty."""
        complete = dict.fromkeys(self.format.names, "") | _EMPTY_VALUES | values
        contexts = (str(complete["context"]).strip(), self.context)
        complete["context"] = " ".join(text for text in contexts if text)
        shots = ({"input": text, "output": out} for text, out in self.examples)
        complete["examples"] = Examples(shots, more=str(complete["examples"]))
        return tuple(
            Message("system" if name == "system" else "user", render(source, complete))
            for name, source in self.sections
        )

    def request(
        self,
        schema: Mapping[str, Any],
        *,
        max_tokens: int = REPLY_TOKENS,
        temperature: float | None = 0.0,
        **values: Any,
    ) -> ChatRequest:
        """Return the request for one reply that follows a JSON schema."""
        return ChatRequest(
            messages=self.messages(**values),
            max_tokens=max_tokens,
            temperature=temperature,
            schema=schema,
            schema_name=self.name.replace("-", "_"),
        )


def load_prompts(
    builtin: Path,
    formats: Mapping[str, PromptFormat],
    folder: Path | None = None,
    names: Iterable[str] | None = None,
) -> dict[str, Prompt]:
    """Read prompt files by name; a file of the user's folder replaces the built-in one.

    Args:
        builtin: the folder with a file `NAME.md` for every format.
        formats: the format of every prompt, by name.
        folder: the user's folder; it need not exist. Files of unknown names in it are problems.
        names: the prompts to read; all by default.

    Raises:
        ConfigurationError: lists every problem with its file and, where known, its line.
    """
    problems: list[str] = []
    replaced = _user_files(folder, formats, problems) if folder is not None else {}
    prompts: dict[str, Prompt] = {}
    for name in formats if names is None else names:
        path = replaced.get(name, builtin / f"{name}.md")
        if prompt := _read_file(path, formats[name], problems):
            prompts[name] = prompt
    if problems:
        expected = ", ".join(f"{name}.md" for name in formats)
        hint = f"Prompt files are named {expected}; a missing file means the built-in prompt."
        raise ConfigurationError.from_problems(
            "The folder of prompts", problems, hint if folder is not None else ""
        )
    return prompts


def read_prompt(path: Path, expected: PromptFormat, text: str | None = None) -> Prompt:
    """Read one prompt file.

    Args:
        text: what the file contains, where that is known; the path then only names the prompt.

    Raises:
        ConfigurationError: lists every problem with its line where known.
    """
    problems: list[str] = []
    prompt = _read_file(path, expected, problems, text)
    if prompt is None:
        raise ConfigurationError.from_problems(f"Prompt {path.stem!r}", problems)
    return prompt


def fenced(label: str, value: Any, clean: Callable[[str], str] | None = None) -> str:
    """Return a JSON value as a prompt shows it: data that cannot close its own fence.

    Args:
        clean: applied to every string, keys included; by default strings become one printable line.
    """
    text = json.dumps(cleaned(value, clean or one_line), ensure_ascii=False, default=str)
    escaped = text.replace("<", "\\u003c")
    return f'<data label="{label}">\n{escaped}\n</data>'


def one_line(text: str) -> str:
    """Return a text on one line, without characters that do not print."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a JSON value with `clean` applied to every string, keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {clean(str(key)): cleaned(item, clean) for key, item in items}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [cleaned(item, clean) for item in cast("Sequence[Any]", value)]
    return value


def _user_files(
    folder: Path, formats: Mapping[str, PromptFormat], problems: list[str]
) -> dict[str, Path]:
    files: dict[str, Path] = {}
    expected = [f"{name}.md" for name in formats]
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        if file.name in expected:
            files[file.stem] = file
        elif not file.name.startswith(".") and not file.name.endswith("~"):
            suggestion = did_you_mean(file.name, expected)
            problems.append(f"{file}: no prompt has that name{suggestion}")
    return files


def _read_file(
    path: Path, expected: PromptFormat, problems: list[str], text: str | None = None
) -> Prompt | None:
    """Return the prompt of a file; None if it has problems, which are added to the list."""
    try:
        content = path.read_bytes() if text is None else text.encode()
        source = content.decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path}: cannot be read: {error}")
        return None
    file_problems: Problems = []
    front, start = _front_matter(source, file_problems)
    sections = _sections(expected, source, start, file_problems)
    used = {
        name
        for part in sections.values()
        for name in _check_template(expected, part, file_problems)
    }
    if not file_problems and expected.required and not used & set(expected.required):
        values = " or ".join(f"`{{{{ {name} }}}}`" for name in expected.required)
        file_problems.append((None, f"expected the template to show {values}"))
    if file_problems:
        problems += [
            f"{path}{f':{line}' if line else ''}: {problem}" for line, problem in file_problems
        ]
        return None
    return Prompt(
        name=path.stem,
        path=path,
        format=expected,
        version=front["version"],
        digest=hashlib.sha256(content).hexdigest(),
        sections=tuple((name, sections[name]) for name in expected.sections),
        context=" ".join(front.get("context", "").split()),
        examples=tuple((shot["input"], shot["output"]) for shot in front.get("examples", ())),
    )


def _front_matter(source: str, problems: Problems) -> tuple[dict[str, Any], int]:
    """Return the front matter, and the place behind it."""
    match = _FRONT.match(source)
    if match is None:
        problem = 'expected a front matter first: a line `+++`, `version = "1"`, a line `+++`'
        problems.append((1, problem))
        return {}, 0
    try:
        front = tomllib.loads(match[1])  # with the lines of the file
    except tomllib.TOMLDecodeError as error:
        problems.append((1, f"the front matter is not TOML: {error}"))
        return {}, match.end()
    for key in front.keys() - {*_FRONT_MATTER}:
        problems.append((1, f"unknown setting '{key}'{did_you_mean(key, _FRONT_MATTER)}"))
    version = front.get("version")
    context = front.get("context", "")
    if not isinstance(version, str) or not version.strip():
        problem = 'version: expected a text such as "1", to be changed with the wording'
        problems.append((1, problem))
    if not isinstance(context, str):
        problems.append((1, f"context: expected a text (got {context!r:.40})"))
    if not _are_examples(front.get("examples", [])):
        expected = (
            f"at most {MAX_EXAMPLES} tables [[examples]], each with the texts `input` and `output`"
        )
        problems.append((1, f"examples: expected {expected}"))
    return front, match.end()


def _are_examples(value: Any) -> bool:
    shots: list[Any] = value if isinstance(value, list) else [value]
    return len(shots) <= MAX_EXAMPLES and all(
        isinstance(shot, dict)
        and shot.keys() == {"input", "output"}
        and all(isinstance(text, str) for text in shot.values())
        for shot in shots
    )


def _sections(
    expected: PromptFormat, source: str, start: int, problems: Problems
) -> dict[str, str]:
    """Return the template of every section, each with the line numbers of the file."""
    heads = [
        head for head in _HEADING.finditer(source[start:]) if head[1].lower() in expected.sections
    ]
    ends = [*(head.start() for head in heads[1:]), len(source) - start]
    sections = {
        head[1].lower(): "\n" * source.count("\n", 0, start + head.end())
        + source[start + head.end() : start + end]
        for head, end in zip(heads, ends, strict=False)
    }
    stray = source[start : start + heads[0].start()] if heads else ""
    names = sorted(head[1].lower() for head in heads)
    is_complete = names == sorted(expected.sections) and all(map(str.strip, sections.values()))
    if not is_complete or stray.strip():
        headings = " and ".join(f"`# {section}`" for section in expected.sections)
        problem = f"expected {headings}, each once with a text below it, and no text above"
        problems.append((None, problem))
    return sections


def _check_template(expected: PromptFormat, source: str, problems: Problems) -> Collection[str]:
    """Add the problems of a template to the list; returns the names that it uses."""
    try:
        lines = names_of(source)
        if unknown := sorted(lines.keys() - {*expected.names}):
            problems += [
                (
                    lines[name],
                    f"unknown value `{name}`, expected one of {', '.join(expected.names)}"
                    f"{did_you_mean(name, expected.names)}",
                )
                for name in unknown
            ]
            return lines
        # Rendered with all values and with none, to find errors in its conditions.
        for fill, values in (("x", _TRIAL_VALUES), ("", _EMPTY_VALUES)):
            render(source, dict.fromkeys(expected.names, fill) | values)
    except Exception as error:  # a template is a program of the user's, and may fail in any way
        line = getattr(error, "lineno", None)
        problems.append((line, f"the template cannot be rendered: {error}"))
        return ()
    return lines
