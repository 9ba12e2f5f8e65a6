"""`opkernel kernels`: for which devices and types an op can run."""

from typing import Any

import click

from opkernel.cli.output import counted, json_option, print_json, print_table
from opkernel.cli.registered import find_op, listed_values, no_such_op
from opkernel.kernel import get_all_registered_kernels, get_registered_kernels_for_op
from opkernel.ops.loader import load_all_ops
from opkernel.proto import KernelDef
from opkernel.runtime.control_flow import STRUCTURAL_OPS

__all__ = ["kernels"]


@click.command()
@click.argument("op", default="")
@json_option
def kernels(op: str, as_json: bool) -> None:
    """List the kernels of OP, or of all ops."""
    rows = [_row(kernel) for kernel in _kernels_of(op)]
    rows.sort(key=lambda row: (row["op"], row["device"], row["label"], -row["priority"]))
    if as_json:
        print_json(rows)
    elif rows:
        columns = ("op", "device", "types", "host memory", "label", "priority")
        print_table(counted(len(rows), "kernel"), columns, [_cells(row) for row in rows])
    elif op in STRUCTURAL_OPS:
        click.echo(f"{op} has no kernel: it is part of how graphs are run.")
    else:
        click.echo(f"{op} has no kernel yet.")


def _kernels_of(op: str) -> list[KernelDef]:
    if not op:
        load_all_ops()
        return list(get_all_registered_kernels().kernel)
    found = list(get_registered_kernels_for_op(op).kernel)
    if not found and find_op(op) is None:
        raise no_such_op(op)
    return found


def _row(kernel: KernelDef) -> dict[str, Any]:
    return {
        "op": kernel.op,
        "device": kernel.device_type,
        "types": {c.name: listed_values(c.allowed_values.list) for c in kernel.constraint},
        "host_memory": list(kernel.host_memory_arg),
        "label": kernel.label,
        "priority": kernel.priority,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    types = [f"{attr}: {', '.join(map(str, values))}" for attr, values in row["types"].items()]
    return (
        row["op"],
        row["device"],
        "; ".join(types),
        ", ".join(row["host_memory"]),
        row["label"],
        str(row["priority"] or ""),
    )
