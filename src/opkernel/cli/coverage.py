"""`opkernel coverage`: what there is of ops, and what of a model is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from opkernel.cli.completion import complete_ops
from opkernel.cli.files import input_file
from opkernel.cli.meta_graph_needs import MetaGraphNeeds
from opkernel.cli.model import Model, load_model
from opkernel.cli.nodes import all_nodes
from opkernel.cli.output import (
    WrongUse,
    abridged,
    bad,
    counted,
    echo,
    json_option,
    one_line,
    print_facts,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.program_graph import print_program, program_facts
from opkernel.cli.registered import (
    allowed_types,
    find_op,
    matching_ops,
    no_such_op,
    recorded_vectors,
    served_by,
    type_attrs,
)
from opkernel.cli.show_graph import print_missing_extras, print_runnable, running_facts
from opkernel.cli.signature import graph_outputs
from opkernel.escaping import markdown_cell, markdown_code
from opkernel.gradients.registry import has_gradient_entry, look_up_gradient
from opkernel.graph import Graph
from opkernel.kernel import get_registered_kernels_for_op, global_kernel_registry
from opkernel.opdef import global_op_registry
from opkernel.ops.loader import all_op_names, load_all_ops
from opkernel.proto import KernelDef, MetaGraphDef, OpDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS

_SERVED = ("yes", "default")
_FEW = 6
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
@click.option("--signature_def", metavar="NAME", help="Say what this signature runs.")
@click.option(
    "--own", is_flag=True, help="Only ops, and ops with kernels, that are not opkernel's."
)
@click.option("--markdown", is_flag=True, help="Print a page of Markdown.")
@json_option
def coverage(
    target: str,
    tag_set: str | None,
    signature_def: str | None,
    own: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """Show what there is of each op: types of kernels, shape function, gradient, recorded calls that are right.

    PATTERN is a part of the names of ops, or has shell wildcards. Of a MODEL the command shows which ops
    cannot run, where they are used and which signatures, or outputs, need them. Of a SavedModel it says what the
    default signature runs; --signature_def names another.

    `--own --library my_ops.py` shows your ops.
    """
    file = input_file(target, dir_okay=True)
    if file is not None:
        if own or markdown:
            raise WrongUse("--own and --markdown go without MODEL")
        model = Model(file, tag_set, signature_def)
        print_facts(_model_facts(model, load_model(model)), as_json, _print_model)
        return
    for option, value in (("tag_set", tag_set), ("signature_def", signature_def)):
        if value is not None:
            raise WrongUse(f"--{option} goes with a MODEL")
    load_all_ops()
    names = [op.name for op in matching_ops(target or "*")]
    if not names:
        raise no_such_op(target)
    rows = [_coverage_of(name) for name in names if not own or _is_own(name)]
    if as_json:
        print_json(rows)
    elif markdown:
        _print_page(rows)
    else:
        cells = [_cells(row) for row in rows]
        print_table(_summary(rows), _COLUMNS, cells)


# Ops.


def _is_own(op: str) -> bool:
    """Whether an op, or a kernel of it, is not opkernel's."""
    owners = [one.owner for one in global_kernel_registry().registrations_for(op)]
    return op not in all_op_names() or any(not one.startswith("opkernel.") for one in owners)


def _coverage_of(op: str) -> dict[str, Any]:
    """The facts of an op.

    `run_by` is `kernel`, `runtime` for ops that executors run themselves, or `nothing`. `types` has, for
    each device and each attr that is a type, the types that have a kernel; `gaps` those that the op allows
    besides. `gradient` is `yes`, `none` where the op is declared to have none, or empty. `vectors` says how many
    of the calls recorded from TensorFlow are answered right, and how many there are; None without any.
    """
    op_def, kernels = find_op(op), [*get_registered_kernels_for_op(op).kernel]
    devices = sorted({kernel.device_type for kernel in kernels})
    by_device = {} if op_def is None else {d: _served(op_def, kernels, d) for d in devices}
    has_shape_function = (
        op_def is not None and global_op_registry().look_up(op).shape_inference_fn is not None
    )
    gradient = ""
    if has_gradient_entry(op):
        gradient = "none" if look_up_gradient(op) is None else "yes"
    counts = recorded_vectors().get(op)
    return {
        "op": op,
        "run_by": "runtime" if op in RUN_BY_EXECUTORS else "kernel" if kernels else "nothing",
        "devices": devices,
        "types": {device: served for device, (served, _) in by_device.items()},
        "gaps": {device: gaps for device, (_, gaps) in by_device.items()},
        "shape_function": has_shape_function,
        "gradient": gradient,
        "vectors": counts and dict(zip(("right", "total"), counts, strict=True)),
        "note": "" if _is_own(op) else global_op_registry().traits(op).why_no_kernel,
    }


def _served(
    op_def: OpDef, kernels: Sequence[KernelDef], device: str
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The types of each attr that have a kernel on a device, and those that have none."""
    served: dict[str, list[str]] = {}
    gaps: dict[str, list[str]] = {}
    for attr in type_attrs(op_def):
        for dtype in allowed_types(attr):
            is_served = served_by(kernels, device, attr.name, dtype) in _SERVED
            (served if is_served else gaps).setdefault(attr.name, []).append(dtype.string)
    return served, gaps


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    run = sum(row["run_by"] != "nothing" for row in rows)
    shape_functions = sum(row["shape_function"] for row in rows)
    gradients = sum(row["gradient"] == "yes" for row in rows)
    return (
        f"{counted(len(rows), 'op')}, of which {run:,} run, {shape_functions:,} have a "
        f"shape function and {gradients:,} a gradient"
    )


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    devices = [f"{device}{_limits(row, device)}" for device in row["devices"]]
    kernels = "the runtime" if row["run_by"] == "runtime" else "; ".join(devices) or bad("none")
    shapes = "yes" if row["shape_function"] else bad("no")
    vectors = "{right} of {total}".format_map(row["vectors"]) if row["vectors"] else ""
    return row["op"], kernels, shapes, row["gradient"], vectors, row["note"]


def _limits(row: Mapping[str, Any], device: str) -> str:
    """The types of each attr that have a kernel on a device, where some have none."""
    gaps, types = row["gaps"].get(device, {}), row["types"].get(device, {})
    limits = [f"{attr}: {_some(types.get(attr, []), gaps[attr])}" for attr in gaps]
    return f" ({'; '.join(limits)})" if limits else ""


def _some(types: Sequence[str], gaps: Sequence[str]) -> str:
    if len(gaps) < min(_FEW, len(types)):
        return f"all but {', '.join(gaps)}"
    return ", ".join(types) or "none"


def _print_page(rows: Sequence[dict[str, Any]]) -> None:
    echo(_PAGE.format(summary=_summary(rows)))
    echo(f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}")
    for row in rows:
        op, *cells = _cells(row)
        texts = [markdown_code(str(op)), *(markdown_cell(str(cell)) for cell in cells)]
        echo(f"| {' | '.join(texts)} |")


# A model.


def _model_facts(model: Model, graph: Graph) -> dict[str, Any]:
    meta_graph = model.meta_graph if model.is_saved_model else _with_outputs(model, graph)
    nodes = [*all_nodes(meta_graph.graph_def)]
    needs, running = MetaGraphNeeds(meta_graph), running_facts(graph, nodes)
    missing = running["not_runnable"]
    ops = sorted({node.op for node in nodes} - {*graph.function_library})
    program: dict[str, Any] = {"runs": None}
    if model.is_saved_model:
        program = program_facts(meta_graph, graph, model.signature_name, needs)
    return {
        "file": str(model),
        "kind": str(model.kind),
        **program,
        "ops": [
            {**_coverage_of(op), "missing": missing.get(op, ""), **needs.uses_in_short(op)}
            for op in ops
        ],
        **{name: one for name, one in running.items() if name == "missing_extras"},
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
    extras = facts.get("missing_extras", ())
    print_text(f"{one_line(facts['file'])}: {facts['kind']}, {counted(len(ops), 'op')}")
    print_program(facts)
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
        print_missing_extras(extras)
    else:
        print_runnable({"not_runnable": {}, "missing_extras": extras})
    run = [op for op in ops if facts["runs"] is None or op["op"] in facts["runs"]["ops"]]
    without = {
        "shape function": [op["op"] for op in run if not op["shape_function"]],
        "gradient": [op["op"] for op in run if op["gradient"] != "yes"],
    }
    for what, names in without.items():
        if names:
            print_text(f"Without {what}: {', '.join(map(one_line, names))}")
