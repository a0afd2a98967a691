"""The result of every source: a Listing of agents, tools, rejected records, notices and failures.

A source kind is a `SourceKind`: a pydantic model of its options, and a function `read(listing,
options)` that adds to a `ListingBuilder`. Only the builder decides which tools are valid, so all
kinds apply the same rules. Errors are isolated: `with listing.record(...)` rejects one record;
`with listing.file(...)` and `listing.fail(agent)` keep the last good tools of one file or agent; a
source that cannot be read at all raises `SourceError`. What is listed otherwise than it is written,
or left out on purpose, is reported by `listing.notice(...)`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from catalogs.shared.retries import ATTEMPTS, MAX_WAIT, Retries
from catalogs.shared.selection import Candidate, Selection, ToolFilter
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
from catalogs.shared.watching import Watched, WatchedFiles, WatchedListing
from pegboard.canonical import digest
from pegboard.errors import SourceError
from pegboard.foreign.files import flaw_of, matching_files
from pegboard.foreign.limits import (
    MAX_BYTES,
    MAX_DESCRIPTION,
    MAX_MEMORY,
    MAX_NAME,
    MAX_RAW,
    MAX_REJECTED,
    MAX_SECONDS,
)
from pegboard.records import (
    Agent,
    AgentKind,
    Dependency,
    Notice,
    NoticeKind,
    Rejected,
    RejectionKind,
    Tool,
    agent_id,
    tool_id,
)
from pegboard.schemas.loose import Unusable, mended
from pegboard.schemas.repair import repaired
from pegboard.text.secret_values import SecretValues

CONTROL = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that end the listing instead of rejecting a record or file."""
SCHEMAS = ("input_schema", "output_schema")
"""Parts of a tool that are JSON Schemas."""


class SourceOptions(BaseModel):
    """The options of every source kind; a kind inherits from it to add options.

    Attributes:
        attempts: how often a request that fails with a transient error is made, in all.
        max_wait: seconds; longest wait between two attempts, also if the server asks for more.
        trust: `limited` drops the catalog's examples and reasons of dependencies: texts that weigh
            much in searches and cannot be verified.
        include: conditions that every listed tool fulfils.
        exclude: conditions of which no listed tool fulfils any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    tags: tuple[str, ...] = ()
    max_bytes: int = Field(default=MAX_BYTES, gt=0)
    max_seconds: float = Field(default=MAX_SECONDS, gt=0)
    max_memory: int = Field(default=MAX_MEMORY, gt=0)
    attempts: int = Field(default=ATTEMPTS, ge=1, le=20)
    max_wait: float = Field(default=MAX_WAIT, ge=0)
    trust: Literal["full", "limited"] = "full"
    include: ToolFilter | None = None
    exclude: ToolFilter | None = None

    def selection(self) -> Selection:
        """Return what decides which tools are listed."""
        return Selection(self.include, self.exclude)


@dataclass(frozen=True, slots=True)
class Failure:
    """An agent that could not be listed, and why. The snapshot keeps its last good tools."""

    agent: str
    why: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The agents and tools of a source at one moment, ordered by id, and all problems.

    Attributes:
        rows: the tools, each as one line of JSON (see `tool_row`).
        unreadable: the files that could not be read, and why; the snapshot keeps tools that only
            they list.
        repeatable: whether the listing depends only on the inputs of the source (see
            `SourceKind`).
    """

    agents: tuple[Agent, ...] = ()
    rows: Sequence[bytes] = ()
    rejected: tuple[Rejected, ...] = ()
    notices: tuple[Notice, ...] = ()
    failures: tuple[Failure, ...] = ()
    unreadable: tuple[str, ...] = ()
    repeatable: bool = True

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, parsed from their rows."""
        return tuple(tool_of(json.loads(row)) for row in self.rows)


@dataclass(slots=True)
class ListingBuilder:
    """Collects the agents, tools and problems of a source.

    Attributes:
        base: the folder of pegboard.toml, from which relative paths count.
        tags: added to every tool.
        secrets: values that the source was given; they are redacted in everything that is added.
        retries: the policy for transient failures; `retries.call(function)` applies it.
        selection: the options `include` and `exclude`. `tool` applies them; a source that would
            read much of a tool in vain asks `selection.selects` before.
        repeatable: a source sets it to False if it used more than its declared inputs.
    """

    catalog: str
    base: Path
    tags: tuple[str, ...] = ()
    secrets: SecretValues = field(default_factory=SecretValues)
    retries: Retries = field(default_factory=Retries)
    selection: Selection = field(default_factory=Selection)
    _agents: dict[str, Agent] = field(default_factory=dict[str, Agent])
    repeatable: bool = True
    _rows: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _places: dict[str, str] = field(default_factory=dict[str, str])
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    notices: list[Notice] = field(default_factory=list[Notice])
    _failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    _unreadable: list[str] = field(default_factory=list[str])
    _readable: int = 0

    def clear(self) -> None:
        """Forget everything that was added, before the source is read again."""
        self.repeatable = True
        self._readable = 0
        for added in (
            self._agents,
            self._rows,
            self._places,
            self.rejected,
            self.notices,
            self._failures,
            self._unreadable,
        ):
            added.clear()

    @contextmanager
    def record(self, where: str) -> Iterator[None]:
        """Reject the record if the block raises."""
        try:
            yield
        except CONTROL:
            raise
        except BaseException as error:  # Polars' PanicException is no `Exception`
            self.reject(where, reason_of(error))

    @contextmanager
    def file(self, path: Path | str) -> Iterator[None]:
        """Report the file or URL as unreadable if the block raises."""
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
        """Add an agent, or add the description to the agent of that name; return its id."""
        name = self._agent_name(self.text(name))
        source = self.text(source)
        identity = agent_id(self.catalog, name)
        description = description if isinstance(description, str) else ""
        description = valid_text(self.secrets.hide(description)).strip()
        if len(description) > MAX_DESCRIPTION:
            self.notice(
                "cut",
                f"agent {name}",
                f"its description has {len(description):,} characters, more than "
                f"{MAX_DESCRIPTION:,}; "
                "the agent is listed without it. Shorten it at its source.",
            )
            description = ""
        agent = self._agents.get(identity)
        if agent is None:
            self._agents[identity] = Agent(identity, self.catalog, name, description, kind, source)
        elif description and not agent.description:
            self._agents[identity] = replace(agent, description=description, source=source)
        return identity

    def _agent_name(self, name: str) -> str:
        """Return a name within its limit: one that is too long ends with a digest of the whole."""
        if len(name) <= MAX_NAME:
            return name
        self.notice(
            "renamed",
            f"agent {name[:MAX_NAME]}",
            f"its name has {len(name):,} characters, more than {MAX_NAME}; it is listed under its "
            f"first ones and a digest. Shorten it at its source.",
        )
        return f"{name[: MAX_NAME - 9]}-{digest(name)[:8]}"

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

        A tool that the catalog's `include` and `exclude` leave out is counted instead.

        Args:
            where: the place of the record in its source, for people: `tools.json[3].tools[4]`.
            raw: the unchanged record of the source, which is checked for size and depth.
            input_schema: a JSON Schema object; None means no arguments.
        """
        with self.record(where):
            tags = tuple(tags)
            if not self.selection.selects(Candidate(name, tags, annotations, raw), where):
                return False
            parts = self.secrets.hide_in(
                {
                    "name": name,
                    "description": description,
                    "input_schema": input_schema,
                    "output_schema": output_schema,
                    "annotations": annotations,
                    "examples": tuple(examples),
                    "dependencies": tuple(map(astuple, dependencies)),
                    "tags": tags,
                }
            )
            problems = self._add_tool(agent, where, raw, parts)
            if not problems:
                return True
            self.reject(where, "; ".join(problems.values()), next(iter(problems)))
        return False

    def _add_tool(
        self, agent: str, where: str, raw: Any, parts: dict[str, Any]
    ) -> dict[RejectionKind, str]:
        """Add the tool, or return its problems by their kind."""
        written: dict[str, str] = {}
        problems: dict[RejectionKind, str] = {}
        if unusable := list(text_problems(parts["name"], parts["description"])):
            problems["text"] = "; ".join(unusable)
        checked = [parts[key] for key in ("name", "description", *SCHEMAS, "annotations", "tags")]
        if flaw := flaw_of(raw, *beside(raw, checked)):
            problems["size"] = flaw
            return problems
        if invalid := list(schema_problems(written, parts)):
            parts = parts | _mended(parts)
            written = {}
            invalid = list(schema_problems(written, parts))
        repairs: list[str] = []
        if invalid:
            repaired_parts = parts | _repaired(parts, repairs)
            repaired_written: dict[str, str] = {}
            if not list(schema_problems(repaired_written, repaired_parts)):
                parts = repaired_parts
                written = repaired_written
                invalid = []
        if invalid:
            problems["schema"] = "; ".join(invalid)
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
        if unusable := encoding_problems(row):
            return {"text": "; ".join(unusable)}
        line = json.dumps(row).encode()
        if (earlier := self._rows.get(tool.id)) is not None:
            what = "the same tool" if earlier == line else "another tool"
            return {
                "duplicate": (
                    f"{what} with the id {tool.id} is already listed at {self._places[tool.id]}; "
                    f"rename or remove one of them"
                )
            }
        self._rows[tool.id] = line
        self._places[tool.id] = where
        if repairs:
            self.notice("repaired", where, f"{'; '.join(repairs)}. Correct it there.")
        return {}

    def reject(self, where: str, why: str, kind: RejectionKind = "record") -> None:
        """Record that a record is left out, and why.

        Raises SourceError if the source has too many rejected records.
        """
        if len(self.rejected) >= MAX_REJECTED:
            raise SourceError(
                f"More than {MAX_REJECTED:,} records are rejected, the last one at "
                f"{self.text(where)}: {self.text(why)}. Correct the source or its options."
            )
        self.rejected.append(Rejected(self.catalog, self.text(where), self.text(why), kind))

    def notice(self, kind: NoticeKind, where: str, why: str, count: int = 1) -> None:
        """Report what is listed otherwise than it is written, or not listed on purpose.

        Args:
            count: the number of records for which it is said once.

        No source fails for its notices: from `MAX_REJECTED` on, they are left out.
        """
        if len(self.notices) == MAX_REJECTED:
            where, why = self.catalog, f"there are more than {MAX_REJECTED:,} notices"
        if len(self.notices) <= MAX_REJECTED:
            self.notices.append(Notice(self.catalog, self.text(where), self.text(why), kind, count))

    def fail(self, agent: str, why: str) -> None:
        """Record that an agent (by id) could not be listed; its last good tools are kept."""
        self._failures[agent] = Failure(agent, self.text(why))

    def text(self, value: Any) -> str:
        """Return a place, reason or name as redacted text that can be stored."""
        text = self.secrets.hide(value if isinstance(value, str) else short(value))
        return valid_text(cut(text, MAX_RAW))

    def build(self) -> Listing:
        """Return everything that was added, including agents without tools.

        Raises SourceError if none of the files could be read, or if a pattern of `include` or
        `exclude` matches no tool of a source that was read completely.
        """
        if self._unreadable and not self._readable:
            others = len(self._unreadable) - 1
            rest = f" {others:,} other files cannot be read either." if others else ""
            raise SourceError(f"{self._unreadable[0]}{rest}")
        if not self._unreadable and not self._failures:
            self.selection.check()
        for count, sentence in self.selection.left_out():
            self.notice("skipped", self.catalog, sentence, count)
        return Listing(
            agents=tuple(self._agents[key] for key in sorted(self._agents)),
            rows=tuple(self._rows[key] for key in sorted(self._rows)),
            rejected=tuple(self.rejected),
            notices=tuple(self.notices),
            failures=tuple(self._failures[key] for key in sorted(self._failures)),
            unreadable=tuple(self._unreadable),
            repeatable=self.repeatable,
        )


def files_of_path(base: Path, options: Any) -> list[Path] | None:
    """Return the files that match the option `path`; None if it is not set."""
    return matching_files(base, options.path) if options.path else None


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source, registered under the entry-point group `pegboard.catalogs`.

    Attributes:
        options: model of the catalog's section in pegboard.toml.
        read: adds the tools to the builder.
        inputs: returns the files that determine the listing, given the base folder of relative
            paths and the options; None if the listing depends on anything else. Unchanged file
            sources are skipped. Without `inputs`, every build reads the source.
        watched: returns what `pegboard watch` looks at, given the same. By default it looks at the
            files of `inputs`, and without them lists the source again and again.
    """

    options: type[SourceOptions]
    read: Callable[[ListingBuilder, Any], None]
    inputs: Callable[[Path, Any], Sequence[Path] | None] | None = None
    watched: Callable[[Path, Any], Sequence[Watched]] | None = None

    def watches(self, base: Path, options: Any) -> Sequence[Watched]:
        """Return what to look at to notice that a source of this kind changed.

        Raises SourceError if the source does not say it now, such as without its file.
        """
        if self.watched is not None:
            return self.watched(base, options)
        if self.inputs is None or not _has_files(self.inputs, base, options):
            return [WatchedListing()]
        path = getattr(options, "path", None)
        find = partial(self.inputs, base, options)
        return [WatchedFiles(lambda: find() or (), (path,) if isinstance(path, str) else ())]


def _has_files(
    inputs: Callable[[Path, Any], Sequence[Path] | None], base: Path, options: Any
) -> bool:
    try:
        return inputs(base, options) is not None
    except (SourceError, OSError):
        return True  # there are none yet


def reason_of(error: BaseException) -> str:
    """Return the message for an exception raised by a record, file or source."""
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
    """Return those schemas of a tool that can be mended, mended."""
    out: dict[str, Any] = {}
    for name in SCHEMAS:
        if isinstance(parts[name], dict):
            with suppress(Unusable):
                out[name] = mended(parts[name])
    return out


def _repaired(parts: Mapping[str, Any], repairs: list[str]) -> dict[str, Any]:
    """Return those schemas of a tool that are not valid, repaired.

    Args:
        repairs: gets a sentence for each.
    """
    out: dict[str, Any] = {}
    for name in SCHEMAS:
        alone = {**dict.fromkeys((*SCHEMAS, "annotations")), name: parts[name]}
        schema = _as_schema(parts[name])
        if not isinstance(schema, Mapping) or not list(schema_problems({}, alone)):
            continue
        result = repaired(cast("Mapping[str, Any]", schema))
        changes = result.changes or [f"it is {short(parts[name])}"]
        out[name] = result.schema
        repairs.append(f"its {name.replace('_', ' ')} is repaired: {', '.join(changes[:3])}")
    return out


def _as_schema(value: Any) -> Any:
    """Return what a careless source means by a value that is no schema: `true` and PHP's `[]` take
    anything, and a text may be a schema as JSON.
    """
    if value is True or value == []:
        return {"type": "object", "properties": {}}
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _stripped(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that are not blank, each once."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text and text.strip()))
