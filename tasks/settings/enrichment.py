"""`[enrich]`, `[untrusted]` and `[overrides]` of a pegboard.toml: what is bought of which LLM, and
what people decided.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Product = Literal["description", "arguments", "questions", "topics", "dependencies", "agents"]
PRODUCTS: tuple[Product, ...] = (
    "description",
    "arguments",
    "questions",
    "topics",
    "dependencies",
    "agents",
)
USUAL_PRODUCTS: tuple[Product, ...] = tuple(
    product for product in PRODUCTS if product != "dependencies"
)
"""What is bought unless `products` says otherwise: who does not use the graph of dependencies need
not pay for it.
"""

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(gt=0)]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PriceSettings(_Settings):
    """What a million tokens cost, in USD, where LiteLLM does not know it."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class EnrichSettings(_Settings):
    """`[enrich]`: without this table, no LLM is ever called."""

    model: str
    fallbacks: tuple[str, ...] = ()
    api_base: str | None = None
    api_key_env: str | None = None
    price: PriceSettings | None = None
    products: Annotated[tuple[Product, ...], Field(min_length=1)] = USUAL_PRODUCTS

    questions: Annotated[int, Field(gt=0, le=100)] = 10
    topics: Annotated[int, Field(gt=0, le=50)] = 5
    neighbours: Annotated[int, Field(ge=0, le=50)] = 5
    collision: Annotated[float, Field(gt=0, le=1)] = 0.8
    context: str = ""
    language: Annotated[str | None, Field(pattern="^[a-z]{2}$")] = None
    think: bool = False
    structured: Literal["schema", "text"] = "schema"
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    max_reply_tokens: Count = 1_000

    mode: Literal["live", "batch"] = "live"
    concurrency: Annotated[int, Field(gt=0, le=1_000)] = 32
    requests_per_minute: Positive | None = None
    tokens_per_minute: Positive | None = None
    timeout: Positive = 60
    attempts: Count = 5
    batch_requests: Annotated[int, Field(gt=0, le=50_000)] = 10_000
    batch_wait: Annotated[float, Field(ge=0)] = 0

    budget_usd: Annotated[float | None, Field(ge=0)] = None
    max_tokens: Annotated[int | None, Field(ge=0)] = None
    incomplete: Literal["stop", "publish"] = "stop"

    keep_within: Annotated[float, Field(gt=0, le=1)] = 0.1

    @field_validator("products")
    @classmethod
    def _once_each(cls, products: tuple[Product, ...]) -> tuple[Product, ...]:
        """In the order in which they are made: topics are made from questions, questions from
        descriptions.
        """
        return tuple(product for product in PRODUCTS if product in products)

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not name.replace("_", "").isalnum():
            raise ValueError(
                "expected the name of an environment variable, such as OPENAI_API_KEY, not a key"
            )
        return name

    @model_validator(mode="after")
    def _goes_to_one_provider(self) -> "EnrichSettings":
        if self.mode == "batch" and self.fallbacks:
            raise ValueError(
                "fallbacks: a batch goes to one provider; leave them out, or set mode = 'live'"
            )
        return self


class UntrustedSettings(_Settings):
    """`[untrusted]`: what becomes of catalog text that tries to instruct whoever reads it."""

    flagged: Literal["publish", "quarantine"] = "publish"


class OverrideSettings(_Settings):
    """`[overrides."catalog/agent/tool"]`: what people say of a tool or an agent; it stands above
    the catalog and any LLM.
    """

    description: str | None = None
    examples: tuple[str, ...] | None = None
    arguments: dict[str, str] = {}
    tags: tuple[str, ...] | None = None
    skip: bool = False

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        if value == {}:
            raise ValueError("expected description, examples, arguments, tags or skip")
        return value
