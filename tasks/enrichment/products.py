"""The products of an enrichment: for each the schema of its reply, and the value that it yields.

    description   {"description": what it does and when to use it, "avoid": when not, and which
                  sibling instead}
    arguments     {argument: note}
    questions     [request, ...]
    topics        [topic, ...]
    agents        what an agent is for

The schemas are strict: every field is required and no other is allowed, as servers with structured
output require. The docstrings of the classes are part of them."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tasks.safety.untrusted import visible
from tasks.settings.enrichment import EnrichSettings, Product

Text = Annotated[str, AfterValidator(visible)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Avoid(_Reply):
    """A case for which another tool is right."""

    when: Text = Field(description="the case, in a short clause")
    instead: Text = Field(
        description="the exact name of the sibling to use there; empty if none covers it"
    )


class DescriptionReply(_Reply):
    """What a tool is for."""

    does: Text = Field(description="what the tool does, to what, and what comes back")
    use_when: Text = Field(description="when it is the right choice")
    avoid: list[Avoid] = Field(description="when it is the wrong one; may be empty")


class ArgumentNote(_Reply):
    """A note on one argument."""

    name: Text = Field(description="the argument's exact name")
    note: Text = Field(description="what it is and what it is for")


class ArgumentsReply(_Reply):
    """Notes on the arguments."""

    arguments: list[ArgumentNote] = Field(description="one note for each argument")


class QuestionsReply(_Reply):
    """Requests of users."""

    questions: list[Text] = Field(description="requests that the tool answers")


class TopicsReply(_Reply):
    """Topics of a tool."""

    topics: list[Text] = Field(description="topics of one to five words")


class AgentDescriptionReply(_Reply):
    """What an agent is for."""

    description: Text = Field(description="what the agent is for")


REPLIES: dict[Product, type[_Reply]] = {
    "description": DescriptionReply,
    "arguments": ArgumentsReply,
    "questions": QuestionsReply,
    "topics": TopicsReply,
    "agents": AgentDescriptionReply,
}


def typical_output_tokens(product: Product, settings: EnrichSettings) -> int:
    """Return about how many tokens a reply has.

    Counted as JSON with the tokenizer of gpt-4o-mini.
    """
    typical: dict[Product, int] = {
        # Expanded descriptions have 113 to 148 (Retrieval-Plan-Select, Appendix C); and `avoid`.
        "description": 180,
        "arguments": 75,  # 25 for a note; the benchmarks' tools have 2.5 arguments
        "questions": 10 + 26 * settings.questions,  # MetaTool's example queries have 23
        "topics": 6 + 6 * settings.topics,
        "agents": 90,
    }
    return min(typical[product], settings.max_reply_tokens)


def schema_of(product: Product) -> dict[str, Any]:
    """Return the JSON Schema of a product's reply, without references."""
    return inlined_schema(REPLIES[product])


def inlined_schema(reply: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a reply, without references."""
    schema = reply.model_json_schema()
    return _inlined(schema, schema.pop("$defs", {}))


def avoid_text(cases: list[Avoid]) -> str:
    """Return when not to use a tool: `Not when rain is asked for: use get_forecast.`"""
    return " ".join(_case(case) for case in cases if case.when.strip())


def _case(case: Avoid) -> str:
    when = case.when.strip().rstrip(".;,")
    lead = (
        "Not"
        if when.lower().startswith(("when ", "if ", "for ", "to ", "in ", "with "))
        else "Not when"
    )
    return f"{lead} {when[0].lower() + when[1:] if when[1:2].islower() else when}" + (
        f": use {case.instead.strip()}." if case.instead.strip() else "."
    )


def sentence(text: str) -> str:
    """Return a text on one line with a full stop."""
    text = " ".join(text.split())
    return text if not text or text.endswith((".", "!", "?", "。", "！", "？", "।")) else f"{text}."


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {key: _inlined(item, definitions) for key, item in value.items() if key != "title"}
