"""`opkernel check`: whether changed ops still take the graphs that were made for them.

The findings are text, JSON, Markdown, or SARIF 2.1.0, which code hosts show beside the code.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

import opkernel
from opkernel.cli.files import InputFile, InputFileType, existing_file
from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.op_sources import OpSource, earlier_ops, ops_of_target
from opkernel.cli.output import WrongUse, counted, echo, one_line, styled
from opkernel.errors import OpError
from opkernel.escaping import json_text, markdown_cell, markdown_code, sarif_message
from opkernel.opdef import (
    CompatibilityRule,
    NodeInGraph,
    OpChange,
    compare_with_history,
    impact_of_change,
    is_hit_by_change,
    nodes_of_graph_def,
)
from opkernel.opdef.core.fingerprint import fingerprint64

_MAX_NODES = 5


@dataclass(frozen=True)
class Finding:
    """One change of an op, and the nodes that it breaks.

    Attributes:
        op: The op.
        rule: The rule that the change breaks.
        fact: The change.
        impact: For which graphs or callers it matters.
        file: The file that declares the op, or else the one that was checked.
        line: The line of the declaration; 0 where it is not known.
        hits: The nodes that are hit, by the graph's file; graphs without such nodes are left out.
    """

    op: str
    rule: CompatibilityRule
    fact: str
    impact: str
    file: Path
    line: int = 0
    hits: dict[str, list[str]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The file, from the working directory."""
        return os.path.relpath(self.file)

    @property
    def place(self) -> str:
        """`my_ops/conv.py:14`."""
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True)
class CheckReport:
    """The result of a check.

    Attributes:
        target, reference: The two sides of the comparison, in the user's words.
        reference_is_missing: Whether the target did not exist yet in the reference.
        ops: How many ops the target has.
        added, changed: The names of the ops that are new or changed.
        findings: The changes that break graphs or callers.
        graphs: The graphs that were looked into.
    """

    target: str
    reference: str
    reference_is_missing: bool
    ops: int
    added: list[str]
    changed: list[str]
    findings: list[Finding]
    graphs: list[str]

    @property
    def breaks_graphs(self) -> bool:
        """Whether a finding is about graphs."""
        return any(finding.rule.breaks_graphs for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The result in a few words."""
        for_graphs = sum(finding.rule.breaks_graphs for finding in self.findings)
        for_callers = len(self.findings) - for_graphs
        parts = [
            f"{counted(number, 'change')} {'breaks' if number == 1 else 'break'} {whom}"
            for number, whom in ((for_graphs, "graphs"), (for_callers, "callers"))
            if number
        ]
        return ", ".join(parts) or "nothing breaks"

    @property
    def summary(self) -> str:
        """How many ops there are, and how many of them differ."""
        parts = [
            counted(self.ops, "op"),
            f"{len(self.added):,} new",
            f"{len(self.changed):,} changed",
        ]
        if self.reference_is_missing:
            parts.append(f"{self.target} is not there in {self.reference}")
        return ", ".join(parts)


def _level(rule: CompatibilityRule) -> str:
    return "error" if rule.breaks_graphs else "warning"


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
            level = styled(_level(finding.rule), fg=color)
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
        "level": _level(finding.rule),
        "fact": finding.fact,
        "impact": finding.impact,
        "file": finding.path,
        "line": finding.line or None,
        "hits": finding.hits,
    }


def _as_markdown(report: CheckReport) -> str:
    target, reference = markdown_code(report.target), markdown_code(report.reference)
    lines = [f"### {target} against {reference}: {report.verdict}", "", f"{report.summary}."]
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


_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"

_Rule = CompatibilityRule
_MEANING = {
    _Rule.OP_REMOVED: "An op was removed.",
    _Rule.ATTR_REMOVED: "An attr was removed.",
    _Rule.ATTR_TYPE_CHANGED: "An attr has another type.",
    _Rule.ATTR_VALUES_STRICTER: "An attr allows fewer values.",
    _Rule.ATTR_MINIMUM_HIGHER: "An attr has a higher minimum.",
    _Rule.ATTR_WITHOUT_DEFAULT: "An attr was added without a default.",
    _Rule.INPUT_SIGNATURE: "The inputs are others.",
    _Rule.INPUT_TO_REF: "An input wants a reference.",
    _Rule.OUTPUT_SIGNATURE: "The outputs are others, or have other names.",
    _Rule.OUTPUT_FROM_REF: "An output is no longer a reference.",
    _Rule.DEFAULT_REMOVED: "An attr has lost its default.",
    _Rule.DEFAULT_CHANGED: "An attr has another default.",
    _Rule.ADDED_DEFAULT_CHANGED: "An attr that was added later has another default.",
    _Rule.DEPRECATED: "An op is deprecated.",
    _Rule.INPUT_RENAMED: "An input has another name.",
}
_RULES = list(_MEANING)


def as_sarif(report: CheckReport) -> str:
    """The report as a SARIF log with one run."""
    driver = {
        "name": "opkernel",
        "semanticVersion": opkernel.__version__,
        "rules": [_described(rule) for rule in _RULES],
    }
    root = _root()
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"uri": f"{root.as_uri().rstrip('/')}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, finding, root) for finding in report.findings],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _root() -> Path:
    """The top of the working tree that the command runs in, or else its folder."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _described(rule: CompatibilityRule) -> dict[str, Any]:
    return {
        "id": rule.value,
        "shortDescription": {"text": _MEANING[rule]},
        "defaultConfiguration": {"level": _level(rule)},
    }


def _result(report: CheckReport, finding: Finding, root: Path) -> dict[str, Any]:
    hits = [f"{model}: {', '.join(nodes)}" for model, nodes in finding.hits.items()]
    text = "\n".join([f"{finding.op}: {finding.fact}.", finding.impact, *hits])
    place: dict[str, Any] = {"artifactLocation": _artifact(finding.file, root)}
    if finding.line:
        place["region"] = {"startLine": finding.line}
    same = fingerprint64(f"{finding.op} {finding.rule.value} {finding.fact}".encode())
    return {
        "ruleId": finding.rule.value,
        "ruleIndex": _RULES.index(finding.rule),
        "level": _level(finding.rule),
        "message": {"text": sarif_message(text)},
        "locations": [
            {"physicalLocation": place, "logicalLocations": [{"name": finding.op, "kind": "type"}]}
        ],
        "partialFingerprints": {"opChange/v1": f"{same:016x}"},
        "properties": {"target": report.target, "against": report.reference},
    }


def _artifact(file: Path, root: Path) -> dict[str, str]:
    if file.is_relative_to(root):
        return {"uri": quote(os.fsencode(file.relative_to(root).as_posix())), "uriBaseId": _ROOT}
    return {"uri": file.as_uri()}


FORMATS: Mapping[str, Callable[[CheckReport], str]] = {
    "text": _as_text,
    "json": _as_json,
    "markdown": _as_markdown,
    "sarif": as_sarif,
}
"""By the name of the format: the whole output for a report."""


@click.command()
@click.argument("names", nargs=-1, metavar="[TARGET]")
@click.option("--against", "reference", required=True, metavar="REF", help="The ops as they were.")
@click.option(
    "--graphs",
    "models",
    multiple=True,
    type=InputFileType(),
    metavar="MODEL...",
    help="Graphs in which to look for nodes that are hit.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="How to report.",
)
@click.option("--strict", is_flag=True, help="Fail also for changes that break only callers.")
@click.pass_context
def check(
    context: click.Context,
    names: tuple[str, ...],
    reference: str,
    models: tuple[InputFile, ...],
    format_name: str,
    strict: bool,
) -> None:
    """Check that changed ops still take the graphs that were made for them.

    TARGET has the ops as they are: a module or a Python file, which is imported, or a file with an
    OpList. Without it, `ops` of [tool.opkernel] in pyproject.toml names it.

    REF has them as they were: a git reference, or a file with an OpList or a history of ops. The
    rules are TensorFlow's. Exit status 1 says that graphs break.
    """
    target_name, *more_models = names or (_configured_target(),)
    if more_models and not models:
        raise click.UsageError(f"there is one TARGET, and '{more_models[0]}' is a second")
    models += tuple(map(existing_file, more_models))
    with progress(f"Checking {target_name}"):
        try:
            target = ops_of_target(target_name)
            before = earlier_ops(reference, target)
        except OpError as error:  # status 1 is for graphs that break
            raise WrongUse(f"{error.code.name}: {error.message}") from error
        report = _report(target, before, models)
    echo(FORMATS[format_name](report), nl=False)
    if report.breaks_graphs or (strict and report.findings):
        context.exit(1)


def _configured_target() -> str:
    import tomllib  # seldom needed

    try:
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
        target = project["tool"]["opkernel"]["ops"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        target = None
    if not isinstance(target, str):
        raise click.UsageError("which ops? Name a module or file, or set tool.opkernel.ops")
    return target


def _report(target: OpSource, before: OpSource, models: Iterable[InputFile]) -> CheckReport:
    if not target.ops and not before.ops:
        raise WrongUse(f"'{target.name}' registers no ops")
    comparison = compare_with_history(before.ops, target.ops.newest())
    graphs = {str(model): list(nodes_of_graph_def(Model(model).graph_def())) for model in models}
    return CheckReport(
        target=target.name,
        reference=before.name,
        reference_is_missing=before.is_missing,
        ops=len(target.ops),
        added=comparison.added,
        changed=comparison.changed,
        findings=[_finding(change, target, before, graphs) for change in comparison.changes],
        graphs=list(graphs),
    )


def _finding(
    change: OpChange, target: OpSource, before: OpSource, graphs: dict[str, list[NodeInGraph]]
) -> Finding:
    hits = {
        model: [str(found) for found in nodes if is_hit_by_change(found, change)]
        for model, nodes in graphs.items()
    }
    hits = {model: nodes for model, nodes in hits.items() if nodes}
    file, line = target.sites.get(change.op, (target.file, 0))
    if change.new is None and before.module is not None:
        declared_in, _ = before.sites.get(change.op, (target.file, 0))
        file = declared_in if declared_in.is_file() else target.file
    impact = impact_of_change(change)
    return Finding(change.op, change.rule, change.fact, impact, file, line, hits)
