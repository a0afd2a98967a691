"""The prompts: Markdown files that users may replace, read, checked and filled in.

A prompt file has a front matter in TOML between lines of `+++`, and sections of Jinja2 templates:

    +++
    version = "1"                      changes whenever the wording does: what was bought with
    another version is bought anew
    context = "Tools of a bank."       optional: about the domain; joins `enrich.context`
    [[examples]]                       optional, any number: a few shots
    input = "..."
    output = "..."
    +++
    # system
    ...
    # user
    ...

`description`, `arguments`, `questions`, `topics`, `dependencies` and `agents` have `# system` and
`# user`; `repair` has `# user`; `think` has `# first` (added to the request, asks for free prose)
and `# second` (asks for the JSON then). A file of that name in the folder `prompts/` beside the
configuration stands for the package's own.

Values, the same in every file; what a request has nothing of is empty, so `{% if neighbours %}`
works:

    tool         the tool: name, description, arguments, examples      as JSON inside <data>
    neighbours   its nearest siblings: name, agent, description        as JSON inside <data>
    questions    requests that it answers                              as JSON inside <data>
    candidates   tools that it may depend on, numbered             as JSON inside <data>
    agent        the agent: name, description                          as JSON inside <data>
    tools        the agent's tools: name, description                  as JSON inside <data>
    examples     the few shots of this file, each with input and output
    context      what the configuration and this file say of the domain
    language     the language to write in, as words
    count        how many questions or topics
    schema       the JSON Schema of the reply as text
    problem      (repair only) what was wrong with the reply

Catalog text reaches a template as a value only, and values are never read as templates.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigurationError
from pegboard.llm import Message
from tasks.enrichment.prompt_files import (
    SECTIONS,
    VALUES,
    PromptFile,
    nearest,
    read_prompt,
    template,
)
from tasks.settings.enrichment import Product

OWN_PROMPTS = Path(__file__).parent / "prompts"
"""The package's own prompt files, which a folder of the user's may replace one by one."""
PROMPT_FILES: tuple[str, ...] = tuple(f"{name}.md" for name in SECTIONS)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file.

    Attributes:
        version: as the file says; part of what a purchase is known by.
        digest: the sha256 of the file.
        sections: the templates by the name of their section.
        context: what the file says of the domain.
        examples: the few shots, as (input, output).
        instructions: the constant text of it all, for noticing replies that repeat it.
    """

    name: str
    version: str
    digest: str
    path: Path
    sections: tuple[tuple[str, str], ...]
    context: str
    examples: tuple[tuple[str, str], ...]
    instructions: str

    @staticmethod
    def of(path: Path, file: PromptFile) -> "Prompt":
        """The prompt that a file holds."""
        return Prompt(
            path.stem,
            file.version,
            file.digest,
            path,
            file.sections,
            file.context,
            file.examples,
            file.instructions,
        )

    def messages(self, **values: Any) -> tuple[Message, ...]:
        """The sections filled in, one message each. Values that are not given are empty; see the
        top of the module.
        """
        if unknown := values.keys() - set(VALUES):
            raise TypeError(
                f"The prompt {self.name!r} is given {sorted(unknown)}; there are: "
                f"{', '.join(VALUES)}."
            )
        whole = dict.fromkeys(VALUES, "") | {"count": 0} | values
        whole["context"] = " ".join(
            text for text in (str(whole["context"]).strip(), self.context) if text
        )
        whole["examples"] = [{"input": given, "output": reply} for given, reply in self.examples]
        return tuple(
            Message("system" if name == "system" else "user", _tidy(template(source).render(whole)))
            for name, source in self.sections
        )


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of the products that are asked for, and the two that go with each of them."""

    products: Mapping[Product, Prompt]
    think: Prompt
    repair: Prompt

    def __getitem__(self, product: Product) -> Prompt:
        return self.products[product]


def load_prompts(folder: Path | None, products: Iterable[Product]) -> Prompts:
    """Read and check the prompts of these products; files in `folder`, if there is one, win over
    the package's own.

    Raises:
        ConfigurationError: lists every problem with its file and, where it is known, its line.
    """
    problems: list[str] = []
    wanted = tuple(products)
    own = _own_files(folder, problems) if folder is not None else {}
    paths = {
        name: own.get(name, OWN_PROMPTS / f"{name}.md") for name in (*wanted, "think", "repair")
    }
    files = {name: read_prompt(path, problems) for name, path in paths.items()}
    if problems:
        raise ConfigurationError(
            f"The prompts have {len(problems)} problem{'s' if len(problems) > 1 else ''}:\n"
            + "\n".join(f"  - {problem}" for problem in problems)
            + (
                f"\nPrompt files are named {', '.join(PROMPT_FILES)}; one that is left out is the "
                f"package's own."
            )
        )
    found = {name: Prompt.of(paths[name], file) for name, file in files.items() if file is not None}
    return Prompts({product: found[product] for product in wanted}, found["think"], found["repair"])


def _own_files(folder: Path, problems: list[str]) -> dict[str, Path]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    own: dict[str, Path] = {}
    for file in files:
        if file.name in PROMPT_FILES:
            own[file.stem] = file
        elif not file.name.startswith(".") and not file.name.endswith("~"):
            problems.append(
                f"{file}: there is no prompt of that name{nearest(file.name, PROMPT_FILES)}"
            )
    return own


def _tidy(text: str) -> str:
    """Without the blank lines that empty blocks leave. Data has none: it is one line of JSON."""
    return re.sub(r"\n\s*\n", "\n\n", text).strip()
