"""Findings as text, as SARIF 2.1.0 and as JUnit XML."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from pegboard import __version__
from pegboard.formatting import count_text, plain
from tasks.lint.findings import SEVERITIES, Finding, rules

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def text_lines(findings: Sequence[Finding], baselined: int, tools: int) -> list[str]:
    """Return the lines for a person: each finding with its place, then how many there are.

    Args:
        baselined: the number of findings that are in the baseline.
        tools: the number of tools that were read.
    """
    lines: list[str] = []
    for finding in findings:
        name = " ".join(filter(None, (finding.tool, finding.parameter)))
        where = ":".join(filter(None, (finding.file, str(finding.line or ""), f" {name}"))).strip()
        lines.append(plain(f"{where}: {finding.severity} [{finding.rule}] {finding.reason}"))
        if finding.suggestion:
            lines.append(plain(f"    {finding.suggestion}"))
    counts = Counter(finding.severity for finding in findings)
    summary = ", ".join(count_text(counts[level], level) for level in reversed(SEVERITIES))
    more = f"; {baselined} more are in the baseline" if baselined else ""
    return [*lines, f"{count_text(tools, 'tool')}: {summary}{more}"]


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return a SARIF log with one run, as code hosts show beside the lines of a change."""
    used = sorted({finding.rule for finding in findings})
    driver = {
        "name": "pegboard lint",
        "version": __version__,
        "rules": [
            {
                "id": rule,
                "shortDescription": {"text": rules()[rule].summary},
                "fullDescription": {"text": rules()[rule].effect},
                "defaultConfiguration": {"level": rules()[rule].severity},
            }
            for rule in used
        ],
    }
    results = [_result(finding, used.index(finding.rule)) for finding in findings]
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    name = " ".join(filter(None, (finding.tool, finding.parameter)))
    logical = {"fullyQualifiedName": name}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if finding.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": finding.file},
            "region": {"startLine": finding.line or 1},
        }
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": " ".join(filter(None, (f"{finding.reason}.", finding.suggestion)))},
        "locations": [location],
        "partialFingerprints": {"pegboard/v1": finding.key},
    }


def junit(findings: Sequence[Finding], failing: Sequence[Finding], checked: Sequence[str]) -> str:
    """Return JUnit XML: a test case for each rule, which fails with its findings.

    Args:
        failing: the findings that are as severe as the command fails for.
        checked: the ids of the rules that were checked.
    """
    failed = {finding.rule for finding in failing}
    suite = ElementTree.Element(
        "testsuite", name="pegboard lint", tests=str(len(checked)), failures=str(len(failed))
    )
    for rule in checked:
        case = ElementTree.SubElement(suite, "testcase", classname="pegboard.lint", name=rule)
        rule_findings = [finding for finding in findings if finding.rule == rule]
        text = "\n".join(text_lines(rule_findings, 0, 0)[:-1])
        if rule in failed:
            message = f"{count_text(len(rule_findings), 'finding')}: {rules()[rule].summary}"
            ElementTree.SubElement(case, "failure", message=message).text = text
        elif rule_findings:
            ElementTree.SubElement(case, "system-out").text = text
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
