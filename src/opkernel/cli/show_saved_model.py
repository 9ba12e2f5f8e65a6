"""`opkernel show` of a SavedModel: its MetaGraphs, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.output import (
    abridged,
    bad,
    counted,
    echo,
    good,
    one_line,
    print_facts,
    print_json,
    print_table,
    print_text,
    size_text,
)
from opkernel.cli.program_graph import print_program
from opkernel.cli.saved_model_facts import (
    chosen_signature_facts,
    file_facts,
    meta_graph_facts,
    tags_facts,
)
from opkernel.cli.show_graph import print_file, print_ops, print_refusals, print_runnable, show_ops
from opkernel.cli.signature import choose_signature
from opkernel.errors import InvalidArgumentError
from opkernel.escaping import json_text
from opkernel.messages import short_repr
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
        name = choose_signature(model.meta_graph, model.signature_name)
        assert name is not None
        with progress(f"Reading {model.name}"):
            signature = chosen_signature_facts(model.meta_graph, name)
        print_facts(signature, as_json, _print_chosen_signature)
        return
    every = [*([model.meta_graph] if model.files is None else model.files.meta_graphs)]
    chosen = _chosen(model, every, is_all)
    if list_ops and not chosen:
        chosen = [model.meta_graph]  # which is the error that there are several
    with progress(f"Reading {model.name}"):
        found = [meta_graph_facts(one, model.files) for one in chosen]
    if list_ops:
        show_ops(found[0], as_json)
        return
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


def _chosen(model: Model, every: list[MetaGraphDef], is_all: bool) -> list[MetaGraphDef]:
    """The MetaGraphs to show: that of the tags, the only one, or none where there is a choice."""
    if model.tag_set is not None or model.files is None:
        return [model.meta_graph]
    if is_all:
        return every
    try:
        return [model.files.meta_graph()]
    except InvalidArgumentError:
        return []


def _print_file(facts: dict[str, Any]) -> None:
    print_file(facts)
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


def _writer(facts: Mapping[str, Any]) -> str:
    """The program that wrote a MetaGraph; opkernel puts its name in the place of TensorFlow's git version."""
    tensorflow = f"TensorFlow {facts['tensorflow_version'] or 'unknown'}"
    writer: str = facts["git_version"]
    return (
        f"{writer} in the format of {tensorflow}" if writer.startswith("opkernel ") else tensorflow
    )


def _print_meta_graph(facts: dict[str, Any], *, is_all: bool) -> None:
    tags = ",".join(facts["tags"]) or "none"
    echo()
    written = f"written by {_writer(facts)}, producer {facts['producer']}"
    by = f", {facts['meta_graph_version']}" if facts["meta_graph_version"] else ""
    print_text(one_line(f"MetaGraph {tags}: {written}{by}"), bold=True)
    variables = facts["variables"]
    size = sum(one["bytes"] or 0 for one in variables)
    print_text(
        f"{counted(facts['nodes'], 'node')}, {counted(facts['functions'], 'function')}, "
        f"{counted(len(variables), 'variable')} of {size_text(size)}, "
        f"{counted(len(facts['assets']), 'asset')}"
    )
    if facts["user_defined_metadata"]:
        metadata = facts["user_defined_metadata"]
        print_text(f"Metadata: {json_text(metadata) if is_all else short_repr(metadata)}")
    _print_signatures(facts["signatures"], is_all)
    _print_functions(facts, is_all)
    if is_all:
        _print_variables(variables)
    _print_assets(facts["assets"])
    echo()
    print_program(facts)
    if facts["runs"] is None and len(facts["signatures"]) > 1:
        print_text("--signature_def NAME shows what one of its signatures runs.")
    echo()
    print_ops(facts if is_all or facts["runs"] is None else facts["runs"])
    _print_missing(facts)
    _print_requests(facts["asks_for"])


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


def _print_chosen_signature(facts: dict[str, Any]) -> None:
    _print_signature(facts)
    if facts["runs"] is not None:
        echo()
        print_program(facts)
        echo()
        print_ops(facts["runs"])
        echo()
        print_runnable(facts["runs"])


def _print_signature(facts: dict[str, Any]) -> None:
    rows = []
    for kind in ("input", "output"):
        for port in facts[f"{kind}s"]:
            name, shape = port["name"], PartialTensorShape(port["shape"])
            default = "yes" if name in facts["defaults"] else ""
            rows.append((kind, name, port["dtype"], shape, port["tensor"], default))
    method = f" ({facts['method']})" if facts["method"] else ""
    title = one_line(f"Signature {facts['signature']}{method}")
    print_table(title, ("", "name", "type", "shape", "tensor", "default"), rows)


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
            PartialTensorShape(one["shape"]),
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
    print_refusals(facts)
    if not facts["is_graph"]:
        return
    echo()
    missing = facts["not_runnable"]
    print_runnable(facts)
    if missing:
        rows = [
            (op, abridged(one["nodes"]), _needing(one["needed_by"]))
            for op, one in facts["used"].items()
        ]
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
            good(_NEEDS[one["what"]]) if one["what"] in _NEEDS else bad("nothing"),
            abridged(one["nodes"]),
            ", ".join(map(repr, one["files"])),
            _needing(one["needed_by"]),
        )
        for one in requests
    ]
    columns = ("op", "to", "allowed by", "used in", "files", "needed by")
    print_table("It asks", columns, rows)
    print_text("Its own variables and assets it may always read.")


def _needing(parts: Sequence[str]) -> str:
    return abridged(parts) or "nothing"
