"""What a model could touch if it were run: `opkernel show MODEL --scan`. Nothing of the model is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from opkernel.cli.meta_graph_needs import MetaGraphNeeds, model_requests
from opkernel.cli.model import Model
from opkernel.cli.output import abridged, bad, counted, print_table, print_text
from opkernel.cli.registered import find_op
from opkernel.opdef import global_op_registry
from opkernel.proto import MetaGraphDef, NodeDef

SEVERITIES = ("none", "low", "medium", "high", "critical")
EXIT_STATUSES = {"none": 0, "low": 0, "medium": 3, "high": 4, "critical": 5}
"""The exit status by the worst finding; 1 and 2 are errors of the command."""

_CALLBACK = re.compile(rb"xla_[a-z_]*python[a-z_]*callback")
"""What JAX calls a custom call that leads to a Python function."""
_OWN_CATALOGUE = "opkernel."
_SEVERITY_OF = {
    "read files": "medium",
    "write files": "high",
    "call the host program": "high",
    "use the network": "critical",
    "run Python": "critical",
    "run an unknown op": "critical",
    "run an op of a library": "low",
}
_ANSWERS = {
    "read files": "refused without --allow-read",
    "write files": "refused without --allow-write",
    "run an unknown op": "refused: the op is not registered",
    "run an op of a library": "allowed: the library is installed",
}
_REFUSED = "refused always"


def scan(model: Model) -> dict[str, Any]:
    """What a model could touch.

    Returns:
        `file` and `kind`; the worst `severity`, one of `SEVERITIES`; and `findings`, the worst first: for each op
        its `severity`, `what` it asks for, how opkernel `answer`s, its `nodes` as FUNCTION/NODE in functions, the
        names of `files` that stand in the model, and `needed_by`, the parts of the model that need the nodes.

    Raises:
        OpError: the file cannot be read.
    """
    found = [one for meta_graph in _meta_graphs(model) for one in _findings(meta_graph)]
    found.sort(key=lambda one: (-SEVERITIES.index(one["severity"]), one["op"]))
    worst = found[0]["severity"] if found else "none"
    return {"file": str(model), "kind": str(model.kind), "severity": worst, "findings": found}


def print_scan(facts: dict[str, Any]) -> None:
    """Print it for people."""
    findings = facts["findings"]
    if not findings:
        print_text("It asks for no files but its own, no network, no Python and no custom op.")
        return
    rows = [
        (
            bad(one["severity"]) if one["severity"] in ("high", "critical") else one["severity"],
            one["op"],
            one["what"],
            one["answer"],
            abridged(one["nodes"]),
            ", ".join(map(repr, one["files"])),
            abridged(one["needed_by"]),
        )
        for one in findings
    ]
    columns = ("severity", "op", "asks to", "opkernel", "used in", "files", "needed by")
    print_table(f"{counted(len(rows), 'finding')}, the worst first", columns, rows)


def _meta_graphs(model: Model) -> list[MetaGraphDef]:
    """The MetaGraphs that the command names, by default all; a graph stands in one of its own."""
    if not model.is_saved_model:
        return [MetaGraphDef(graph_def=model.graph_def())]
    if model.files is None or model.tag_set is not None:
        return [model.meta_graph]
    return [*model.files.meta_graphs]


def _findings(meta_graph: MetaGraphDef) -> Iterator[dict[str, Any]]:
    needs = MetaGraphNeeds(meta_graph)
    for request in model_requests(needs):
        yield _finding(request["what"], request)
    for op in sorted(needs.ops()):
        owner = global_op_registry().owner(op) or _OWN_CATALOGUE
        is_unknown = find_op(op) is None
        if is_unknown or not owner.startswith(_OWN_CATALOGUE):
            what = "run an unknown op" if is_unknown else "run an op of a library"
            used = needs.uses_in_short(op)
            yield _finding(what, {"op": op, "files": [], **used})
    callers = [use for use in needs.uses(needs.ops()) if _calls_python(use.node)]
    for op in dict.fromkeys(use.node.op for use in callers):
        nodes = [use.place for use in callers if use.node.op == op]
        needed_by = dict.fromkeys(part for use in callers for part in use.needed_by)
        facts = {"op": op, "nodes": nodes, "files": [], "needed_by": [*needed_by]}
        yield _finding("call the host program", facts)


def _calls_python(node: NodeDef) -> bool:
    """Whether a module of XLA in a node has a custom call that leads to a Python function."""
    return "module" in node.attr and _CALLBACK.search(node.attr["module"].s) is not None


def _finding(what: str, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "severity": _SEVERITY_OF[what],
        "what": what,
        "answer": _ANSWERS.get(what, _REFUSED),
        **{key: facts[key] for key in ("op", "nodes", "files", "needed_by")},
    }
