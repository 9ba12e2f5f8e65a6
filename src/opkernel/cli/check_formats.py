"""The result of `opkernel check` as text, JSON, Markdown or SARIF."""

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from opkernel.cli.check_report import CheckReport, Finding
from opkernel.cli.check_sarif import as_sarif
from opkernel.cli.output import counted, one_line, styled
from opkernel.escaping import json_text, markdown_cell, markdown_code

_MAX_NODES = 5


def _level(finding: Finding) -> str:
    return "error" if finding.rule.breaks_graphs else "warning"


def _hit_text(model: str, nodes: list[str]) -> str:
    """`model.pb: 7 nodes: a, b, c, d, e, ...`."""
    listed = ", ".join(nodes[:_MAX_NODES])
    more = ", ..." if len(nodes) > _MAX_NODES else ""
    return f"{model}: {counted(len(nodes), 'node')}: {listed}{more}"


def _hit_texts(report: CheckReport, finding: Finding) -> list[str]:
    """Which nodes of the graphs that were looked into are hit, one line a graph."""
    if finding.hits:
        return [_hit_text(model, nodes) for model, nodes in finding.hits.items()]
    if not report.graphs or not finding.rule.breaks_graphs:
        return []
    graphs = report.graphs[0] if len(report.graphs) == 1 else f"the {len(report.graphs)} graphs"
    return [f"No node of {graphs} is hit."]


def _as_text(report: CheckReport) -> str:
    title = f"{report.target} against {report.reference}: {report.verdict}"
    lines: list[str] = [styled(title, bold=True), f"  {report.summary}"]
    for (op, place), findings in groupby(report.findings, lambda f: (f.op, f.place)):
        lines += ["", styled(one_line(place), ": ", styled(one_line(op), bold=True))]
        for finding in findings:
            color = "red" if finding.rule.breaks_graphs else "yellow"
            level = styled(_level(finding), fg=color)
            lines.append(styled("  ", level, f"[{finding.rule.value}] {finding.fact}"))
            lines.append(f"    {finding.impact}")
            lines += [f"    {hit}" for hit in _hit_texts(report, finding)]
    return styled(*lines, "", sep="\n")


def _as_json(report: CheckReport) -> str:
    value = {
        "target": report.target,
        "against": report.reference,
        "breaks_graphs": report.breaks_graphs,
        "ops": report.ops,
        "added": report.added,
        "changed": report.changed,
        "findings": [_finding_as_json(finding) for finding in report.findings],
        "graphs": report.graphs,
    }
    return json_text(value, indent=2) + "\n"


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    return {
        "op": finding.op,
        "rule": finding.rule.value,
        "level": _level(finding),
        "fact": finding.fact,
        "impact": finding.impact,
        "file": finding.path,
        "line": finding.line or None,
        "hits": finding.hits,
    }


def _as_markdown(report: CheckReport) -> str:
    target, reference = markdown_code(report.target), markdown_code(report.reference)
    lines = [
        f"### {target} against {reference}: {report.verdict}",
        "",
        f"{report.summary}.",
    ]
    if report.findings:
        lines += ["", "| | op | change | matters for |", "|---|---|---|---|"]
    for finding in report.findings:
        mark = "❌" if finding.rule.breaks_graphs else "⚠️"
        cells = (
            mark,
            f"{markdown_code(finding.op)}<br>{markdown_cell(finding.place)}",
            f"{markdown_cell(finding.fact)}<br>`{finding.rule.value}`",
            "<br>".join(map(markdown_cell, (finding.impact, *_hit_texts(report, finding)))),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


FORMATS: Mapping[str, Callable[[CheckReport], str]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
    "sarif": as_sarif,
}
"""By the name of the format: the whole output for a report."""
