"""Reading and checking a prompt file; its form is described in `prompts`."""

import difflib
import hashlib
import re
import tomllib
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.settings.enrichment import PRODUCTS

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

VALUES: tuple[str, ...] = (
    *("tool", "neighbours", "questions", "candidates", "agent", "tools"),
    *("examples", "context", "language", "count", "schema", "problem"),
)
SECTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, ("system", "user")),
    "think": ("first", "second"),
    "repair": ("user",),
}
_SHOWN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(PRODUCTS, ("tool",)),
    "dependencies": ("candidates",),
    "agents": ("agent", "tools"),
    "repair": ("problem",),
}
"""What a prompt must show to ask for anything: one of these values."""

Problems = list[tuple[int | None, str]]
"""What is wrong with a file: the number of the line, if it is known, and what."""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """What a prompt file says; `sections` are templates by name, `instructions` is the constant
    text of it all.
    """

    version: str
    digest: str
    sections: tuple[tuple[str, str], ...]
    context: str
    examples: tuple[tuple[str, str], ...]
    instructions: str


def read_prompt(path: Path, problems: list[str]) -> PromptFile | None:
    """The prompt of a file; None if it has problems, which are added to the list."""
    name = path.stem
    try:
        content = path.read_bytes()
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path}: it cannot be read: {error}")
        return None
    own: Problems = []
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() == "+++"), None)
    if not lines or lines[0].rstrip() != "+++" or end is None:
        own.append(
            (
                1,
                'it does not begin with a front matter: a line `+++`, `version = "1"`, a line '
                "`+++`",
            )
        )
        front, body = {}, 0
    else:
        front, body = _front("\n".join(lines[1:end]), own), end + 1
    sections = _sections(name, lines, body, own) if end is not None else {}
    said = [text for line, source in sections.values() for text in _check(name, source, line, own)]
    if not own:
        _check_shown(name, sections, own)
    if own:
        problems += [f"{path}{f':{line}' if line else ''}: {problem}" for line, problem in own]
        return None
    examples = tuple((shot["input"], shot["output"]) for shot in front.get("examples", ()))
    return PromptFile(
        version=front["version"],
        digest=hashlib.sha256(content).hexdigest(),
        sections=tuple((section, sections[section][1]) for section in SECTIONS[name]),
        context=" ".join(front.get("context", "").split()),
        examples=examples,
        instructions="\n".join([*said, *(text for shot in examples for text in shot)]),
    )


def _front(text: str, problems: Problems) -> dict[str, Any]:
    try:
        front = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        problems.append(
            (
                int(at[1]) + 1 if at else 1,
                f"its front matter is no TOML: {re.sub(r' .at .*$', '', str(error))}",
            )
        )
        return {}
    expected = {"version", "context", "examples"}
    problems += [
        (1, f"there is no setting '{key}'{nearest(key, expected)}")
        for key in front
        if key not in expected
    ]
    version, context, examples = (
        front.get("version"),
        front.get("context", ""),
        front.get("examples", []),
    )
    if not isinstance(version, str) or not version.strip():
        got = "" if version is None else f" (got {version!r:.40})"
        problems.append(
            (1, f'version: expected a text such as "1", to be changed with the wording{got}')
        )
    if not isinstance(context, str):
        problems.append((1, f"context: expected a text (got {context!r:.40})"))
    texts = isinstance(examples, list) and all(
        isinstance(shot, dict)
        and shot.keys() == {"input", "output"}
        and all(isinstance(v, str) for v in shot.values())
        for shot in examples
    )
    if not texts:
        problems.append(
            (1, "examples: expected tables [[examples]], each with the texts `input` and `output`")
        )
    return front


def _sections(
    name: str, lines: list[str], start: int, problems: Problems
) -> dict[str, tuple[int, str]]:
    """The templates of a file's sections, each with the number of its first line."""
    expected = SECTIONS[name]
    heads = [
        (number, found[1].lower())
        for number, line in enumerate(lines[start:], start)
        if (found := re.fullmatch(r"#\s+(\w+)\s*", line)) and found[1].lower() in expected
    ]
    before = lines[start : heads[0][0]] if heads else lines[start:]
    if any(line.strip() for line in before):
        problems.append(
            (
                start + 1,
                f"there is text before the first section; sections are {_headings(expected)}",
            )
        )
    sections: dict[str, tuple[int, str]] = {}
    for (number, section), following in zip(
        heads, [*(head[0] for head in heads[1:]), len(lines)], strict=True
    ):
        if section in sections:
            problems.append((number + 1, f"the section `# {section}` stands twice in it"))
        sections[section] = (number + 2, "\n".join(lines[number + 1 : following]))
    problems += [
        (None, f"it has no section `# {section}`, or nothing in it; expected {_headings(expected)}")
        for section in expected
        if not sections.get(section, (0, ""))[1].strip()
    ]
    return sections


def _check(name: str, source: str, line: int, problems: Problems) -> list[str]:
    """The constant texts of a template; its problems are added to the list."""
    from jinja2 import TemplateSyntaxError, meta, nodes

    known = [value for value in VALUES if value != "problem" or name == "repair"]
    try:
        tree = _environment().parse(source)
        template(source)
    except TemplateSyntaxError as error:
        problems.append((line + (error.lineno or 1) - 1, f"its template is wrong: {error.message}"))
        return []
    unknown = meta.find_undeclared_variables(tree) - set(known)
    for value in sorted(unknown):
        at = next((node.lineno for node in tree.find_all(nodes.Name) if node.name == value), 1)
        problems.append(
            (
                line + at - 1,
                f"there is no value `{value}`{nearest(value, known)}; there are: "
                f"{', '.join(known)}",
            )
        )
    if not unknown:
        _try(source, line, problems)
    return [data.data for data in tree.find_all(nodes.TemplateData)]


def _try(source: str, line: int, problems: Problems) -> None:
    """Fill a template in, with every value and with none: some mistakes show only then."""
    full = dict.fromkeys(VALUES, "x") | {"count": 3, "examples": [{"input": "x", "output": "x"}]}
    for values in (full, dict.fromkeys(VALUES, "") | {"count": 0}):
        try:
            template(source).render(values)
        except Exception as error:  # a template is a program of the user's, and may fail in any way
            frames = traceback.extract_tb(error.__traceback__)
            at = (
                next(
                    (frame.lineno for frame in reversed(frames) if frame.filename == "<template>"),
                    None,
                )
                or 1
            )
            problems.append((line + at - 1, f"its template cannot be filled in: {error}"))
            return


def _check_shown(name: str, sections: Mapping[str, tuple[int, str]], problems: Problems) -> None:
    from jinja2 import meta

    used: set[str] = set()
    for _, source in sections.values():
        used |= meta.find_undeclared_variables(_environment().parse(source))
    if (needed := _SHOWN.get(name)) and not used & set(needed):
        shown = " or ".join(f"`{{{{ {value} }}}}`" for value in needed)
        problems.append((None, f"it never shows {shown}, so nothing can be asked with it"))


@lru_cache(maxsize=1)
def _environment() -> "SandboxedEnvironment":
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Not HTML: what catalogs say is fenced as JSON (untrusted.fenced), and escaping would only
    # garble it.
    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )


@lru_cache(maxsize=64)
def template(source: str) -> "Template":
    """The compiled template; what is filled in is a value and never read as a template."""
    return _environment().from_string(source)


def _headings(sections: Iterable[str]) -> str:
    return " and ".join(f"`# {section}`" for section in sections)


def nearest(name: str, names: Iterable[str]) -> str:
    """What may have been meant, as an addition to a message."""
    near = difflib.get_close_matches(name, list(names), n=1)
    return f" (did you mean {near[0]}?)" if near else ""
