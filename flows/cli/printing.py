"""What a run prints for a person: the plan, the LLM's part with its cost, and what became of it."""

from typing import Any

from pegboard.cli.output import plain
from tasks.gate.messages import held_lines, measured_line

NAMED = 10
"""Rows that are printed of a long list; --json has all."""


def print_run(outcome: dict[str, Any]) -> None:
    """Print the outcome of a build or a plan (see `RunSummary.end`)."""
    plan = outcome["plan"]
    print(
        f"{len(plan['new'])} new, {len(plan['changed'])} changed, {len(plan['removed'])} removed, "
        f"{plan['unchanged']} unchanged tools"
    )
    for name, catalog in outcome["catalogs"].items():
        rejected = f", {catalog['rejected']} rejected" if catalog["rejected"] else ""
        agents = f"{catalog['agents']} agent{'' if catalog['agents'] == 1 else 's'}"
        print(f"  {name}: {catalog['tools']} tools of {agents}{rejected}")
    _print_some([f"    rejected {row['where']}: {row['why']}" for row in outcome["rejected"]])
    if outcome["enrichment"]:
        _print_enrichment(outcome["enrichment"])
    if outcome["filter"]:
        _print_filter(outcome["filter"])
    made = outcome["edges"]
    _print_edges(made["origins"] if made else plan["edges"], made["unresolved"] if made else [])
    if outcome["held_out"]:
        print(f"{outcome['held_out']} examples are golden queries, and held out of the index.")
    print(_ended(outcome))
    if outcome["report"] and outcome["report"]["html"]:
        print(f"Its page: {outcome['report']['html']}")
    if outcome["gate"] and outcome["outcome"] == "published":
        print(measured_line(outcome["gate"]))
    if outcome["truncated"]:
        print(
            f"{outcome['truncated']} texts are longer than the encoder reads; what lies beyond is "
            f"not in their vectors."
        )
    if outcome["golden"]["queries"] or outcome["golden"]["unknown"]:
        _print_golden(outcome["golden"])
    if pruned := outcome["pruned"]:
        print(f"Pruned: {len(pruned['removed'])} releases, {pruned['bytes'] / 1e6:.1f} MB.")
    print(
        "seconds: "
        + ", ".join(f"{name} {seconds:.1f}" for name, seconds in outcome["seconds"].items())
    )


def _ended(outcome: dict[str, Any]) -> str:
    plan, texts = outcome["plan"], outcome["plan"]["texts"]
    if outcome["outcome"] == "planned":
        counts = [
            f"{one['to_encode']} of {one['documents']} texts for {index}"
            for index, one in texts.items()
        ]
        return "A build would encode " + (
            ", ".join(counts) if counts else "what the LLM's replies change."
        )
    if outcome["outcome"] == "waiting":
        batches = ", ".join(outcome["enrichment"]["waiting"])
        return (
            f"Waiting for {batches}. Nothing was published; run again to collect them (usually "
            f"within 24 hours)."
        )
    if outcome["outcome"] == "unchanged":
        return f"Nothing changed: release {outcome['release']} stays live."
    if outcome["outcome"] == "withdrawn":
        return (
            f"Nothing was published: these tools make release {outcome['release']}, from which "
            f"'{plan['channel']}' was rolled "
            f"back. Release {plan['live']} stays. `pegboard promote {outcome['release']}` takes "
            f"the other one again."
        )
    if outcome["outcome"] == "held":
        return "\n".join(held_lines(outcome["gate"], plan["channel"]))
    return (
        f"Release {outcome['release']} is live on {outcome['board']} ({outcome['encoded']} "
        f"texts encoded)."
    )


def _print_enrichment(enrichment: dict[str, Any]) -> None:
    """The estimate by product; after a run, the actual figures beside it."""
    expected, actual = enrichment["estimate"], enrichment.get("actual")
    print(f"LLM {expected['model']}:")
    for product, part in expected["products"].items():
        held = f"{part['accepted']} written before"
        rejected = f", {part['rejected']} rejected before" if part["rejected"] else ""
        bought = (
            f", {part['pending']} to ask for"
            if actual is None
            else f", {actual['completed'].get(product, 0)} completed"
        )
        print(f"  {product}: {held}{rejected}{bought}{_now_rejected(actual, product)}")
    tokens = expected["prompt_tokens"] + expected["completion_tokens"]
    about = f"about {expected['calls']} calls, {tokens} tokens, {_usd(expected['cost_usd'])}"
    if actual is None:
        print(f"  estimate: {about}; retries and repairs come on top")
        return
    used = actual["prompt_tokens"] + actual["completion_tokens"]
    print(
        f"  used: {actual['replies']} replies, {used} tokens, {_usd(actual['cost_usd'])}; "
        f"estimated: {about}"
    )
    for model, calls in actual["calls"].items():
        print(
            f"  calls to {model}: " + ", ".join(f"{count} {what}" for what, count in calls.items())
        )


def _now_rejected(actual: dict[str, Any] | None, product: str) -> str:
    if actual is None:
        return ""
    rejected, dropped = actual["rejected"].get(product, {}), actual["dropped"].get(product, {})
    said = [f"{count} {reason}" for reason, count in rejected.items()]
    items = [f"{count} {reason}" for reason, count in dropped.items()]
    return (f"; rejected: {', '.join(said)}" if said else "") + (
        f"; single items left out: {', '.join(items)}" if items else ""
    )


def _print_filter(kept: dict[str, Any]) -> None:
    asked, described = kept["questions"], kept["descriptions"]
    if asked["written"]:
        print(
            f"  filter: {asked['kept']} of {asked['written']} questions find their tool among the "
            f"first {asked['k']}"
        )
    if described["reverted"]:
        print(
            f"  filter: {described['reverted']} of {described['written']} new descriptions are "
            f"reverted"
        )
    _print_some([f"    {report}" for report in kept["reports"]])


def _print_edges(origins: dict[str, int], unresolved: list[str]) -> None:
    if origins:
        said = ", ".join(f"{count} {origin}" for origin, count in origins.items())
        total = sum(origins.values())
        print(f"{total} {'dependency' if total == 1 else 'dependencies'} between tools: {said}")
    _print_some([f"    no dependency: {one}" for one in unresolved])


def _print_golden(golden: dict[str, Any]) -> None:
    calibrated = (
        f"calibrate {', '.join(golden['indexes'])}"
        if golden["indexes"]
        else "are too few to calibrate an index"
    )
    seen = f", {golden['seen']} left out that stand in the index" if golden["seen"] else ""
    print(f"{golden['queries']} golden requests {calibrated}{seen}.")
    _print_some([f"    golden requests name an unknown tool: {one}" for one in golden["unknown"]])


def _print_some(lines: list[str]) -> None:
    for line in lines[:NAMED]:
        print(plain(line))
    if len(lines) > NAMED:
        print(f"    ... and {len(lines) - NAMED} more; --json lists all")


def _usd(cost: float | None) -> str:
    return "cost unknown (give [enrich.price])" if cost is None else f"{cost:.4f} USD"
