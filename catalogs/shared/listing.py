"""What every source yields: a Listing of agents, tools, rejected records and failures.

A source kind is a `SourceKind`: a pydantic model of its options and one function `read(listing,
options)` that adds to a `ListingBuilder`. The builder is the only place that decides what a valid
tool is, so all kinds reject alike. A problem with one record is a `reject`; an agent (a server of
many) that cannot be listed is a `fail`, so that its last good tools are kept; a source that cannot
be read at all raises `SourceError`."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema_rs
from pydantic import BaseModel, ConfigDict

from catalogs.shared.tool_row import tool_row
from pegboard.canonical import canonical_json
from pegboard.records import Agent, AgentKind, Dependency, Rejected, Tool, agent_id, tool_id

MAX_NAME = 512
"""Characters. The longest real tool name seen in public catalogs is about 120."""
MAX_DESCRIPTION = 100_000
"""Characters. An encoder reads about 1,000; more is a mistake or an attack, and it would bloat
every reader.
"""
MAX_SCHEMA = 1_000_000
"""Characters of canonical JSON, for the input and for the output schema."""
DIALECTS = {
    *(f"http://json-schema.org/draft-0{number}/schema" for number in (4, 6, 7)),
    *(f"https://json-schema.org/draft/{year}/schema" for year in ("2019-09", "2020-12")),
}
"""The `$schema` values that the validator has at hand. It would ask the network for any other, and
the text is untrusted.
"""
RAW_KEPT = 2_000
"""Characters of a rejected record that are kept, so that a person can recognise it."""


class SourceOptions(BaseModel):
    """The options that every source kind has; a kind adds its own by inheriting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """An agent that could not be listed, and why. Its last good tools are kept by the snapshot."""

    agent: str
    why: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The agents and tools of a source at one moment, ordered by id, and what went wrong.

    `rows` are the tools as text, in their order (see `tool_row`); empty where nobody has made them
    yet. `repeatable` says whether the source would say the same again as long as its inputs stay
    (see `SourceKind`).
    """

    agents: tuple[Agent, ...] = ()
    tools: tuple[Tool, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    failures: tuple[Failure, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = field(default=(), compare=False, repr=False)
    repeatable: bool = True


@dataclass(slots=True)
class ListingBuilder:
    """Collects what a source lists; relative paths count from `base`, pegboard.toml's folder.

    A source that used more than the inputs that it names sets `repeatable` to False.
    """

    catalog: str
    base: Path
    tags: tuple[str, ...] = ()
    _agents: dict[str, Agent] = field(default_factory=dict[str, Agent])
    repeatable: bool = True
    _tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    _rows: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _where: dict[str, str] = field(default_factory=dict[str, str])
    _rejected: list[Rejected] = field(default_factory=list[Rejected])
    _failures: dict[str, Failure] = field(default_factory=dict[str, Failure])

    def agent(
        self, name: str, *, description: str = "", kind: AgentKind = "library", source: str = ""
    ) -> str:
        """Add an agent, or complete the one of that name, and return its id."""
        name, source = _valid_text(name), _valid_text(source)
        identity = agent_id(self.catalog, name)
        description = _valid_text(description).strip()
        if len(description) > MAX_DESCRIPTION:
            self.reject(
                f"agent {name}",
                f"its description has {len(description):,} characters, more than "
                f"{MAX_DESCRIPTION:,}; "
                "the agent is listed without it. Shorten it at its source.",
                description,
            )
            description = ""
        known = self._agents.get(identity)
        if known is None or (description and not known.description):
            self._agents[identity] = Agent(identity, self.catalog, name, description, kind, source)
        return identity

    def tool(
        self,
        agent: str,
        name: Any,
        *,
        where: str,
        raw: Any = None,
        description: Any = "",
        input_schema: Any = None,
        output_schema: Any = None,
        annotations: Any = None,
        examples: Iterable[str] = (),
        dependencies: Iterable[Dependency] = (),
        tags: Iterable[str] = (),
    ) -> Tool | None:
        """Add a tool of an agent, or reject it with all reasons; returns the tool unless rejected.

        Args:
            where: the place of the record in its source, for a person: `tools.json[3].tools[4]`.
            raw: the record as the source has it, kept with a rejection.
            input_schema: a JSON Schema object; None means no arguments.
        """
        written: dict[str, str] = {}
        problems = list(
            _problems(
                written,
                name=name,
                description=description,
                input_schema=input_schema,
                output_schema=output_schema,
                annotations=annotations,
            )
        )
        tool, row = None, dict[str, Any]()
        if not problems:
            tool = Tool(
                id=tool_id(agent, name),
                catalog=self.catalog,
                agent=agent,
                name=name.strip(),
                description=(description or "").strip(),
                input_schema=input_schema or {"type": "object", "properties": {}},
                output_schema=output_schema,
                annotations=annotations or {},
                examples=tuple(
                    dict.fromkeys(text.strip() for text in examples if text and text.strip())
                ),
                dependencies=tuple(dependencies),
                tags=tuple(
                    sorted({tag.strip() for tag in (*self.tags, *tags) if tag and tag.strip()})
                ),
            )
            row = tool_row(tool, written)
            problems += _encoding_problems(row)
        if tool is not None and not problems and (earlier := self._where.get(tool.id)):
            same = self._rows[tool.id]["digest"] == row["digest"]
            what = "the same tool" if same else "another tool"
            problems.append(
                f"{what} with the id {tool.id} is already listed at {earlier}; rename or remove "
                f"one of them"
            )
        if tool is None or problems:
            self.reject(where, "; ".join(problems), raw)
            return None
        self._tools[tool.id], self._rows[tool.id] = tool, row
        self._where[tool.id] = where
        return tool

    def reject(self, where: str, why: str, raw: Any = None) -> None:
        """Record something that is left out, with the reason for a person."""
        self._rejected.append(
            Rejected(self.catalog, _valid_text(where), _valid_text(why), _raw_text(raw))
        )

    def fail(self, agent: str, why: str) -> None:
        """Record that an agent (by id) could not be listed; its last good tools are kept."""
        self._failures[agent] = Failure(agent, _valid_text(why))

    def build(self) -> Listing:
        """Return everything that was added, agents without tools included."""
        return Listing(
            agents=tuple(self._agents[key] for key in sorted(self._agents)),
            tools=tuple(self._tools[key] for key in sorted(self._tools)),
            rejected=tuple(self._rejected),
            failures=tuple(self._failures[key] for key in sorted(self._failures)),
            rows=tuple(self._rows[key] for key in sorted(self._rows)),
            repeatable=self.repeatable,
        )


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source, as found under the entry-point group `pegboard.catalogs`.

    Attributes:
        inputs: the files from which alone a listing with these options follows, given the folder
            from which relative paths count; None if there is more to it. As long as they stay the
            same, the source is not read again. Without the function a source is read in every run.
    """

    options: type[SourceOptions]
    read: Callable[[ListingBuilder, Any], None]
    inputs: Callable[[Path, Any], Sequence[Path] | None] | None = None


def _problems(
    written: dict[str, str],
    *,
    name: Any,
    description: Any,
    input_schema: Any,
    output_schema: Any,
    annotations: Any,
) -> Iterable[str]:
    """What is wrong with a record; on the way, `written` gets the canonical JSON of its parts."""
    if not isinstance(name, str) or not name.strip():
        yield f"it has no name (got {_short(name)}); add a name"
    elif len(name) > MAX_NAME:
        yield f"its name has {len(name):,} characters, more than {MAX_NAME}; shorten it"
    elif _valid_text(name) != name:
        yield "its name is not valid UTF-8 text; save the source as UTF-8"
    if description is not None and not isinstance(description, str):
        yield f"its description is {_short(description)}, expected text"
    elif description and len(description) > MAX_DESCRIPTION:
        yield (
            f"its description has {len(description):,} characters, more than "
            f"{MAX_DESCRIPTION:,}; shorten it"
        )
    if annotations is not None and not isinstance(annotations, Mapping):
        yield f"its annotations are {_short(annotations)}, expected an object"
    elif annotations and (problem := _json_problem(annotations, written)):
        yield f"its annotations {problem}"
    for label, schema in (("input", input_schema), ("output", output_schema)):
        if schema is not None and (problem := _schema_problem(schema, label, written)):
            yield f"its {label} schema {problem}"
    # What a tool returns may be anything; what it takes are named arguments.
    if isinstance(input_schema, dict) and "object" not in str(input_schema.get("type", "object")):
        yield (
            f"its input schema has the type {_short(input_schema['type'])}, expected an object "
            f"whose properties are the arguments"
        )


def _json_problem(value: Any, written: dict[str, str]) -> str | None:
    try:
        written["annotations"] = canonical_json(value)
    except (ValueError, RecursionError) as error:
        return f"cannot be written as JSON: {_short(str(error))}"
    return None


def _schema_problem(schema: Any, label: str, written: dict[str, str]) -> str | None:
    if not isinstance(schema, dict):
        return f"is {_short(schema)}, expected a JSON Schema object"
    try:
        text = canonical_json(schema)
        size = len(text)
        if schema:  # an empty one is replaced by a default, or written at once
            written[f"{label}_schema"] = text
        if size > MAX_SCHEMA:
            return f"has {size:,} characters, more than {MAX_SCHEMA:,}; shorten it"
        known = str(schema.get("$schema", "")).removesuffix("#") in DIALECTS
        # Where no dialect is named it may be the oldest: `exclusiveMinimum: true` is common, and
        # only valid there.
        if not known and jsonschema_rs.meta.is_valid(
            {**schema, "$schema": "http://json-schema.org/draft-04/schema#"}
        ):
            return None
        jsonschema_rs.meta.validate(
            schema if known else {k: v for k, v in schema.items() if k != "$schema"}
        )
    except jsonschema_rs.ValidationError as error:
        path = "/".join(str(part) for part in error.instance_path)
        return f"is not valid JSON Schema: {_short(error.message)}" + (
            f" at {path}" if path else ""
        )
    except RecursionError:
        return "is nested too deeply; flatten it"
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return f"is not valid JSON Schema: {_short(str(error))}"
    return None


def _encoding_problems(row: Mapping[str, Any]) -> list[str]:
    fields = {
        "name": row["name"],
        "description": row["description"],
        "input schema": row["input_schema"],
        "output schema": row["output_schema"] or "",
        "annotations": row["annotations"],
        "examples": "".join(row["examples"]),
        "tags": "".join(row["tags"]),
    }
    return [
        f"its {label} is not valid UTF-8 text; save the source as UTF-8"
        for label, text in fields.items()
        if not (text.isascii() or _valid_text(text) == text)
    ]


def _valid_text(text: str) -> str:
    """Return the text with what cannot be written as UTF-8 replaced, so that it can be stored."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text):,} characters)"


def _raw_text(raw: Any) -> str:
    if raw is None:
        return ""
    try:
        text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError):
        text = "(a record that cannot be written as JSON)"
    return _valid_text(
        text if len(text) <= RAW_KEPT else f"{text[:RAW_KEPT]}... ({len(text):,} characters)"
    )
