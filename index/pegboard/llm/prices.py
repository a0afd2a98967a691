"""What a token costs: as the configuration says, else as LiteLLM's price list has it, else nobody
knows.

Looked up in the list itself: LiteLLM's own functions answer 0 for a model that it only recognises
by family (`openai/gpt-5-unheard-of`), and ask a local server for others.
"""

from typing import Any

from pegboard.llm.endpoint import Endpoint


def live_price(endpoint: Endpoint) -> tuple[float, float] | None:
    """USD for a token of prompt and of reply; None if nobody knows."""
    if endpoint.price is not None:
        return endpoint.price[0] / 1_000_000, endpoint.price[1] / 1_000_000
    return _listed(endpoint, "")


def batch_price(endpoint: Endpoint) -> tuple[float, float] | None:
    """The same in a batch: as listed, else half of the live price."""
    listed = None if endpoint.price is not None else _listed(endpoint, "_batches")
    if listed is not None or (live := live_price(endpoint)) is None:
        return listed
    return live[0] / 2, live[1] / 2


def _listed(endpoint: Endpoint, suffix: str) -> tuple[float, float] | None:
    entry = _entry(endpoint)
    prompt, reply = (entry.get(f"{side}_cost_per_token{suffix}") for side in ("input", "output"))
    return None if prompt is None or reply is None else (float(prompt), float(reply))


def _entry(endpoint: Endpoint) -> dict[str, Any]:
    prices = endpoint.litellm.model_cost
    for key in (endpoint.name, f"{endpoint.provider}/{endpoint.model}"):
        if key in prices:
            return prices[key]
    entry = prices.get(endpoint.model) or {}
    # A bare name may be another provider's: openai/claude-... is a server of someone's own.
    return entry if str(entry.get("litellm_provider", "")).startswith(endpoint.provider) else {}
