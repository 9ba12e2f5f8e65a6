"""`opkernel kernels`: for which devices and types an op can run, and for which it cannot."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import click

from opkernel.cli.completion import complete_ops
from opkernel.cli.output import (
    bad,
    counted,
    echo,
    good,
    json_option,
    one_line,
    print_facts,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.registered import (
    allowed_types,
    find_op,
    listed_values,
    no_such_op,
    served_by,
    type_attrs,
)
from opkernel.kernel import get_all_registered_kernels, get_registered_kernels_for_op
from opkernel.ops.loader import load_all_ops
from opkernel.proto import KernelDef


@click.command()
@click.argument("op", default="", shell_complete=complete_ops)
@click.option("--device", default="", metavar="TYPE", help="Show one device type, such as CPU.")
@click.option("--gaps", is_flag=True, help="Show the types that ops allow and no kernel takes.")
@json_option
def kernels(op: str, device: str, gaps: bool, as_json: bool) -> None:
    """List the kernels of OP, or of all ops.

    For one op a table shows which of its types have a kernel on which device: `yes`, `default` by the kernel that serves all devices, `label` by a kernel that a node
    must ask for, and `-` for a gap.
    """
    found = _kernels_of(op)
    if gaps:
        print_facts(_gaps(found, device), as_json, _print_gaps)
        return
    rows: list[dict[str, Any]] = [
        {
            "op": kernel.op,
            "device": kernel.device_type,
            "types": {c.name: listed_values(c.allowed_values.list) for c in kernel.constraint},
            "host_memory": list(kernel.host_memory_arg),
            "label": kernel.label,
            "priority": kernel.priority,
        }
        for kernel in found
        if device in ("", kernel.device_type)
    ]
    rows.sort(key=lambda row: (row["op"], row["device"], row["label"], -row["priority"]))
    if as_json:
        print_json(rows)
        return
    if rows:
        columns = ("op", "device", "types", "host memory", "label", "priority")
        print_table(counted(len(rows), "kernel"), columns, [_cells(row) for row in rows])
    else:
        kind = f"{device} kernel" if device else "kernel"
        print_text(f"{one_line(op)} has no {kind} yet." if op else f"No op has a {kind} yet.")
    if op:
        _print_matrices(op, found, device)


def _kernels_of(op: str) -> list[KernelDef]:
    if not op:
        load_all_ops()
        return list(get_all_registered_kernels().kernel)
    found = list(get_registered_kernels_for_op(op).kernel)
    if not found and find_op(op) is None:
        raise no_such_op(op)
    return found


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    types = [f"{attr}: {', '.join(map(str, values))}" for attr, values in row["types"].items()]
    return (
        row["op"],
        row["device"],
        "; ".join(types),
        ", ".join(row["host_memory"]),
        row["label"],
        row["priority"] or "",
    )


# The matrix of types and devices.


def _print_matrices(op: str, found: Sequence[KernelDef], device: str) -> None:
    """Print a table for each type attr of an op: its types down, the devices across."""
    op_def = find_op(op)
    if op_def is None or not found:
        return
    devices = _devices(found, device)
    for attr in type_attrs(op_def):
        rows = [
            (dtype.string, *(served_by(found, name, attr.name, dtype) for name in devices))
            for dtype in allowed_types(attr)
        ]
        echo()
        is_constrained = any(c.name == attr.name for kernel in found for c in kernel.constraint)
        if any("-" in row for row in rows) or is_constrained:
            gaps = sum("-" in row for row in rows)
            title = f"{attr.name}: {counted(len(rows), 'type')}, {counted(gaps, 'gap')}"
            print_table(title, ("type", *devices), [[*map(_colored, row)] for row in rows])
        else:
            print_text(f"{attr.name}: each of {counted(len(rows), 'type')} on {', '.join(devices)}")


def _colored(cell: str) -> object:
    """How a type is served, in its colour; other cells as they are."""
    return {"-": bad, "yes": good, "default": good}.get(cell, str)(cell)


def _devices(found: Iterable[KernelDef], device: str) -> list[str]:
    """The devices to show: the one asked for, or all devices that the kernels are for."""
    if device:
        return [device]
    return sorted({kernel.device_type for kernel in found})


# Gaps.


def _gaps(found: Iterable[KernelDef], device: str) -> list[dict[str, Any]]:
    """The types without a kernel, for each op, device and type attr that has any."""
    by_op = groupby(sorted(found, key=attrgetter("op")), key=attrgetter("op"))
    return [row for op, kernels in by_op for row in _gaps_of(op, [*kernels], device)]


def _gaps_of(op: str, found: Sequence[KernelDef], device: str) -> Iterator[dict[str, Any]]:
    op_def = find_op(op)
    for name in _devices(found, device):
        for attr in () if op_def is None else type_attrs(op_def):
            types = allowed_types(attr)
            missing = [t.string for t in types if served_by(found, name, attr.name, t) == "-"]
            if missing:
                yield {"op": op, "device": name, "attr": attr.name, "missing": missing}


def _print_gaps(rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        columns = ("op", "device", "attr", "types without a kernel")
        cells = [(r["op"], r["device"], r["attr"], ", ".join(r["missing"])) for r in rows]
        print_table(counted(len(rows), "gap"), columns, cells)
    else:
        echo("No gaps.")
