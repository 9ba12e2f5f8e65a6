"""`opkernel show` of a SavedModel: its MetaGraphs, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.cli.graph_report import print_ops, print_runnable, show_ops
from opkernel.cli.model import Model
from opkernel.cli.output import (
    abridged,
    bad,
    counted,
    echo,
    good,
    one_line,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.progress import progress
from opkernel.cli.saved_model_facts import (
    file_facts,
    meta_graph_facts,
    signature_facts,
    tags_facts,
)
from opkernel.cli.shapes import shape_text
from opkernel.cli.signature_ports import choose_signature
from opkernel.errors import InvalidArgumentError
from opkernel.proto import MetaGraphDef
from opkernel.types import PartialTensorShape

_MAX_SIGNATURES = 12
_MAX_FUNCTIONS = 12
_NEEDS = {"read files": "--allow-read", "write files": "--allow-write"}


def show_saved_model(model: Model, *, is_all: bool, list_ops: bool, as_json: bool) -> None:
    """Show a SavedModel: all of it, a MetaGraph, or a signature.

    Raises:
        OpError: there is no such MetaGraph or signature.
    """
    if model.signature_name is not None and not (is_all or list_ops):
        _show_signature(model, as_json)
        return
    chosen = _chosen(model, is_all)
    if list_ops and not chosen:
        chosen = [model.meta_graph]  # which is the error that there are several
    with progress(f"Reading {model.name}"):
        found = [meta_graph_facts(one, model.files) for one in chosen]
    if list_ops:
        show_ops(found[0], as_json)
        return
    every = [model.meta_graph] if model.files is None else model.files.meta_graphs
    facts = file_facts(model)
    shown = {id(one): more for one, more in zip(chosen, found, strict=True)}
    facts["meta_graphs"] = [shown.get(id(one)) or tags_facts(one) for one in every]
    if as_json:
        print_json(facts)
        return
    _print_file(facts)
    for one in found:
        _print_meta_graph(one, is_all=is_all)
    if not chosen:
        print_text("\n--tag_set shows one of them, --all shows all.")


def _chosen(model: Model, is_all: bool) -> Sequence[MetaGraphDef]:
    """The MetaGraphs to show: that of the tags, the only one, or none where there is a choice."""
    if model.tag_set is not None or model.files is None:
        return [model.meta_graph]
    if is_all:
        return model.files.meta_graphs
    try:
        return [model.files.meta_graph()]
    except InvalidArgumentError:
        return []


def _show_signature(model: Model, as_json: bool) -> None:
    name = choose_signature(model.meta_graph, model.signature_name)
    assert name is not None
    facts = signature_facts(model.meta_graph, name)
    if as_json:
        print_json(facts)
    else:
        _print_signature(facts)


def _print_file(facts: dict[str, Any]) -> None:
    print_text(f"{one_line(facts['file'])}: {facts['kind']}, {size_text(facts['file_bytes'])}")
    fingerprint = facts["fingerprint"]
    if fingerprint is not None and "saved_model_checksum" in fingerprint:
        print_text(f"fingerprint {one_line(fingerprint['saved_model_checksum'])}")
    if len(facts["meta_graphs"]) > 1:
        rows = [
            (",".join(one["tags"]), one["nodes"], one["functions"], ", ".join(one["signature_names"]))
            for one in facts["meta_graphs"]
        ]  # fmt: skip
        echo()
        columns = ("tag set", "nodes", "functions", "signatures")
        print_table("MetaGraphs", columns, rows, ("nodes", "functions"))


def _print_meta_graph(facts: dict[str, Any], *, is_all: bool) -> None:
    tags = ",".join(facts["tags"]) or "none"
    echo()
    version = facts["tensorflow_version"] or "unknown"
    print_text(
        one_line(
            f"MetaGraph {tags}: written by TensorFlow {version}, producer {facts['producer']}"
        ),
        bold=True,
    )
    print_text(_contents(facts))
    _print_signatures(facts["signatures"], is_all)
    _print_functions(facts, is_all)
    if is_all:
        _print_variables(facts["variables"])
    _print_assets(facts["assets"])
    echo()
    print_ops(facts)
    _print_missing(facts)
    _print_requests(facts["asks_for"])


def _contents(facts: dict[str, Any]) -> str:
    variables = facts["variables"]
    size = sum(one["bytes"] or 0 for one in variables)
    return (
        f"{counted(facts['nodes'], 'node')}, {counted(facts['functions'], 'function')}, "
        f"{counted(len(variables), 'variable')} of {size_text(size)}, "
        f"{counted(len(facts['assets']), 'asset')}"
    )


def _print_signatures(signatures: Sequence[dict[str, Any]], is_all: bool) -> None:
    if not signatures:
        print_text("\nNo signatures: what it computes is called from Python, or by tensors.")
        return
    if len(signatures) > _MAX_SIGNATURES and not is_all:
        echo()
        rows = [(one["signature"], len(one["inputs"]), len(one["outputs"])) for one in signatures]
        columns = ("signature", "inputs", "outputs")
        print_table(counted(len(rows), "signature"), columns, rows, ("inputs", "outputs"))
        print_text("--signature_def NAME shows one, --all shows all.")
        return
    for one in signatures:
        echo()
        _print_signature(one)


def _print_signature(facts: dict[str, Any]) -> None:
    rows = [
        (kind, port["name"], port["dtype"], _shape(port["shape"]), port["tensor"], _default(facts, port))
        for kind in ("input", "output")
        for port in facts[f"{kind}s"]
    ]  # fmt: skip
    title = f"Signature {facts['signature']}"
    if facts["method"]:
        title += f" ({facts['method']})"
    print_table(one_line(title), ("", "name", "type", "shape", "tensor", "default"), rows)


def _default(facts: dict[str, Any], port: dict[str, Any]) -> str:
    return "yes" if port["name"] in facts["defaults"] else ""


def _shape(dims: list[int | None] | None) -> str:
    return shape_text(PartialTensorShape(dims))


def _print_functions(facts: dict[str, Any], is_all: bool) -> None:
    """Print the functions that Python calls, and with `--all` those of the library."""
    rows = [(path, text) for path, texts in facts["python_functions"].items() for text in texts]
    if rows:
        echo()
        some = rows if is_all else rows[:_MAX_FUNCTIONS]
        print_table("Functions", ("function", "takes"), some)
        if len(some) < len(rows):
            print_text(f"{len(rows) - len(some):,} more are shown with --all.")
    if is_all and facts["library"]:
        echo()
        library = [(one["function"], one["takes"], one["gives"]) for one in facts["library"]]
        print_table("Functions of the graph", ("function", "takes", "gives"), library)


def _print_variables(variables: Sequence[dict[str, Any]]) -> None:
    if not variables:
        return
    rows = [
        (
            one["name"],
            one["dtype"],
            _shape(one["shape"]),
            "" if one["bytes"] is None else size_text(one["bytes"]),
            "yes" if one["trainable"] else "",
        )
        for one in variables
    ]
    echo()
    columns = ("variable", "type", "shape", "size", "trainable")
    print_table("Variables", columns, rows, ("size",))


def _print_assets(assets: Sequence[dict[str, Any]]) -> None:
    if not assets:
        return
    rows = [
        (
            one["file"],
            one["tensor"],
            bad(one.get("problem", "missing")) if one["bytes"] is None else size_text(one["bytes"]),
        )
        for one in assets
    ]
    echo()
    print_table("Assets", ("file", "tensor", "size"), rows)


def _print_missing(facts: dict[str, Any]) -> None:
    """Print which ops cannot run, and who misses them."""
    for refused in facts.get("refused", ()):
        echo()
        print_text(f"A session of TensorFlow refuses it: {refused}")
    if not facts["is_graph"]:
        return
    echo()
    missing = facts["not_runnable"]
    print_runnable(missing)
    if missing:
        rows = [(op, _listed(one["nodes"]), _needing(one["needed_by"])) for op, one in facts["used"].items()]  # fmt: skip
        print_table("What they are needed for", ("op", "used in", "needed by"), rows)
        names = {one["signature"] for one in facts["signatures"]}
        lacking = {part for one in facts["used"].values() for part in one["needed_by"]}
        runnable = sorted(names - lacking)
        if runnable and not {"initialization", "restore"} & lacking:
            print_text(one_line(f"These signatures run: {', '.join(runnable)}"))


def _print_requests(requests: Sequence[dict[str, Any]]) -> None:
    """Print what the model asks for beside its own variables."""
    echo()
    if not requests:
        print_text("It asks for no files but its own, no network and no Python.")
        return
    rows = [
        (
            one["op"],
            one["what"],
            _allowed(one["what"]),
            _listed(one["nodes"]),
            ", ".join(map(repr, one["files"])),
            _needing(one["needed_by"]),
        )
        for one in requests
    ]
    columns = ("op", "to", "allowed by", "used in", "files", "needed by")
    print_table("It asks", columns, rows)
    print_text("Its own variables and assets it may always read.")


def _allowed(what: str) -> Any:
    return good(_NEEDS[what]) if what in _NEEDS else bad("nothing")


def _needing(parts: Sequence[str]) -> str:
    return abridged(parts) or "nothing"


def _listed(names: Iterable[str]) -> str:
    return abridged(names)
