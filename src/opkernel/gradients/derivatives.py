"""`gradients(ys, xs)`: nodes that compute derivatives, added to the graph of `ys`.

Source: TensorFlow python/ops/gradients_impl.py, python/ops/gradients_util.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.gradients.backpropagation import Rules, backpropagate
from opkernel.gradients.frames_and_contexts import in_frame_of, settle_shapes
from opkernel.gradients.gradient_nodes import (
    Gradient,
    IndexedSlices,
    as_source,
    gradient_dtype,
    nodes,
    ones_like,
    zeros_like,
)
from opkernel.graph import Graph, Tensor, constant
from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.messages import short_repr
from opkernel.types import DataType

UNCONNECTED_GRADIENTS = ("none", "zero")

_Item = TypeVar("_Item")


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    *,
    stop_gradients: Any = (),
    unconnected_gradients: str = "none",
    aggregation_method: str = "add_n",
) -> list[Any]:
    """Add nodes that compute the derivatives of the sum of `ys` with respect to each of `xs`.

        x = raw_ops.Placeholder(dtype=opkernel.float32)
        (dx,) = opkernel.gradients(raw_ops.Square(x=x), x)

    Calls, conditionals and loops of functions that gradients pass through are given further
    results, which the gradients need; what they gave before stays the same.

    Args:
        ys: a tensor, or a list of them.
        xs: a tensor or a list of them; of a resource variable its handle.
        grad_ys: the weights of each of `ys`, of its shape; ones where there is none, or None in the
            list.
        name: the name scope of the new nodes.
        stop_gradients: tensors that count as constant.
        unconnected_gradients: the value of the gradient where no path leads from `ys` to one of
            `xs`: "none" is None, "zero" zeros of its shape.
        aggregation_method: how gradients that meet are added: "add_n" all at once,
            "experimental_tree" one by one.

    Returns:
        For each of `xs` its gradient, or None: a tensor, or IndexedSlices where only rows were
        used.

    Raises:
        NotFoundError: an operation on the way has no gradient function.
        InvalidArgumentError: the tensors are of several graphs, `grad_ys` do not fit `ys`, or `ys`
            are of a type that has no ones.
        FailedPreconditionError: the graph is finalized.
        ResourceExhaustedError: a function calls itself without end.
        ValueError: an option is none of those named here.
    """
    _check_unconnected(unconnected_gradients)
    targets = _tensors(ys, "ys")
    if not targets:
        return [None] * len(_as_list(xs))
    home = targets[0].graph
    targets, sources = _of_graph(home, targets), _of_graph(home, _tensors(xs, "xs"))
    stops = _of_graph(home, _tensors(stop_gradients, "stop_gradients"))
    graph = graph_of_call(targets) or home
    rules = Rules(aggregation_method=aggregation_method)
    settle_shapes(home)
    with graph.as_default(), graph.name_scope(name) as scope, as_source(scope):
        with in_frame_of(targets[0]), paused_garbage_collection():
            weights = _grad_ys(targets, grad_ys)
            found = _backpropagated(targets, sources, weights, stops, rules)
        if unconnected_gradients == "none":
            return found
        pairs = zip(sources, found, strict=True)
        return [zeros_like(x) if grad is None else grad for x, grad in pairs]


def _check_unconnected(given: str) -> None:
    if given not in UNCONNECTED_GRADIENTS:
        raise ValueError(
            f"unconnected_gradients must be one of {UNCONNECTED_GRADIENTS}, not {short_repr(given)}"
        )


def _backpropagated(
    ys: list[Tensor], xs: list[Tensor], weights: list[Gradient], stops: list[Tensor], rules: Rules
) -> list[Gradient | None]:
    try:
        return backpropagate(ys, xs, weights, stops, rules)
    except RecursionError as error:
        raise ResourceExhaustedError(
            f"Functions call each other too deeply for gradients: {error}"
        ) from None


def _as_list(value: _Item | Sequence[_Item]) -> list[_Item]:
    return list(value) if isinstance(value, list | tuple) else [value]  # type: ignore[list-item]


def _tensors(values: Any, what: str) -> list[Tensor]:
    """The given tensors, or the tensors that objects such as variables stand for."""
    tensors = []
    for value in _as_list(values):
        convert = getattr(value, "_as_graph_element", None)
        tensor = value if convert is None else convert()
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what} must be tensors of a graph, not {short_repr(value)}")
        tensors.append(tensor)
    return tensors


def _of_graph(graph: Graph, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors; in a function that is being traced, the tensors that stand for them.

    Raises:
        InvalidArgumentError: one is of another graph.
    """
    own = [graph.as_own(tensor) for tensor in tensors]
    for tensor in own:
        graph.check_own(tensor.op, "graph element")
    return own


def _grad_ys(ys: Sequence[Tensor], given: Any) -> list[Gradient]:
    """The weight of each result."""
    weights = [None] * len(ys) if given is None else _as_list(given)
    if len(weights) != len(ys):
        raise InvalidArgumentError(
            f"grad_ys has {len(weights)} gradients for {len(ys)} ys; give one for each, or None"
        )
    return [_grad_y(i, y, w) for i, (y, w) in enumerate(zip(ys, weights, strict=True))]


def _grad_y(index: int, y: Tensor, given: Any) -> Gradient:
    name = f"grad_ys_{index}"
    if given is None:
        _check_has_default(y)
        return ones_like(y, name)
    if isinstance(given, IndexedSlices):
        _check_kind(y, given.dtype)
        return given
    weight = given if isinstance(given, Tensor) else constant(given, gradient_dtype(y))
    _check_kind(y, weight.dtype)
    same: Tensor = nodes.Identity(weight, name=name)
    return same


def _check_has_default(y: Tensor) -> None:
    if y.dtype.is_complex:
        raise InvalidArgumentError(
            f"Gradients of complex tensors must set grad_ys ('{y.name}' is {y.dtype.string})"
        )
    if not (y.dtype.is_floating or y.dtype.is_integer):
        raise InvalidArgumentError(
            f"Gradients of '{y.name}' must set grad_ys: type {y.dtype.string} has no ones to begin with"
        )


def _check_kind(y: Tensor, dtype: DataType) -> None:
    """Check that a gradient may be of a type.

    Gradients of real numbers are real, those of complex ones complex, and those of a resource of
    the type of the variable.
    """
    dtype, own = dtype.base, y.dtype.base
    if own == DataType.DT_RESOURCE:
        fits = dtype != DataType.DT_RESOURCE
    elif own.is_floating or own.is_integer:
        fits = dtype.is_floating or dtype.is_integer
    elif own.is_complex:
        fits = dtype.is_complex
    else:
        fits = own == dtype == DataType.DT_VARIANT
    if not fits:
        raise InvalidArgumentError(
            f"Gradient type {dtype.string} does not fit '{y.name}', which is {own.string}"
        )
