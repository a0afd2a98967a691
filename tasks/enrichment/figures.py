"""Figures of an enrichment: an estimate before the run, actual figures and messages after it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pegboard.errors import CompletionError, ConfigurationError, PegboardError
from pegboard.formatting import limited_lines
from pegboard.llm import Completer
from pegboard.llm.client import TEXT_FAILURES, Client, Price, price_of
from pegboard.llm.failures import NEXT_STEPS
from pegboard.tokens import token_bound
from tasks.enrichment.ledger import LakeLedger
from tasks.enrichment.live import LiveRun
from tasks.enrichment.products import typical_output_tokens
from tasks.enrichment.replies import CUT_OFF_REASONS
from tasks.enrichment.requests import ProductRequest
from tasks.settings.enrichment import EnrichSettings, Product

SAMPLED_PROMPTS = 40
"""Maximum prompts per product whose tokens are counted; the others are extrapolated."""
SHOWN_FAILURES = 5
"""Maximum failed requests that the problems of a build name."""
MIN_JUDGED = 10
"""Minimum judged replies for a warning that most are rejected."""


def estimate(
    requests: Iterable[ProductRequest],
    ledger: LakeLedger,
    settings: EnrichSettings,
    completer: Completer,
) -> dict[str, Any]:
    """Return what these requests would cost, without any network, as JSON values.

    `products` has for each product how many `requests` there are, how many of these the ledger
    holds (`accepted`, `rejected`), how many are `pending` (tools with the same content share one
    reply; repairs and retries come on top), and for these `prompt_tokens`, `completion_tokens` and
    `cost_usd`, which is None if the price is unknown. The sums of the latter four stand beside it,
    and in `over_budget` a sentence for each limit that is too low.
    """
    by_product: dict[Product, list[ProductRequest]] = {product: [] for product in settings.products}
    for request in requests:
        by_product[request.product].append(request)
    products = {
        product: _estimate_product(part, ledger, settings, completer)
        for product, part in by_product.items()
    }
    parts = list(products.values())
    sums = ("pending", "prompt_tokens", "completion_tokens")
    costs = [part["cost_usd"] for part in parts if part["cost_usd"] is not None]
    totals = {name: sum(part[name] for part in parts) for name in sums}
    tokens = totals["prompt_tokens"] + totals["completion_tokens"]
    cost = round(sum(costs), 6) if len(costs) == len(parts) else None
    return {
        "model": settings.model,
        "products": products,
        **totals,
        "cost_usd": cost,
        "over_budget": budget_messages(tokens, cost, settings),
    }


def _estimate_product(
    requests: Sequence[ProductRequest],
    ledger: LakeLedger,
    settings: EnrichSettings,
    completer: Completer,
) -> dict[str, Any]:
    replies = [(request, request.final_reply(ledger)) for request in requests]
    pending = list({request.key: request for request, reply in replies if reply is None}.values())
    prompt = round(_mean_prompt_tokens(pending, ledger, completer) * len(pending))
    completion = 0
    price = price_of(completer)
    if pending:
        completion = typical_output_tokens(pending[0].product, settings) * len(pending)
    cost = _cost(price, prompt, completion) if pending or price else 0.0
    return {
        "requests": len(requests),
        "accepted": sum(reply is not None and reply.value is not None for _, reply in replies),
        "rejected": sum(reply is not None and reply.value is None for _, reply in replies),
        "pending": len(pending),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cost_usd": cost,
    }


def _cost(price: Price | None, prompt: int, completion: int) -> float | None:
    return prompt * price[0] + completion * price[1] if price else None


def _mean_prompt_tokens(
    pending: Sequence[ProductRequest], ledger: LakeLedger, completer: Completer
) -> float:
    """Tokens of prompts, extrapolated from an evenly spread sample of the requests."""
    sample = pending[:: max(1, len(pending) // SAMPLED_PROMPTS)][:SAMPLED_PROMPTS]
    if not sample:
        return 0.0
    count: Callable[[str], int] = getattr(completer, "count_tokens", token_bound)
    calls = [request.next_call(ledger, {})[1] for request in sample]
    texts = [
        "\n".join(message.content for message in call.messages) + str(call.schema or "")
        for call in calls
    ]
    return sum(count(text) for text in texts) / len(texts)


def actual_figures(
    requests: Iterable[ProductRequest], ledger: LakeLedger, run: LiveRun, client: Client
) -> dict[str, Any]:
    """Return counts, tokens and cost of a run as JSON values, named as in the estimate."""
    replies = [
        (request.product, reply)
        for request in requests
        if (reply := request.final_reply(ledger)) is not None
    ]
    budget = client.budget
    return {
        "completed": dict(run.completed),
        "accepted": dict(Counter(product for product, reply in replies if reply.value is not None)),
        "rejected": _by_product(
            (product, reply.reason) for product, reply in replies if reply.value is None
        ),
        "dropped": _by_product(
            (product, reason)
            for product, reply in replies
            if reply.value
            for _, reason in json.loads(reply.dropped)
        ),
        "products": _spent_by_product(ledger),
        "replies": budget.replies,
        "calls": dict(sorted(client.outcomes.items())),
        "prompt_tokens": budget.prompt_tokens,
        "completion_tokens": budget.completion_tokens,
        "cost_usd": None if budget.unpriced else round(budget.spent_usd, 6),
    }


def _spent_by_product(ledger: LakeLedger) -> dict[str, dict[str, Any]]:
    """Return the replies, tokens and cost of this run by product; a cost of None is unknown."""
    spent: dict[str, dict[str, Any]] = {}
    for reply in ledger.all():
        if reply.run != ledger.run:
            continue
        row = spent.setdefault(reply.product, {"replies": 0, "tokens": 0, "cost_usd": 0.0})
        row["replies"] += 1
        row["tokens"] += reply.prompt_tokens + reply.completion_tokens
        if reply.cost_usd is None or row["cost_usd"] is None:
            row["cost_usd"] = None
        else:
            row["cost_usd"] = round(row["cost_usd"] + reply.cost_usd, 6)
    return dict(sorted(spent.items()))


def _by_product(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for (product, reason), count in sorted(Counter(pairs).items()):
        table.setdefault(product, {})[reason] = count
    return table


def stale_prompts(
    requests: Iterable[ProductRequest], ledger: LakeLedger
) -> list[ConfigurationError]:
    """Return an error for each prompt file whose wording changed without its version.

    Its replies in the ledger are to the old wording; new ones would be mixed with them.
    """
    stale: Counter[tuple[str, str]] = Counter()
    for request in requests:
        reply = request.final_reply(ledger)
        prompt = request.prompt
        if reply is not None and reply.prompt != request.wording:
            stale[str(prompt.path), prompt.version] += 1
    return [
        ConfigurationError(
            f"{path} was changed, but its version is still '{version}', and {count} of its replies "
            "are to the old wording. Change the version to ask for new ones, or undo the change."
        )
        for (path, version), count in sorted(stale.items())
    ]


def unusable_messages(
    run: LiveRun, actual: Mapping[str, Any], settings: EnrichSettings
) -> list[str]:
    """Return a sentence for each product that got no usable reply, or mostly rejected ones.

    Args:
        actual: the figures of the run, with the texts that it kept.
    """
    messages: list[str] = []
    for product in settings.products:
        errors = [error for request, error in run.failures if request.product == product]
        rejected: Mapping[str, int] = actual["rejected"].get(product, {})
        accepted: int = actual["accepted"].get(product, 0)
        count = sum(rejected.values())
        texts = accepted + actual["kept"].get(product, 0) + actual["outdated"].get(product, 0)
        if _is_unanswered(run, product, errors, texts, count):
            causes = [f"{len(errors)} failed"] if errors else []
            causes += [f"{number} {reason}" for reason, number in rejected.items()]
            last = f" Last error: {str(errors[-1]).rstrip('.')}." if errors else ""
            message = f"No request for {product} got a usable reply ({', '.join(causes)}).{last}"
        elif count + accepted >= MIN_JUDGED and count > accepted:
            shown = ", ".join(f"{number} {reason}" for reason, number in rejected.items())
            message = (
                f"Most replies for {product} were rejected: {count} of {count + accepted} "
                f"({shown})."
            )
        else:
            continue
        messages.append(message + _limit_advice(rejected, settings))
    return messages


def _is_unanswered(
    run: LiveRun,
    product: Product,
    errors: Sequence[CompletionError],
    texts: int,
    rejected: int,
) -> bool:
    """Whether the board has no text for a product, or this run asked and got no usable reply.

    Failures and rejections that are due to the text of one tool do not count if other tools have
    replies: else one source could hold back all others.
    """
    if not texts:
        return bool(errors or rejected)
    general = [error for error in errors if error.kind not in TEXT_FAILURES]
    return not run.completed[product] and bool(general or run.invalid[product])


def _limit_advice(rejected: Mapping[str, int], settings: EnrichSettings) -> str:
    if not rejected.keys() & CUT_OFF_REASONS:
        return ""
    return f" max_reply_tokens is {settings.max_reply_tokens}. {NEXT_STEPS['spent']}"


def outdated_messages(outdated: Mapping[Product, int]) -> list[str]:
    """Return a sentence about texts that are about earlier versions of tools and agents."""
    if not outdated:
        return []
    counts = ", ".join(f"{count} {product}" for product, count in outdated.items())
    return [
        f"Texts about earlier versions of tools and agents were kept: {counts}; the next build "
        "with replies replaces them"
    ]


def budget_messages(tokens: int, cost: float | None, settings: EnrichSettings) -> list[str]:
    """Return a sentence for each limit that is below what the requests are estimated to take."""
    messages: list[str] = []
    if settings.budget_usd is not None and (cost or 0.0) > settings.budget_usd:
        messages.append(
            f"budget_usd = {settings.budget_usd:g} is too low: {cost:.4f} USD are estimated"
        )
    if settings.max_tokens is not None and tokens > settings.max_tokens:
        messages.append(f"max_tokens = {settings.max_tokens} is too low: {tokens} are estimated")
    return messages


def failure_messages(run: LiveRun) -> list[str]:
    """Return what could not be generated, the first few by name; without requests that lack a
    recorded reply.
    """
    lines = [
        f"{request.product} of {request.subject} was not generated: {error}"
        for request, error in run.failures
        if error.kind != "unrecorded"
    ]
    return limited_lines(lines, SHOWN_FAILURES, note="; the next run tries again")


def stop_message(
    error: PegboardError | None, requests: Iterable[ProductRequest], ledger: LakeLedger
) -> str:
    """Return why a run ended early, and its progress; empty if it was completed."""
    if error is None:
        return ""
    replies = [request.final_reply(ledger) for request in requests]
    done = sum(reply is not None for reply in replies)
    return f"{str(error).rstrip('.')}. {done} of {len(replies)} requests are completed."
