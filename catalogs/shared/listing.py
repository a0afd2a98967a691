"""What every source yields: a Listing of agents, tools, rejected records and failures.

A source kind is a `SourceKind`: a pydantic model of its options and one function `read(listing,
options)` that adds to a `ListingBuilder`. The builder is the only place that decides what a valid
tool is, so all kinds reject alike. Whatever goes wrong costs as little as possible: a record within
`with listing.record(...)` is rejected; of a file within `with listing.file(...)` the last good
tools are kept, as they are of an agent (a server of many) that `fail`s; a source that cannot be
read at all raises `SourceError`."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from catalogs.shared.tool_row import tool_of, tool_row
from catalogs.shared.validity import (
    beside,
    cut,
    encoding_problems,
    schema_problems,
    short,
    text_problems,
    valid_text,
)
from pegboard.errors import SourceError
from pegboard.foreign.files import flaw_of, matching_files
from pegboard.foreign.limits import (
    MAX_BYTES,
    MAX_DESCRIPTION,
    MAX_MEMORY,
    MAX_RAW,
    MAX_REJECTED,
    MAX_SECONDS,
)
from pegboard.records import Agent, AgentKind, Dependency, Rejected, Tool, agent_id, tool_id
from pegboard.schemas.loose import Unusable, mended
from pegboard.text.secret_values import SecretValues

CONTROL = (KeyboardInterrupt, SystemExit, GeneratorExit)
SCHEMAS = ("input_schema", "output_schema")


class SourceOptions(BaseModel):
    """The options that every source kind has; a kind adds its own by inheriting.

    Attributes:
        trust: `limited` leaves out the examples and the reasons of dependencies that the catalog
            gives: texts that weigh much in a search and describe nothing that can be checked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    tags: tuple[str, ...] = ()
    max_bytes: int = Field(default=MAX_BYTES, gt=0)
    max_seconds: float = Field(default=MAX_SECONDS, gt=0)
    max_memory: int = Field(default=MAX_MEMORY, gt=0)
    trust: Literal["full", "limited"] = "full"


@dataclass(frozen=True, slots=True)
class Failure:
    """An agent that could not be listed, and why. Its last good tools are kept by the snapshot."""

    agent: str
    why: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The agents and tools of a source at one moment, ordered by id, and what went wrong.

    Attributes:
        rows: the tools, each as one line of JSON (see `tool_row`).
        unreadable: which files could not be read, and why; tools that only they list are kept by
            the snapshot.
        repeatable: whether the source would yield the same again as long as its inputs stay (see
            `SourceKind`).
    """

    agents: tuple[Agent, ...] = ()
    rows: Sequence[bytes] = ()
    rejected: tuple[Rejected, ...] = ()
    failures: tuple[Failure, ...] = ()
    unreadable: tuple[str, ...] = ()
    repeatable: bool = True

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, made anew from their rows."""
        return tuple(tool_of(json.loads(row)) for row in self.rows)


@dataclass(slots=True)
class ListingBuilder:
    """Collects what a source lists; relative paths count from `base`, pegboard.toml's folder.

    A source that used more than the inputs that it names sets `repeatable` to False. Everything
    that is added is listed without `secrets`, the values that the source was given.
    """

    catalog: str
    base: Path
    tags: tuple[str, ...] = ()
    secrets: SecretValues = field(default_factory=SecretValues)
    _agents: dict[str, Agent] = field(default_factory=dict[str, Agent])
    repeatable: bool = True
    _rows: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _places: dict[str, str] = field(default_factory=dict[str, str])
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    _failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    _unreadable: list[str] = field(default_factory=list[str])
    _readable: int = 0

    @contextmanager
    def record(self, where: str) -> Iterator[None]:
        """Reject the record if anything fails within."""
        try:
            yield
        except CONTROL:
            raise
        except BaseException as error:  # Polars' PanicException is no `Exception`
            self.reject(where, reason_of(error))

    @contextmanager
    def file(self, path: Path | str) -> Iterator[None]:
        """Report the file, or address, as unreadable if anything fails within, and go on with the
        others.
        """
        try:
            yield
        except CONTROL:
            raise
        except BaseException as error:
            why = reason_of(error)
            self._unreadable.append(self.text(why if str(path) in why else f"{path}: {why}"))
        else:
            self._readable += 1

    def agent(
        self, name: str, *, description: str = "", kind: AgentKind = "library", source: str = ""
    ) -> str:
        """Add an agent, or complete the one of that name, and return its id."""
        name, source = self.text(name), self.text(source)
        identity = agent_id(self.catalog, name)
        description = description if isinstance(description, str) else ""
        description = valid_text(self.secrets.hide(description)).strip()
        if len(description) > MAX_DESCRIPTION:
            self.reject(
                f"agent {name}",
                f"its description has {len(description):,} characters, more than "
                f"{MAX_DESCRIPTION:,}; "
                "the agent is listed without it. Shorten it at its source.",
            )
            description = ""
        known = self._agents.get(identity)
        if known is None:
            self._agents[identity] = Agent(identity, self.catalog, name, description, kind, source)
        elif description and not known.description:
            self._agents[identity] = replace(known, description=description, source=source)
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
    ) -> bool:
        """Add a tool of an agent, or reject it with all reasons; return whether it is listed.

        Args:
            where: the place of the record in its source, for a person: `tools.json[3].tools[4]`.
            raw: the record as the source has it, all of which is checked.
            input_schema: a JSON Schema object; None means no arguments.
        """
        with self.record(where):
            parts = self.secrets.hide_in(
                {
                    "name": name,
                    "description": description,
                    "input_schema": input_schema,
                    "output_schema": output_schema,
                    "annotations": annotations,
                    "examples": tuple(examples),
                    "dependencies": tuple(map(astuple, dependencies)),
                    "tags": tuple(tags),
                }
            )
            problems = self._add_tool(agent, where, raw, parts)
            if not problems:
                return True
            self.reject(where, "; ".join(problems))
        return False

    def _add_tool(self, agent: str, where: str, raw: Any, parts: dict[str, Any]) -> list[str]:
        """Add the tool, or return what is wrong with it."""
        written: dict[str, str] = {}
        problems = list(text_problems(parts["name"], parts["description"]))
        checked = [parts[key] for key in ("name", "description", *SCHEMAS, "annotations", "tags")]
        if flaw := flaw_of(raw, *beside(raw, checked)):
            return [*problems, flaw]
        if invalid := list(schema_problems(written, parts)):
            parts, written = parts | _mended(parts), {}
            invalid = list(schema_problems(written, parts))
        problems += invalid
        if problems:
            return problems
        tool = Tool(
            id=tool_id(agent, parts["name"]),
            catalog=self.catalog,
            agent=agent,
            name=parts["name"].strip(),
            description=(parts["description"] or "").strip(),
            input_schema=parts["input_schema"] or {"type": "object", "properties": {}},
            output_schema=parts["output_schema"],
            annotations=parts["annotations"] or {},
            examples=_stripped(parts["examples"]),
            dependencies=tuple(Dependency(*fields) for fields in parts["dependencies"]),
            tags=tuple(sorted(set(_stripped((*self.tags, *parts["tags"]))))),
        )
        row = tool_row(tool, self._agents[agent].kind, written)
        if problems := encoding_problems(row):
            return problems
        line = json.dumps(row).encode()
        if (earlier := self._rows.get(tool.id)) is not None:
            what = "the same tool" if earlier == line else "another tool"
            return [
                f"{what} with the id {tool.id} is already listed at {self._places[tool.id]}; "
                f"rename or remove one of them"
            ]
        self._rows[tool.id], self._places[tool.id] = line, where
        return []

    def reject(self, where: str, why: str) -> None:
        """Record something that is left out, with the reason for a person.

        Raises SourceError if the source has too many of them.
        """
        if len(self.rejected) >= MAX_REJECTED:
            raise SourceError(
                f"More than {MAX_REJECTED:,} records are rejected, the last one at "
                f"{self.text(where)}: {self.text(why)}. Correct the source or its options."
            )
        self.rejected.append(Rejected(self.catalog, self.text(where), self.text(why)))

    def fail(self, agent: str, why: str) -> None:
        """Record that an agent (by id) could not be listed; its last good tools are kept."""
        self._failures[agent] = Failure(agent, self.text(why))

    def text(self, value: Any) -> str:
        """Return a place, reason or name as text that can be stored, whatever a source gave."""
        text = self.secrets.hide(value if isinstance(value, str) else short(value))
        return valid_text(cut(text, MAX_RAW))

    def build(self) -> Listing:
        """Return everything that was added, agents without tools included.

        Raises SourceError if there were files, and none of them could be read.
        """
        if self._unreadable and not self._readable:
            others = len(self._unreadable) - 1
            rest = f" {others:,} other files cannot be read either." if others else ""
            raise SourceError(f"{self._unreadable[0]}{rest}")
        return Listing(
            agents=tuple(self._agents[key] for key in sorted(self._agents)),
            rows=tuple(self._rows[key] for key in sorted(self._rows)),
            rejected=tuple(self.rejected),
            failures=tuple(self._failures[key] for key in sorted(self._failures)),
            unreadable=tuple(self._unreadable),
            repeatable=self.repeatable,
        )


def files_of_path(base: Path, options: Any) -> list[Path] | None:
    """Return the files that `path` of the options names; None if it is not given."""
    return matching_files(base, options.path) if options.path else None


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


def reason_of(error: BaseException) -> str:
    """Return a message about an exception that ended a record, file or source."""
    if isinstance(error, MemoryError):
        return "it needs more memory than its source may take; shorten it, or raise `max_memory`"
    if isinstance(error, RecursionError):
        return "it is nested too deeply; flatten it"
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, SourceError):
        return text
    return f"unexpected {type(error).__name__}: {short(text)}"


def _mended(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas among the parts of a tool that can be mended."""
    out: dict[str, Any] = {}
    for name in SCHEMAS:
        if isinstance(parts[name], dict):
            with suppress(Unusable):
                out[name] = mended(parts[name])
    return out


def _stripped(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not blank, each once."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
