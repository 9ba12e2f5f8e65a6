"""The result of `opkernel check` in SARIF 2.1.0, which code hosts show beside the code."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import opkernel
from opkernel.cli.check_report import CheckReport, Finding
from opkernel.escaping import json_text, sarif_message
from opkernel.opdef import CompatibilityRule
from opkernel.opdef.core.fingerprint import fingerprint64

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


def _level(rule: CompatibilityRule) -> str:
    return "error" if rule.breaks_graphs else "warning"


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
