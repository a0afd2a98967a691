"""A build or a plan as lines: the changes, the LLM's part with its cost, and the outcome."""

from typing import Any

from pegboard.formatting import count_text, limited_lines, llm_calls_text, plain
from pegboard.records import NOTICES
from pegboard.store.diff import FieldChange, field_lines
from tasks.gate.messages import held_run_lines, measured_line

MAX_ROWS = 10
MAX_TEXT = 1_000
"""Characters of a line of a changed text."""


def run_lines(outcome: dict[str, Any], *, texts: bool = False) -> list[str]:
    """Return the outcome of a build or a plan (see `flows.reindex.reindex`) as lines.

    Args:
        texts: add the old and new text of changed tools.
    """
    plan, edges = outcome["plan"], outcome["edges"]
    lines = [
        f"{len(plan['new'])} new, {len(plan['changed'])} changed, {len(plan['removed'])} removed, "
        f"{plan['unchanged']} unchanged tools",
        *_change_lines(plan, texts=texts),
    ]
    for name, catalog in outcome["catalogs"].items():
        agents = count_text(catalog["agents"], "agent")
        counts = _listing_counts(catalog)
        lines.append(f"  {name}: {count_text(catalog['tools'], 'tool')} of {agents}{counts}")
        lines += _listed([f"failed: {problem}" for problem in catalog["problems"]])
    lines += _listed([f"rejected {row['where']}: {row['why']}" for row in outcome["rejected"]])
    for kind in NOTICES:
        rows = [row for row in outcome["notices"] if row["kind"] == kind]
        lines += _listed([f"{kind} {row['where']}: {row['why']}" for row in rows])
    if outcome["enrichment"]:
        lines += _enrichment_lines(outcome["enrichment"])
    if edges:
        if origins := edges["origins"]:
            total = count_text(sum(origins.values()), "dependency", "dependencies")
            lines.append(f"{total} between tools: {_counts(origins)}")
        lines += _listed([f"no dependency: {text}" for text in edges["unresolved"]])
    if outcome["held_out"]:
        lines.append(
            f"{outcome['held_out']} examples are golden queries, and held out of the index."
        )
    strategy = outcome["strategy"]
    if strategy["llm_calls"] != "0":
        calls = llm_calls_text(strategy["llm_calls"])
        lines.append(f"The default strategy '{strategy['name']}' asks an LLM: {calls}")
    lines += outcome_line(outcome).splitlines()
    if outcome["report"] and outcome["report"]["html"]:
        lines.append(f"Report: {outcome['report']['html']}")
    if outcome["gate"] and outcome["outcome"] == "published":
        lines.append(measured_line(outcome["gate"]))
    if outcome["truncated"]:
        lines.append(f"{outcome['truncated']} texts were truncated to the encoder's input length.")
    if outcome["gate"]:
        unknown = outcome["gate"]["unknown"]
        lines += _listed([f"golden queries name an unknown tool: {name}" for name in unknown])
    if pruned := outcome["pruned"]:
        lines.append(f"Pruned: {len(pruned['removed'])} releases, {pruned['bytes'] / 1e6:.1f} MB.")
    phases = [f"{name} {seconds:.1f}" for name, seconds in outcome["seconds"].items()]
    lines.append(f"seconds: {', '.join(phases)}")
    return [plain(line) for line in lines]


def _listing_counts(catalog: dict[str, Any]) -> str:
    """What a catalog's listing rejected, by reason, and its notices by kind; "" without any."""
    text = "".join(f", {count} {kind}" for kind, count in catalog["notices"].items())
    if rejected := catalog["rejected"]:
        text = f", {rejected} rejected ({_counts(catalog['rejections'])}){text}"
    return text


def _change_lines(plan: dict[str, Any], *, texts: bool) -> list[str]:
    """The names of the tools that a run adds, changes and removes; none for a first release."""
    if plan["live"] is None:
        return []
    changed: list[str] = []
    for tool in plan["changed"]:
        fields = plan["changes"].get(tool, {})
        changed.append(f"~ {tool}: {', '.join(fields)}" if fields else f"~ {tool}")
        if texts:
            for name, change in fields.items():
                lines = field_lines(name, FieldChange(**change))
                changed += [f"    {line[:MAX_TEXT]}" for line in lines]
    return [
        *_listed([f"+ {tool}" for tool in plan["new"]], "  "),
        *([f"  {line}" for line in changed] if texts else _listed(changed, "  ")),
        *_listed([f"- {tool}" for tool in plan["removed"]], "  "),
    ]


def outcome_line(outcome: dict[str, Any]) -> str:
    """Return how a run ended, in a sentence; of a held release, in some lines."""
    plan, release = outcome["plan"], outcome["release"]
    match outcome["outcome"]:
        case "planned":
            counts = [_to_encode(index, texts) for index, texts in plan["texts"].items()]
            return f"A build would encode {', '.join(counts) or 'what the LLM replies change'}."
        case "unchanged":
            return f"Nothing changed: release {release} stays live."
        case "withdrawn":
            return (
                f"Nothing was published: these tools make release {release}, from which "
                f"'{plan['channel']}' was rolled back. Release {plan['live']} stays. "
                f"`pegboard promote {release}` restores the other."
            )
        case "held":
            return "\n".join(held_run_lines(outcome))
        case _:
            return (
                f"Release {release} is live on {outcome['board']} "
                f"({count_text(outcome['encoded'], 'text')} encoded)."
            )


def _to_encode(index: str, texts: dict[str, Any]) -> str:
    count = f"{texts['to_encode']} of {texts['documents']} texts for {index}"
    return f"{count} (about {texts['tokens']} tokens)" if "tokens" in texts else count


ENRICHMENT_ADDS = (
    "what it brings: on three real catalogs, people's requests found the right tool first for .90 "
    "instead of .73 with written descriptions and questions, and among five for 1.00 instead of "
    ".93 (docs/results/llm.md)"
)
"""What a plan says of the effect, as it was measured."""


def _enrichment_lines(enrichment: dict[str, Any]) -> list[str]:
    """The estimate by product; after a run, the actual figures beside it."""
    estimate, actual = enrichment["estimate"], enrichment.get("actual")
    lines = [f"LLM {estimate['model']}:"]
    for product, part in estimate["products"].items():
        line = f"  {product}: {part['accepted']} written before"
        if part["rejected"]:
            line += f", {part['rejected']} rejected before"
        if actual is None:
            lines.append(f"{line}, {part['pending']} to ask for")
            continue
        line += f", {actual['completed'].get(product, 0)} completed"
        if kept := actual["kept"].get(product):
            line += f", {kept} kept of an earlier prompt or model"
        if outdated := actual["outdated"].get(product):
            line += f", {outdated} kept of an earlier version of the tool"
        if rejected := actual["rejected"].get(product):
            line += f"; rejected: {_counts(rejected)}"
        if dropped := actual["dropped"].get(product):
            line += f"; single items left out: {_counts(dropped)}"
        lines.append(line)
    tokens = estimate["prompt_tokens"] + estimate["completion_tokens"]
    about = f"about {estimate['pending']} calls, {tokens} tokens, {_usd(estimate['cost_usd'])}"
    if actual is None:
        lines.append(f"  estimate: {about}; retries and repairs come on top")
        lines.append(f"  {ENRICHMENT_ADDS}")
        return [*lines, *(f"  {message}" for message in estimate["over_budget"])]
    used = actual["prompt_tokens"] + actual["completion_tokens"]
    lines.append(
        f"  used: {actual['replies']} replies, {used} tokens, {_usd(actual['cost_usd'])}; "
        f"estimated: {about}"
    )
    return [*lines, f"  calls: {_counts(actual['calls'])}"] if actual["calls"] else lines


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def _listed(texts: list[str], indent: str = "    ") -> list[str]:
    lines = [f"{indent}{text}" for text in texts]
    return limited_lines(lines, MAX_ROWS, indent, "; --json lists all")


def _usd(cost: float | None) -> str:
    return "cost unknown (give [enrich.price])" if cost is None else f"{cost:.4f} USD"
