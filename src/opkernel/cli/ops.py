"""`opkernel ops`: the known ops, and their inputs, attrs and outputs."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from opkernel.cli.completion import complete_ops
from opkernel.cli.input_file import InputFile, InputFileType, input_file
from opkernel.cli.model import Model
from opkernel.cli.op_places import places_of
from opkernel.cli.output import (
    bad,
    counted,
    json_option,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.registered import find_op, listed_values, matching_ops, no_such_op, value_text
from opkernel.device.device_factory import offered_device_types
from opkernel.graph import ops_used_by_graph
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import global_op_registry
from opkernel.proto import OpDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType


@click.command()
@click.argument("patterns", nargs=-1, metavar="[PATTERN]", shell_complete=complete_ops)
@click.option(
    "--needed-by",
    "models",
    multiple=True,
    type=InputFileType(),
    metavar="MODEL...",
    help="List the ops that these graphs use, and in how many nodes.",
)
@json_option
def ops(patterns: tuple[str, ...], models: tuple[InputFile, ...], as_json: bool) -> None:
    """List all known ops.

    PATTERN is the name of an op, to see all that is known of it and where it stands, or a part of names, or has shell wildcards. Ops
    whose names begin with an underscore are listed where it does, too.
    """
    if models:
        _print_needed([*models, *map(_more_models, patterns)], as_json)
        return
    if len(patterns) > 1:
        raise click.UsageError(f"there is one PATTERN at most; got {' '.join(patterns)}")
    pattern = patterns[0] if patterns else "*"
    op = find_op(pattern)
    rows = [_row(op) for op in ([op] if op is not None else matching_ops(pattern))]
    if not rows:
        raise no_such_op(pattern)
    if as_json:
        print_json([row | _places(row["op"]) for row in rows] if op is not None else rows)
    elif op is not None:
        _print_one(rows[0])
        _print_places(op.name)
    else:
        print_table(
            counted(len(rows), "op"),
            ("op", "kernels", "signature"),
            [(row["op"], _words(row["kernels"]), _signature(row)) for row in rows],
        )


def _more_models(text: str) -> InputFile:
    """The file of an argument behind the first model: a further model, not a pattern."""
    found = input_file(text)
    if found is None:
        raise click.UsageError(f"there is no file '{text}'")
    return found


def _print_needed(models: Iterable[InputFile], as_json: bool) -> None:
    used: Counter[str] = Counter()
    for model in models:
        used += ops_used_by_graph(Model(model).graph_def())
    rows: list[dict[str, Any]] = [
        {"op": name, "nodes": count, "known": find_op(name) is not None, "kernels": _devices(name)}
        for name, count in sorted(used.items())
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        counted(len(rows), "op"),
        ("op", "nodes", "kernels"),
        [
            (r["op"], r["nodes"], _words(r["kernels"]) if r["known"] else bad("unknown op"))
            for r in rows
        ],
    )


def _devices(op: str) -> list[str]:
    """The devices that an op can run on."""
    if op in RUN_BY_EXECUTORS:
        return sorted(offered_device_types())
    return sorted({kernel.device_type for kernel in get_registered_kernels_for_op(op).kernel})


def _row(op: OpDef) -> dict[str, Any]:
    return {
        "op": op.name,
        "summary": op.summary,
        "inputs": [_arg(arg) for arg in op.input_arg],
        "outputs": [_arg(arg) for arg in op.output_arg],
        "attrs": [_attr(attr) for attr in op.attr],
        "is_stateful": op.is_stateful,
        "traits": global_op_registry().traits(op.name).words().split(),
        "kernels": _devices(op.name),
    }


def _arg(arg: OpDef.ArgDef) -> dict[str, str]:
    """An argument as the spec language writes it: `values: N * T`."""
    kind = arg.type_attr or arg.type_list_attr or DataType(arg.type).string
    kind = f"{arg.number_attr} * {kind}" if arg.number_attr else kind
    return {"name": arg.name, "type": f"Ref({kind})" if arg.is_ref else kind}


def _attr(attr: OpDef.AttrDef) -> dict[str, Any]:
    described: dict[str, Any] = {"name": attr.name, "type": attr.type}
    if attr.HasField("default_value"):
        described["default"] = value_text(attr.default_value)
    if attr.has_minimum:
        described["minimum"] = attr.minimum
    if attr.HasField("allowed_values"):
        described["allowed"] = listed_values(attr.allowed_values.list)
    return described


def _args(args: Iterable[dict[str, str]]) -> str:
    return ", ".join(f"{arg['name']}: {arg['type']}" for arg in args)


def _signature(row: dict[str, Any]) -> str:
    return " -> ".join(filter(None, (_args(row["inputs"]), _args(row["outputs"]) or "nothing")))


def _words(words: Iterable[object]) -> str:
    return ", ".join(map(str, words))


def _cell(value: Any) -> str:
    return _words(value) if isinstance(value, list) else str(value)


def _print_one(row: dict[str, Any]) -> None:
    columns = ("", "name", "type", "default", "minimum", "allowed")
    parts = [
        (kind, *(_cell(part.get(column, "")) for column in columns[1:]))
        for kind in ("input", "output", "attr")
        for part in row[f"{kind}s"]
    ]
    print_table(": ".join(filter(None, (row["op"], row["summary"]))), columns, parts)
    print_text(f"Traits: {_words(row['traits']) or 'none'}")
    print_text(f"Kernels: {_words(row['kernels']) or 'none'}")


def _places(op: str) -> dict[str, Any]:
    return {"places": [one._asdict() for one in places_of(op)]}


def _print_places(op: str) -> None:
    rows, before = [], ""
    for one in places_of(op):
        where = f"{one.file}:{one.line}" if one.line else one.file
        rows.append((one.what if one.what != before else "", where, one.name))
        before = one.what
    print_table("What is known of it", ("kind", "where", "which"), rows)
