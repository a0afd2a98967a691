"""`pegboard lint`: whether the tools of a catalog file will be found, and can be called."""

import argparse
from pathlib import Path

from flows.cli.options import quiet_encoders, write_file
from pegboard.cli.output import (
    Subparsers,
    add_command,
    add_json_option,
    json_text,
    print_json,
)
from pegboard.errors import ConfigurationError

EPILOG = """\
A FILE is an OpenAPI document, the tools/list answer of an MCP server or function schemas; the
format is detected. A pegboard.toml stands for all its catalogs. No LLM and no network is used.
`pegboard lint --rules` lists the rules with the effect of what they find.

Exit code 1 if a finding is as severe as --fail-on and not in the baseline.

examples:
  pegboard lint openapi.yaml
  pegboard lint mcp.json --golden golden.jsonl --sarif lint.sarif
  pegboard lint openapi.yaml --baseline lint.json --write-baseline     accept what is there now
  pegboard lint openapi.yaml --baseline lint.json --fail-on warning"""


def register_lint(subparsers: Subparsers) -> None:
    """Add `pegboard lint`."""
    parser = add_command(
        subparsers,
        "lint",
        _lint,
        EPILOG,
        help="check whether the tools of a file will be found, and can be called",
        description="Check the tools of catalog files: what keeps them from being found, what "
        "contradicts their schemas, what model APIs refuse, and what to write instead.",
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="catalog files, searched together")
    add("--golden", metavar="FILE", help="requests with their tools, which should find them")
    add(
        "--ignore", action="append", default=[], metavar="RULE", help="leave out a rule; repeatable"
    )
    add(
        "--fail-on",
        choices=["note", "warning", "error", "never"],
        default="error",
        help="the least severity that fails (default: error)",
    )
    add("--baseline", metavar="FILE", help="findings that are known, and not reported")
    add("--write-baseline", action="store_true", help="write the findings to --baseline instead")
    add("--sarif", metavar="FILE", help="also write SARIF 2.1.0")
    add("--junit", metavar="FILE", help="also write JUnit XML")
    add("--rules", action="store_true", help="list the rules instead")
    add_json_option(parser, "tools, known, findings")


def _lint(options: argparse.Namespace) -> int:
    from tasks.lint.findings import rules

    if options.rules:
        for rule in rules().values():
            print(f"{rule.id} ({rule.severity}): {rule.summary}\n    {rule.effect}")
        return 0
    if not options.files:
        raise ConfigurationError("No file is given. Expected such as `pegboard lint openapi.yaml`.")
    if options.write_baseline and not options.baseline:
        raise ConfigurationError("--write-baseline needs --baseline FILE, the file to write.")
    from pegboard.encoders import DEFAULT_ENCODER, load_encoder
    from pegboard.evaluation.golden import read_queries
    from tasks.lint.catalog_file import read_catalogs
    from tasks.lint.check import lint
    from tasks.lint.findings import at_least, baseline_text, read_baseline
    from tasks.lint.output import junit, sarif, text_lines

    catalogs = [catalog for file in options.files for catalog in read_catalogs(file)]
    queries = read_queries(options.golden) if options.golden else []
    with quiet_encoders():
        every = lint(catalogs, queries, load_encoder(DEFAULT_ENCODER), options.ignore)
    if options.write_baseline:
        write_file(options.baseline, baseline_text(every))
        print(f"{options.baseline}: {len(every)} findings; lint reports only others from now on")
        return 0
    known = read_baseline(Path(options.baseline)) if options.baseline else frozenset[str]()
    findings = [finding for finding in every if finding.key not in known]
    failing = [] if options.fail_on == "never" else at_least(findings, options.fail_on)
    if options.sarif:
        write_file(options.sarif, json_text(sarif(findings)))
    if options.junit:
        checked = [rule for rule in rules() if rule not in options.ignore]
        write_file(options.junit, junit(findings, failing, checked))
    tools = sum(len(catalog.tools) for catalog in catalogs)
    if options.json:
        values = [finding.to_dict() for finding in findings]
        print_json({"tools": tools, "known": len(every) - len(findings), "findings": values})
    else:
        for line in text_lines(findings, len(every) - len(findings), tools):
            print(line)
    return 1 if failing else 0
