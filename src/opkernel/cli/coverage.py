"""`opkernel coverage`: what there is of ops, and what of a model is missing."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import click

from opkernel.cli.completion import complete_ops
from opkernel.cli.coverage_facts import coverage_of, is_own, totals, types_text
from opkernel.cli.exit_status import WrongUse
from opkernel.cli.graph_facts import all_nodes, not_runnable
from opkernel.cli.input_file import InputFile
from opkernel.cli.meta_graph_needs import MetaGraphNeeds
from opkernel.cli.model import Model, load_model
from opkernel.cli.output import (
    abridged,
    bad,
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.registered import matching_ops, no_such_op
from opkernel.cli.signature import graph_outputs
from opkernel.escaping import markdown_cell, markdown_code
from opkernel.graph import Graph
from opkernel.ops.loader import load_all_ops
from opkernel.proto import MetaGraphDef

_COLUMNS = ("op", "kernels", "shape function", "gradient", "vectors right", "notes")
_PAGE = """\
# Coverage

{summary}.

`opkernel coverage --markdown` writes this page. `opkernel coverage MODEL` says what of a model is missing, and
`opkernel coverage --own --library my_ops.py` what there is of your ops.

Kernels are listed by device. `CPU` alone has a kernel for every type that the op allows; `DEFAULT` stands for all
devices. A gradient of `none` is declared: the op's outputs count as constant. Ops whose names begin with an
underscore, which TensorFlow puts into graphs by itself, are left out.

Vectors are calls recorded from TensorFlow 2.21: how many the op answers right, with the same values or the same
status code, when `tools/record_vectors.py` last asked. What differs is not determined, like the sign of an
eigenvector, or rounding: `tests/conformance/test_recorded.py` says which. Ops with state have no vectors of their own.
"""


@click.command()
@click.argument("target", default="", metavar="[MODEL|PATTERN]", shell_complete=complete_ops)
@click.option("--tag_set", metavar="TAG,...", help="Take the MetaGraph with exactly these tags.")
@click.option(
    "--own", is_flag=True, help="Only ops, and ops with kernels, that are not opkernel's."
)
@click.option("--markdown", is_flag=True, help="Print a page of Markdown.")
@json_option
def coverage(target: str, tag_set: str | None, own: bool, markdown: bool, as_json: bool) -> None:
    """Show what there is of each op: types of kernels, shape function, gradient, recorded calls that are right.

    PATTERN is a part of the names of ops, or has shell wildcards. Of a MODEL the command shows which ops
    cannot run, where they are used and which signatures, or outputs, need them.

    `--own --library my_ops.py` shows your ops.
    """
    file = _model_file(target)
    if file is not None:
        if own or markdown:
            raise WrongUse("--own and --markdown go without MODEL")
        _show_model(Model(file, tag_set), as_json)
        return
    if tag_set is not None:
        raise WrongUse("--tag_set goes with a MODEL")
    load_all_ops()
    names = [op.name for op in matching_ops(target or "*")]
    if not names:
        raise no_such_op(target)
    rows = [coverage_of(name) for name in names if not own or is_own(name)]
    if as_json:
        print_json(rows)
    elif markdown:
        _print_page(rows)
    else:
        cells = [_cells(row) for row in rows]
        print_table(_summary(rows), _COLUMNS, cells)


def _model_file(target: str) -> InputFile | None:
    """The model that the argument names, if it names a file, and no op."""
    return InputFile(target) if target == "-" or os.path.exists(target) else None


def _summary(rows: Iterable[dict[str, Any]]) -> str:
    found = totals(rows)
    return (
        f"{counted(found['ops'], 'op')}, of which {found['run']:,} run, {found['shape functions']:,} have a "
        f"shape function and {found['gradients']:,} a gradient"
    )


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    kernels = "; ".join(types_text(row)) or bad("none")
    shapes = "yes" if row["shape_function"] else bad("no")
    return row["op"], kernels, shapes, row["gradient"], _right(row["vectors"]), row["note"]


def _right(vectors: dict[str, int] | None) -> str:
    return "" if vectors is None else f"{vectors['right']} of {vectors['total']}"


def _print_page(rows: Sequence[dict[str, Any]]) -> None:
    echo(_PAGE.format(summary=_summary(rows)))
    echo(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}")
    for row in rows:
        op, *cells = _cells(row)
        texts = [markdown_code(str(op)), *(markdown_cell(str(cell)) for cell in cells)]
        echo(f"| {' | '.join(texts)} |")


# A model.


def _show_model(model: Model, as_json: bool) -> None:
    graph = load_model(model)
    facts = _model_facts(model, graph)
    if as_json:
        print_json(facts)
    else:
        _print_model(facts)


def _model_facts(model: Model, graph: Graph) -> dict[str, Any]:
    meta_graph = model.meta_graph if model.is_saved_model else _with_outputs(model, graph)
    nodes = [*all_nodes(meta_graph.graph_def)]
    needs, missing = MetaGraphNeeds(meta_graph), not_runnable(graph, nodes)
    ops = sorted({node.op for node in nodes} - {*graph.function_library})
    rows = [coverage_of(op) for op in ops]
    used = {op: needs.uses_in_short(op) for op in ops}
    return {
        "file": str(model),
        "kind": str(model.kind),
        "ops": [{**row, "missing": missing.get(row["op"], ""), **used[row["op"]]} for row in rows],
    }


def _with_outputs(model: Model, graph: Graph) -> MetaGraphDef:
    """The graph as a MetaGraph with a signature for each of its ends, by whose names needs go."""
    meta_graph = MetaGraphDef(graph_def=model.graph_def())
    for name in _ends(graph):
        meta_graph.signature_def[name].outputs["output"].name = name
    return meta_graph


def _ends(graph: Graph) -> list[str]:
    """The outputs of a graph, and the operations without outputs for which none waits."""
    operations = graph.get_operations()
    waited_for = {one.name for op in operations for one in op.control_inputs}
    return [
        *(tensor.name for tensor in graph_outputs(graph)),
        *(op.name for op in operations if not op.outputs and op.name not in waited_for),
    ]


def _print_model(facts: dict[str, Any]) -> None:
    ops = facts["ops"]
    missing = [op for op in ops if op["missing"]]
    print_text(f"{one_line(facts['file'])}: {facts['kind']}, {counted(len(ops), 'op')}")
    if missing:
        rows = [
            (
                op["op"],
                bad("; ".join(filter(None, (op["missing"], op["note"])))),
                op["count"],
                abridged(op["nodes"]),
                abridged(op["needed_by"]) or "nothing",
            )
            for op in missing
        ]
        columns = ("op", "missing", "nodes", "used in", "needed by")
        print_table(f"{counted(len(missing), 'op')} cannot run", columns, rows, ("nodes",))
    else:
        echo("Every op can run.")
    _print_list("Without shape function", [op["op"] for op in ops if not op["shape_function"]])
    _print_list("Without gradient", [op["op"] for op in ops if op["gradient"] != "yes"])


def _print_list(title: str, ops: Sequence[str]) -> None:
    if ops:
        print_text(f"{title}: {', '.join(map(one_line, ops))}")
