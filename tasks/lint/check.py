"""All rules on the catalogs of some files."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pegboard.encoders import Encoder
from pegboard.errors import ConfigurationError
from pegboard.evaluation.golden import GoldenQuery, ToolNames
from pegboard.records import NOTICES
from tasks.lint.catalog_file import Catalog
from tasks.lint.findings import SEVERITIES, Finding, rules
from tasks.lint.search_rules import board_of, request_findings, twin_findings
from tasks.lint.text_rules import text_findings


def lint(
    catalogs: Sequence[Catalog],
    queries: Sequence[GoldenQuery],
    encoder: Encoder,
    ignored: Collection[str] = (),
) -> list[Finding]:
    """Return what is wrong with the tools, with its place, the most severe first.

    Tools of all catalogs are searched together, as on one board.

    Args:
        queries: requests with the tools that they should find.
        ignored: the ids of rules whose findings are left out.

    Raises:
        ConfigurationError: there is no such rule, or a query names a tool that no catalog has.
    """
    if unknown := sorted(set(ignored) - rules().keys()):
        raise ConfigurationError(
            f"There is no rule {', '.join(unknown)}. The rules: {', '.join(rules())}."
        )
    findings = [
        catalog.placed(finding) for catalog in catalogs for finding in _text_findings(catalog)
    ]
    home = {tool.id: catalog for catalog in catalogs for tool in catalog.tools}
    findings += [
        home[finding.tool].placed(finding)
        for finding in _search_findings(catalogs, queries, encoder, ignored)
    ]
    places = {name: place for place, name in enumerate(rules())}
    return sorted(
        (finding for finding in findings if finding.rule not in ignored),
        key=lambda finding: (
            -SEVERITIES.index(finding.severity),
            places[finding.rule],
            finding.tool,
        ),
    )


def _text_findings(catalog: Catalog) -> Iterator[Finding]:
    for rejected in catalog.rejected:
        yield Finding("rejected", catalog.name, rejected.why, "", _place(catalog, rejected.where))
    for notice in catalog.notices:
        message = f"{NOTICES[notice.kind]}: {notice.why}"
        yield Finding("noticed", catalog.name, message, "", _place(catalog, notice.where))
    yield from text_findings(catalog.name, catalog.tools)


def _place(catalog: Catalog, where: str) -> str:
    return where.removeprefix(Path(catalog.file).name).strip()


def _search_findings(
    catalogs: Sequence[Catalog],
    queries: Sequence[GoldenQuery],
    encoder: Encoder,
    ignored: Collection[str],
) -> Iterator[Finding]:
    tools = [tool for catalog in catalogs for tool in catalog.tools]
    agents = {key: name for catalog in catalogs for key, name in catalog.agents.items()}
    names = ToolNames((tool.id, tool.name, agents[tool.agent]) for tool in tools)
    if unknown := names.resolve([name for query in queries for name in query.names]).unknown:
        raise ConfigurationError(
            f"Golden queries name tools that no catalog has: {', '.join(unknown)}. Correct them, "
            "or give the files of those tools, too."
        )
    board = board_of(tools, encoder)
    yield from request_findings(board, names, queries)
    if "twins" not in ignored:  # every tool is searched for them
        yield from twin_findings(board)
