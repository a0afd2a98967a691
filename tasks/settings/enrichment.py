"""`[enrich]`, `[untrusted]` and `[overrides]` of a pegboard.toml: texts by an LLM or by people."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from pegboard.llm.recorded import MissingReplies
from pegboard.records import DependencyType
from pegboard.toml_settings import ProviderOptions, Settings

Product = Literal["description", "arguments", "questions", "topics", "agents"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
MEASURED_PRODUCTS: tuple[Product, ...] = ("description", "questions")
"""What an LLM writes where nothing is said: the products of which docs/results/llm.md shows what
they add. The others are bought by those who name them.
"""

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
DEFAULT_REPLY_TOKENS = 1_000
"""Default of `max_reply_tokens`."""
MAX_WAIT = 180
"""Default of `max_wait`, in seconds."""


class PriceSettings(Settings):
    """Prices in USD for a million tokens of a model whose price LiteLLM does not know."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class EnrichSettings(Settings):
    """`[enrich]`: how an LLM enriches tools. Without this table no LLM is called.

    Attributes:
        options: further arguments of LiteLLM's `completion`; see `pegboard.llm.options`.
        max_wait: seconds of the longest Retry-After that a run waits for; a longer one ends it.
        incomplete: what a run does that reaches a limit, or in which every request for a product
            fails: publish nothing, or what there is.
        replies: a folder of recorded replies, which are read before the model is asked; relative to
            the pegboard.toml. See `pegboard.llm.recorded`.
        missing_replies: what happens to requests without a recorded reply; `ask` by default.
    """

    model: str
    api_base: str | None = None
    api_key_env: str | None = None
    price: PriceSettings | None = None
    products: Annotated[tuple[Product, ...], Field(min_length=1)] = MEASURED_PRODUCTS

    questions: Annotated[int, Field(gt=0, le=100)] = 8
    topics: Annotated[int, Field(gt=0, le=50)] = 5
    neighbours: Annotated[int, Field(ge=0, le=50)] = 5
    collision: Annotated[float, Field(gt=0, le=1)] = 0.8
    context: str = ""
    language: Annotated[str | None, Field(pattern="^[a-z]{2}$")] = None
    structured: Literal["schema", "text"] = "schema"
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    max_reply_tokens: Count = DEFAULT_REPLY_TOKENS
    options: ProviderOptions = Field(default_factory=dict[str, Any])

    concurrency: Annotated[int, Field(gt=0, le=1_000)] = 32
    timeout: Positive = 60
    attempts: Count = 5
    max_wait: Positive = MAX_WAIT

    budget_usd: Annotated[float | None, Field(ge=0)] = None
    max_tokens: Annotated[int | None, Field(ge=0)] = None
    incomplete: Literal["stop", "publish"] = "stop"
    replies: str | None = None
    missing_replies: MissingReplies | None = None

    @field_validator("products")
    @classmethod
    def _once_each(cls, products: tuple[Product, ...]) -> tuple[Product, ...]:
        """Sort the products: topics are made from questions, questions from descriptions."""
        return tuple(product for product in PRODUCTS if product in products)

    @model_validator(mode="after")
    def _has_replies(self) -> Self:
        if self.missing_replies is not None and self.replies is None:
            raise ValueError("missing_replies needs replies, the folder of recorded replies")
        return self

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not name.replace("_", "").isalnum():
            raise ValueError(
                "expected the name of an environment variable, such as OPENAI_API_KEY, not a key"
            )
        return name


class UntrustedSettings(Settings):
    """`[untrusted]`: whether tools with suspected prompt injection are published."""

    flagged: Literal["publish", "quarantine"] = "publish"


class DependencyOverride(Settings):
    """One of the `dependencies` of an override, which sets, changes or forbids one edge.

    Attributes:
        tool: the id of the required tool, or its name if both tools have the same agent.
        parameter: the parameter that the required tool provides; None for the tool in general,
            and with `forbid` for every edge to that tool.
        type: by default a direct dependency, of the parameter if there is one.
    """

    tool: str
    parameter: str | None = None
    type: DependencyType | None = None
    reason: str = ""
    forbid: bool = False


class OverrideSettings(Settings):
    """`[overrides."catalog/agent/tool"]`: replaces what the catalog and the LLM say about a tool or
    an agent.
    """

    description: str | None = None
    examples: tuple[str, ...] | None = None
    arguments: dict[str, str] = Field(default_factory=dict[str, str])
    tags: tuple[str, ...] | None = None
    dependencies: tuple[DependencyOverride, ...] = ()
    skip: bool = False

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if value == {}:
            raise ValueError(
                "expected description, examples, arguments, tags, dependencies or skip"
            )
        return value
