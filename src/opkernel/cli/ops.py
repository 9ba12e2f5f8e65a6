"""`opkernel ops`: which ops there are, and what they take and give."""

import fnmatch
from collections.abc import Iterable
from typing import Any

import click

from opkernel.cli.output import counted, json_option, print_json, print_table
from opkernel.cli.registered import find_op, listed_values, no_such_op, value_text
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import global_op_registry
from opkernel.ops.loader import load_all_ops
from opkernel.proto import OpDef
from opkernel.types import DataType

__all__ = ["ops"]


@click.command()
@click.argument("pattern", default="*")
@json_option
def ops(pattern: str, as_json: bool) -> None:
    """List the registered ops.

    PATTERN is the name of an op, to see it in full, or a part of names, or has shell wildcards.
    """
    op = find_op(pattern)
    rows = [_row(op) for op in ([op] if op is not None else _matching(pattern))]
    if not rows:
        raise no_such_op(pattern)
    if as_json:
        print_json(rows)
    elif op is not None:
        _print_one(rows[0])
    else:
        print_table(
            counted(len(rows), "op"),
            ("op", "inputs", "outputs", "kernels"),
            [
                (r["op"], _args(r["inputs"]), _args(r["outputs"]), _words(r["kernels"]))
                for r in rows
            ],
        )


def _matching(pattern: str) -> list[OpDef]:
    load_all_ops()
    found = [op for op in global_op_registry().get_registered_ops() if _matches(op.name, pattern)]
    return sorted(found, key=lambda op: op.name)


def _matches(name: str, pattern: str) -> bool:
    if any(character in pattern for character in "*?["):
        return fnmatch.fnmatchcase(name, pattern)
    return pattern.lower() in name.lower()


def _row(op: OpDef) -> dict[str, Any]:
    kernels = get_registered_kernels_for_op(op.name).kernel
    return {
        "op": op.name,
        "summary": op.summary,
        "inputs": [_arg(arg) for arg in op.input_arg],
        "outputs": [_arg(arg) for arg in op.output_arg],
        "attrs": [_attr(attr) for attr in op.attr],
        "is_stateful": op.is_stateful,
        "kernels": sorted({kernel.device_type for kernel in kernels}),
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
    click.echo(f"Kernels: {_words(row['kernels']) or 'none'}")
