"""What opkernel has of an op: the types of its kernels on each device, a shape function, a gradient."""

from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.cli.recorded_vectors import recorded_vectors
from opkernel.cli.registered import find_op
from opkernel.cli.served_types import allowed_types, served_by, type_attrs
from opkernel.gradients.registry import has_gradient_entry, look_up_gradient
from opkernel.kernel import get_registered_kernels_for_op, global_kernel_registry
from opkernel.opdef import global_op_registry
from opkernel.ops.loader import all_op_names
from opkernel.proto import KernelDef, OpDef
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType

_SERVED = ("yes", "default")
_FEW = 6


def coverage_of(op: str) -> dict[str, Any]:
    """The facts of an op.

    `run_by` is `kernel`, `runtime` for ops that executors run themselves, or `nothing`. `types` has, for
    each device and each attr that is a type, the types that have a kernel; `gaps` those that the op allows
    besides. `gradient` is `yes`, `none` where the op is declared to have none, or empty. `vectors` says how many
    of the calls recorded from TensorFlow are answered right, and how many there are; None without any.
    """
    op_def, kernels = find_op(op), [*get_registered_kernels_for_op(op).kernel]
    devices = sorted({kernel.device_type for kernel in kernels})
    by_device = {} if op_def is None else {d: _served(op_def, kernels, d) for d in devices}
    return {
        "op": op,
        "run_by": "runtime" if op in RUN_BY_EXECUTORS else "kernel" if kernels else "nothing",
        "devices": devices,
        "types": {device: _strings(served) for device, (served, _) in by_device.items()},
        "gaps": {device: _strings(gaps) for device, (_, gaps) in by_device.items()},
        "shape_function": op_def is not None and _has_shape_function(op),
        "gradient": _gradient(op),
        "vectors": _vectors(op),
        "note": "" if is_own(op) else global_op_registry().traits(op).why_no_kernel,
    }


def _served(
    op_def: OpDef, kernels: Sequence[KernelDef], device: str
) -> tuple[dict[str, list[DataType]], dict[str, list[DataType]]]:
    """The types of each attr that have a kernel on a device, and those that have none."""
    served: dict[str, list[DataType]] = {}
    gaps: dict[str, list[DataType]] = {}
    for attr in type_attrs(op_def):
        for dtype in allowed_types(attr):
            is_served = served_by(kernels, device, attr.name, dtype) in _SERVED
            (served if is_served else gaps).setdefault(attr.name, []).append(dtype)
    return served, gaps


def _strings(types: dict[str, list[DataType]]) -> dict[str, list[str]]:
    return {attr: [dtype.string for dtype in some] for attr, some in types.items()}


def _has_shape_function(op: str) -> bool:
    return global_op_registry().look_up(op).shape_inference_fn is not None


def _gradient(op: str) -> str:
    if not has_gradient_entry(op):
        return ""
    return "none" if look_up_gradient(op) is None else "yes"


def _vectors(op: str) -> dict[str, int] | None:
    counts = recorded_vectors().get(op)
    return None if counts is None else dict(zip(("right", "total"), counts, strict=True))


def is_own(op: str) -> bool:
    """Whether an op, or a kernel of it, is not opkernel's."""
    owners = [one.owner for one in global_kernel_registry().registrations_for(op)]
    return op not in all_op_names() or any(not one.startswith("opkernel.") for one in owners)


def types_text(row: dict[str, Any]) -> list[str]:
    """The devices of an op, each with the types of its attrs that have a kernel, where some have none."""
    if row["run_by"] == "runtime":
        return ["the runtime"]
    return [f"{device}{_limits(row, device)}" for device in row["devices"]]


def _limits(row: dict[str, Any], device: str) -> str:
    gaps, types = row["gaps"].get(device, {}), row["types"].get(device, {})
    limits = [f"{attr}: {_some(types.get(attr, []), gaps[attr])}" for attr in gaps]
    return f" ({'; '.join(limits)})" if limits else ""


def _some(types: Sequence[str], gaps: Sequence[str]) -> str:
    if len(gaps) < min(_FEW, len(types)):
        return f"all but {', '.join(gaps)}"
    return ", ".join(types) or "none"


def totals(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many of the ops there are, run, have a shape function, a gradient."""
    every = [*rows]
    return {
        "ops": len(every),
        "run": sum(row["run_by"] != "nothing" for row in every),
        "shape functions": sum(row["shape_function"] for row in every),
        "gradients": sum(row["gradient"] == "yes" for row in every),
    }
