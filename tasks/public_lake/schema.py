"""The tables of `lake/public` and their columns. `docs/how-to/query-the-lake.md` shows this list,
and a test compares them.

lake/public/<table>/<release>/<digest>-<number>.parquet    of a release
lake/public/<table>/<day>/<name>.parquet                   of the runs and LLM calls of a day (UTC)
lake/public/<table>/empty/0.parquet                        no rows, but the columns
lake/public/schema.json                                    this list, for programs

The number of the schema is the format of these files (`PUBLIC` in `tasks/lake/formats.py`). Raise
it if a column is renamed or gets another meaning; a further column needs no other number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

FOLDER = "public"
"""The folder of the public tables in the lake."""
EMPTY = "empty"
"""The folder of a table's file without rows, so that a table that is empty so far can be read."""
Kind = Literal["text", "texts", "integer", "number", "flag", "time", "day"]


@dataclass(frozen=True, slots=True)
class PublicColumn:
    """A column of a public table; `meaning` is a phrase in Markdown."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table.

    Attributes:
        partition: whether a folder holds the rows of one release or of one day.
        rows: what a row is, as a phrase in Markdown.
    """

    name: str
    partition: Literal["release", "day"]
    rows: str
    columns: tuple[PublicColumn, ...]

    def frame(self, rows: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
        """Return rows as a table with this schema; a missing value is null."""
        import polars as pl

        return pl.DataFrame(list(rows), schema=self.types())

    def types(self) -> dict[str, Any]:
        """Return the polars types of the columns by name."""
        import polars as pl

        types: dict[Kind, Any] = {
            "text": pl.String(),
            "texts": pl.List(pl.String()),
            "integer": pl.Int64(),
            "number": pl.Float64(),
            "flag": pl.Boolean(),
            "time": pl.Datetime("us", "UTC"),
            "day": pl.Date(),
        }
        return {column.name: types[column.kind] for column in self.columns}


_RELEASE = (
    PublicColumn("release", "text", "the id of the release"),
    PublicColumn("released_at", "time", "when the release was recorded"),
)
_CHANGED = (
    *_RELEASE,
    PublicColumn(
        "change",
        "text",
        "`new`, `changed` or `removed` against the release recorded before; a removed row is as it "
        "was there",
    ),
)
_RUN = (
    PublicColumn("day", "day", "the day on which the run ended (UTC)"),
    PublicColumn("ended_at", "time", "when the run ended"),
    PublicColumn("run", "text", "an id of the run"),
)

TABLES = (
    PublicTable(
        "releases",
        "release",
        "a recorded release, also one that its gate holds",
        (
            *_RELEASE,
            PublicColumn("digest", "text", "the digest of the whole release"),
            PublicColumn("contract", "integer", "the version of the table contract"),
            PublicColumn("pegboard", "text", "the version of Pegboard that made it"),
            PublicColumn("default_index", "text", "the index that searches use"),
            PublicColumn("strategy", "text", "the configured default strategy, or null"),
            PublicColumn("tools", "integer", "its tools"),
            PublicColumn("agents", "integer", "its agents"),
            PublicColumn("edges", "integer", "its dependencies"),
            PublicColumn("enriched", "integer", "tools with texts by an LLM"),
            PublicColumn("flagged", "integer", "tools with suspicious text"),
            PublicColumn("against", "text", "the release that was live when it was made, or null"),
            PublicColumn("new", "integer", "tools that `against` lacks"),
            PublicColumn("changed", "integer", "tools that differ from `against`"),
            PublicColumn("removed", "integer", "tools that only `against` has"),
            PublicColumn("unchanged", "integer", "tools as in `against`"),
            PublicColumn("gate_passed", "flag", "whether it passed its gate; null without one"),
            PublicColumn("unapproved", "integer", "definitions that waited for approval"),
        ),
    ),
    PublicTable(
        "tools",
        "release",
        "a tool in a release in which it is new, changed or removed",
        (
            *_CHANGED,
            PublicColumn("id", "text", "`catalog/agent/tool`"),
            PublicColumn("catalog", "text", "its catalog"),
            PublicColumn("agent", "text", "the id of its agent"),
            PublicColumn("kind", "text", "the kind of its agent"),
            PublicColumn("name", "text", "the name by which it is called"),
            PublicColumn("description", "text", "as its catalog or an override says it"),
            PublicColumn("input_schema", "text", "JSON"),
            PublicColumn("output_schema", "text", "JSON, or null"),
            PublicColumn("annotations", "text", "JSON"),
            PublicColumn("examples", "texts", "requests that it answers"),
            PublicColumn("dependencies", "text", "JSON: what its catalog declares"),
            PublicColumn("tags", "texts", "its tags"),
            PublicColumn("tool_digest", "text", "over what its catalog says"),
            PublicColumn("flags", "texts", "codes of what is suspicious in its text"),
            PublicColumn("enrichment", "text", "JSON: what an LLM wrote about it, or null"),
            PublicColumn("digest", "text", "over the whole row"),
        ),
    ),
    PublicTable(
        "agents",
        "release",
        "an agent in a release in which it is new, changed or removed",
        (
            *_CHANGED,
            PublicColumn("id", "text", "`catalog/agent`"),
            PublicColumn("catalog", "text", "its catalog"),
            PublicColumn("name", "text", "its name"),
            PublicColumn("description", "text", "its description"),
            PublicColumn("kind", "text", "its kind, such as `mcp-server`"),
            PublicColumn("source", "text", "where it was listed"),
            PublicColumn("enrichment", "text", "JSON: what an LLM wrote about it, or null"),
            PublicColumn("digest", "text", "over the whole row"),
        ),
    ),
    PublicTable(
        "documents",
        "release",
        "a document of an index in a release in which it is new, changed or removed",
        (
            *_CHANGED,
            PublicColumn("index", "text", "the index"),
            PublicColumn("key", "text", "the document's key"),
            PublicColumn("tool", "text", "the id of its tool"),
            PublicColumn("part", "text", "the part of the tool that it says"),
            PublicColumn("text", "text", "what is searched"),
            PublicColumn("digest", "text", "over the document and its encoder"),
        ),
    ),
    PublicTable(
        "edges",
        "release",
        "a dependency in a release in which it is new, changed or removed",
        (
            *_CHANGED,
            PublicColumn("key", "text", "the dependency's key"),
            PublicColumn("source", "text", "the id of the tool that depends"),
            PublicColumn("target", "text", "the id of the tool on which it depends"),
            PublicColumn("type", "text", "the type of the dependency"),
            PublicColumn("parameter", "text", "the parameter that needs it, or null"),
            PublicColumn("reason", "text", "why, as the catalog or an override says it"),
            PublicColumn("origin", "text", "`catalog`, `override` or what it was inferred from"),
            PublicColumn("confidence", "number", "from 0 to 1"),
            PublicColumn("evidence", "text", "what it was inferred from"),
            PublicColumn("place", "integer", "its place among those of its source, from 0"),
            PublicColumn("digest", "text", "over the whole row"),
        ),
    ),
    PublicTable(
        "evaluations",
        "release",
        "a measure of a release's golden queries, for releases with a gate",
        (
            *_RELEASE,
            PublicColumn("measured_at", "time", "when it was measured"),
            PublicColumn("golden", "text", "the digest of the golden queries"),
            PublicColumn("queries", "integer", "their number"),
            PublicColumn("index", "text", "the index that was searched"),
            PublicColumn("strategy", "text", "the strategy"),
            PublicColumn("measure", "text", "the measure, such as `Recall@5`"),
            PublicColumn("value", "number", "its mean over the queries"),
            PublicColumn("low", "number", "lower end of its 95 % interval"),
            PublicColumn("high", "number", "upper end of its 95 % interval"),
        ),
    ),
    PublicTable(
        "runs",
        "day",
        "a build that ended with an outcome",
        (
            *_RUN,
            PublicColumn("outcome", "text", "`published`, `held`, `unchanged` or `withdrawn`"),
            PublicColumn("release", "text", "the release that it made or found unchanged"),
            PublicColumn("failed_sources", "integer", "catalogs with a problem"),
            PublicColumn("new", "integer", "new tools"),
            PublicColumn("changed", "integer", "changed tools"),
            PublicColumn("removed", "integer", "removed tools"),
            PublicColumn("unchanged", "integer", "unchanged tools"),
            PublicColumn("rejected", "integer", "records that were left out"),
            PublicColumn("encoded", "integer", "texts that were encoded"),
            PublicColumn("truncated", "integer", "texts that the encoder truncated"),
            PublicColumn("llm_replies", "integer", "LLM replies that were paid for"),
            PublicColumn("llm_cost_usd", "number", "their cost in USD; null if a price is unknown"),
            PublicColumn("unfinished", "texts", "what failed after the outcome was decided"),
            PublicColumn("seconds", "number", "the time of its phases"),
        ),
    ),
    PublicTable(
        "sources",
        "day",
        "a catalog in a run",
        (
            *_RUN,
            PublicColumn("release", "text", "the release that the run made or found unchanged"),
            PublicColumn("catalog", "text", "the catalog"),
            PublicColumn("tools", "integer", "its tools, with those that were kept"),
            PublicColumn("agents", "integer", "its agents"),
            PublicColumn("rejected", "integer", "records that were left out"),
            PublicColumn("failed", "flag", "whether there was a problem"),
            PublicColumn("kept", "texts", "agents with kept tools; `*` is the whole catalog"),
            PublicColumn("problems", "texts", "what went wrong"),
        ),
    ),
    PublicTable(
        "llm_calls",
        "day",
        "a reply of an LLM that was paid for; neither prompts nor replies are there",
        (
            PublicColumn("day", "day", "the day of the first reply of its run (UTC)"),
            PublicColumn("arrived_at", "time", "when it arrived"),
            PublicColumn("run", "text", "an id of the enrichment that asked"),
            PublicColumn("product", "text", "what was asked for, such as `questions`"),
            PublicColumn("subject", "text", "the id of the tool or agent"),
            PublicColumn("step", "text", "`reply`, or `repair` of a rejected one"),
            PublicColumn("model", "text", "the configured model"),
            PublicColumn("answered_by", "text", "the model that answered"),
            PublicColumn("accepted", "flag", "whether anything of it was accepted"),
            PublicColumn("reason", "text", "why nothing was accepted"),
            PublicColumn("finish_reason", "text", "`stop`, `length` or `content_filter`"),
            PublicColumn("prompt_tokens", "integer", "tokens of the prompt"),
            PublicColumn("completion_tokens", "integer", "tokens of the reply"),
            PublicColumn("cost_usd", "number", "its cost in USD; null if the price is unknown"),
            PublicColumn("seconds", "number", "the time of the call"),
        ),
    ),
)
"""Every public table."""


def public_table(name: str) -> PublicTable:
    """Return the public table of that name."""
    return next(table for table in TABLES if table.name == name)


def schema_values() -> dict[str, Any]:
    """Return the tables and their columns as JSON values."""
    return {
        "tables": {
            table.name: {
                "partition": table.partition,
                "rows": table.rows,
                "columns": {column.name: column.kind for column in table.columns},
            }
            for table in TABLES
        }
    }
