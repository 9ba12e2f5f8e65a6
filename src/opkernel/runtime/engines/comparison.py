"""Whether an engine computes what the kernels of the CPU compute, and where it begins to differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import (
    FunctionBody,
    Operation,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.graph.edit.prune import prune_and_order
from opkernel.runtime.engines.cluster import EngineCluster
from opkernel.runtime.engines.engine import Engine

_TOLERANCES = {2: 2e-2, 4: 1e-3, 8: 1e-6}
"""How far floating-point numbers may be apart, by their bytes: of the largest one, and of each."""
_LOWER_TOLERANCES = {"bfloat16": 0.1, "float16": 2e-2}
"""How far they may be where an engine computes in a lower precision."""


def difference(found: Sequence[Any], wanted: Sequence[Any], precision: str = "float32") -> str:
    """What is different in some results; empty where all agree but for rounding.

    In a lower precision, rounding may decide about integers: these are not compared.
    """
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(one, int):  # a resource
            continue
        differs = _differs(
            np.asarray(one), np.asarray(other), _LOWER_TOLERANCES.get(precision, 0.0)
        )
        if differs:
            return f"result {index} {differs}"
    return ""


def _differs(
    found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], lower_tolerance: float
) -> str:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return (
            f"is {found.dtype}{list(found.shape)} and should be {wanted.dtype}{list(wanted.shape)}"
        )
    if found.dtype == object or not found.size:
        return ""
    if found.dtype.kind not in "fcV":
        is_right = lower_tolerance or np.array_equal(found, wanted)
        return "" if is_right else "has other elements"
    size = found.dtype.itemsize // (2 if found.dtype.kind == "c" else 1)
    rtol = max(_TOLERANCES.get(size, 0.2), lower_tolerance)
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    one, other = found.astype(wide), wanted.astype(wide)
    finite = np.abs(other[np.isfinite(other)])
    atol = rtol * float(finite.max(initial=0.0))
    with np.errstate(all="ignore"):
        close = np.isclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"is {found[place]} at {list(place)} and should be {wanted[place]}"


def first_difference(
    engine: Engine, body: FunctionBody, num_constants: int, inputs: Sequence[Any]
) -> str:
    """The name of the first node of a cluster for which its engine computes other values than the CPU.

    It is found by bisection: a node that gives wrong values spoils those behind it.
    """
    order = [
        op
        for op in prune_and_order(body.outputs, body.targets, body.inputs)
        if op.output_types and op not in body.arg_nodes
    ]
    low, high = 0, len(order) - 1
    while low < high:
        middle = (low + high) // 2
        prefix = _prefix(body, order[: middle + 1])
        if _is_right(engine, prefix, num_constants, inputs):
            low = middle + 1
        else:
            high = middle
    return order[low].name if order else body.name


def _prefix(body: FunctionBody, ops: Sequence[Operation]) -> FunctionBody:
    """The function that gives the outputs of the last of some operations of another one."""
    function = graph_to_function_def(body.graph, "prefix", body.inputs, ops[-1].outputs, body=ops)
    return instantiate_function(body.graph.function_library, function)


def _is_right(
    engine: Engine, body: FunctionBody, num_constants: int, inputs: Sequence[Any]
) -> bool:
    """Whether an engine computes what the kernels of the CPU compute."""
    try:
        program = EngineCluster(partial(engine.compile, body), body.inputs, num_constants).program(
            inputs
        )
        found, _ = program.run(inputs)
        return not difference(found, _computed(body, inputs), engine.precision)
    except OpError:
        return False


def _computed(body: FunctionBody, inputs: Sequence[Any]) -> list[Any]:
    from opkernel.runtime.session.session import Session  # only where something is wrong

    with Session(body.graph, jit="off") as session:
        feeds = dict(zip(body.inputs, inputs, strict=True))
        values: list[Any] = session.run([*body.outputs], feeds)
        return values
