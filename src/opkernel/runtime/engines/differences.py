"""Whether an engine computes what the kernels of the CPU compute, but for rounding; and the first node where it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import FunctionBody, Operation, graph_to_function_def, instantiate_function
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.runtime.engines.cluster import EngineCluster
from opkernel.runtime.engines.engine import Engine
from opkernel.types import Array

_TOLERANCES = {2: 2e-2, 4: 1e-3, 8: 1e-6}
"""How far floating-point numbers may be apart, by their bytes: of the largest one, and of each."""
_LOWER_TOLERANCES = {"bfloat16": 0.1, "float16": 2e-2}
"""How far they may be where an engine computes in a lower precision."""


_TRIES, _ULPS = 2, 4
_NOISE = 16
"""A program may round so many times as often, or as unluckily, as its inputs are rounded to measure the noise."""

Run = Callable[[Sequence[Any]], tuple[list[Any], list[Any]] | None]
"""Runs a program: its results and the values of variables, or None where it fails."""


def difference(
    found: Sequence[Any],
    wanted: Sequence[Any],
    precision: str = "float32",
    noise: Sequence[float] | None = None,
) -> str:
    """What is different in some results; empty where all agree but for rounding.

    In a lower precision, rounding may decide about integers: these are not compared.

    Args:
        found: The results.
        wanted: What they should be.
        precision: The precision of the engine.
        noise: How far each result may be off because its inputs are rounded; see `noise_of`.
    """
    lower_tolerance = _LOWER_TOLERANCES.get(precision, 0.0)
    allowed = [0.0] * len(found) if noise is None else noise
    for index, (one, other, own) in enumerate(zip(found, wanted, allowed, strict=True)):
        if isinstance(one, int):  # a resource
            continue
        differs = _differs(np.asarray(one), np.asarray(other), lower_tolerance, own)
        if differs:
            return f"result {index} {differs}"
    return ""


def noise_of(run: Run, inputs: Sequence[Any], found: Sequence[Any]) -> list[float]:
    """How far each result moves where all inputs are the next floating-point number above or below, by chance.

    A difference of large numbers consists of little else than noise. So does the loss of a network that makes no
    mistakes, log(1 + x) with a small x: it is a multiple of the distance of numbers near 1, whatever the inputs are.
    """
    largest_input = max(map(_largest, inputs), default=0.0)
    moves = [_epsilon(one) * min(1.0, largest_input) / _ULPS for one in found]
    random = np.random.default_rng(0)
    for _ in range(_TRIES):
        ran = run([_rounded(one, random) for one in inputs])
        if ran is None:
            break
        moved = zip(moves, [*ran[0], *ran[1]], found, strict=True)
        moves = [max(largest, _distance(one, other)) for largest, one, other in moved]
    return [_NOISE * largest for largest in moves]


def _epsilon(value: Any) -> float:
    """The distance of numbers near 1; 0 for types without fractions."""
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


def _rounded(value: Any, random: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.char not in "fd":
        return value
    towards = np.where(random.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.nextafter(value, towards)


def _distance(one: Any, other: Any) -> float:
    """The largest difference of two results; 0 if they have no fractions."""
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype.kind not in "fc" or first.shape != second.shape:
        return 0.0
    with np.errstate(all="ignore"):
        return _largest(first - second)


def _largest(value: Any) -> float:
    """The largest finite number, whatever its sign; 0 if the numbers have no fractions."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return 0.0
    sizes = np.abs(array)
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _differs(found: Array, wanted: Array, lower_tolerance: float, noise: float) -> str:
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
    atol = max(rtol * float(finite.max(initial=0.0)), noise)
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

    It is found by bisection: a node that gives wrong values spoils those behind it. The name of the cluster's function,
    where part of that function is none by itself: one that assigns to variables, say.
    """
    try:
        return _first_difference(engine, body, num_constants, inputs)
    except OpError:
        return body.name


def _first_difference(
    engine: Engine, body: FunctionBody, num_constants: int, inputs: Sequence[Any]
) -> str:
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
        cluster = EngineCluster(partial(engine.compile, body), body.inputs, num_constants)
        found, _ = cluster.program(inputs).run(inputs)
        return not difference(found, _computed(body, inputs), engine.precision)
    except OpError:
        return False


def _computed(body: FunctionBody, inputs: Sequence[Any]) -> list[Any]:
    from opkernel.runtime.session.session import Session  # only where something is wrong

    with Session(body.graph, jit="off") as session:
        feeds = dict(zip(body.inputs, inputs, strict=True))
        values: list[Any] = session.run([*body.outputs], feeds)
        return values
