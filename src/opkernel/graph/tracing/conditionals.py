"""`cond` and `switch_case`: Python functions as the branches of If and Case.

Tensors that the functions use from outside become further inputs of the node. Where what decides
has a value already, Python decides: one function is called at once.

Source: TensorFlow python/ops/cond_v2.py, python/ops/control_flow_switch_case.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.graph.core.default_graph import graph_of_call
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import flatten, packer, structure_of
from opkernel.graph.tracing.tensor_spec import most_general_shape
from opkernel.graph.tracing.traced_bodies import (
    check_scalar,
    let_bodies_take_same,
    references_of,
    traced_body,
)
from opkernel.messages import short_repr

_Branch = Callable[[], Any]


def cond(pred: Any, true_fn: _Branch, false_fn: _Branch, name: str = "cond") -> Any:
    """The result of one of two functions.

    Args:
        pred: a tensor, which makes an If node; or a bool or an array, with which the branch is
            chosen now.
        true_fn: called without arguments; what it returns may be nested.
        false_fn: the same; its results must be like those of `true_fn`.
        name: the name of the node.

    Returns:
        The results; the Operation where the branches return none.

    Raises:
        TypeError: the branches return different structures or types.
        ValueError: `pred` is no scalar.
    """
    if not _is_symbolic(pred):
        if np.size(pred) != 1:
            raise ValueError(f"the predicate of {name!r} must be a scalar, not {short_repr(pred)}")
        return true_fn() if pred else false_fn()
    graph = _graph_of(pred)
    branches = [
        traced_body(graph, f"{name}_true", true_fn),
        traced_body(graph, f"{name}_false", false_fn),
    ]
    return _choice(graph, "If", pred, branches, name)


def switch_case(
    branch_index: Any,
    branch_fns: Sequence[_Branch] | Mapping[int, _Branch] | Sequence[tuple[int, _Branch]],
    default: _Branch | None = None,
    name: str = "switch_case",
) -> Any:
    """The result of the function with a number.

    Args:
        branch_index: an int32 tensor, which makes a Case node; or an int, with which the branch is
            chosen now.
        branch_fns: the functions in order, or with their numbers, from 0 without gaps. They are
            called without arguments, and return results that are alike.
        default: the function for all other numbers; the last one if there is none.
        name: the name of the node.

    Returns:
        The results; the Operation where the branches return none.

    Raises:
        ValueError: there is no function, a gap between the numbers, or `branch_index` is no scalar.
        TypeError: the branches return different structures or types.
    """
    functions = _in_order(branch_fns)
    functions += [] if default is None else [default]
    if not _is_symbolic(branch_index):
        chosen = int(branch_index)
        return functions[chosen if 0 <= chosen < len(functions) else -1]()
    graph = _graph_of(branch_index)
    branches = [traced_body(graph, f"{name}_branch{i}", f) for i, f in enumerate(functions)]
    return _choice(graph, "Case", branch_index, branches, name)


def _choice(graph: Graph, op: str, selector: Any, branches: list[FuncGraph], name: str) -> Any:
    """Add a node that calls one of several functions; its outputs in the form of theirs."""
    if isinstance(selector, Tensor):
        check_scalar(selector, f"what decides in {name!r}")
    _check_alike(branches, name)
    captures, controls = let_bodies_take_same(branches, 0)
    references = references_of(graph, branches)
    outputs = list(zip(*[branch.outputs for branch in branches], strict=True))
    shapes = [
        functools.reduce(most_general_shape, [tensor.shape for tensor in tensors])
        for tensors in outputs
    ]
    attrs: dict[str, Any] = {"then_branch": references[0], "else_branch": references[-1]}
    if op == "Case":
        attrs = {"branches": [reference.func for reference in references]}
    attrs |= {"Tout": [tensors[0].dtype.base for tensors in outputs], "output_shapes": shapes}
    is_stateful = any(branch.is_stateful for branch in branches)
    node = graph.create_op(
        op if is_stateful else f"Stateless{op}",
        [selector, captures],
        name=name,
        attrs=attrs,
        control_inputs=controls,
    )
    return packer(branches[0].structured_outputs)(node.outputs) if node.outputs else node


def _check_alike(branches: list[FuncGraph], name: str) -> None:
    """Raise TypeError unless all branches return the same structure and types."""

    def form(branch: FuncGraph) -> Any:
        results = branch.structured_outputs
        types = [None if t is None else t.dtype.base.tf_name for t in flatten(results)]
        return structure_of(results), types

    first = form(branches[0])
    for branch in branches[1:]:
        if form(branch) != first:
            raise TypeError(
                f"the branches of {name!r} must return the same structure and types, but "
                f"{branches[0].name!r} returns {branches[0].structured_outputs!r} and "
                f"{branch.name!r} returns {branch.structured_outputs!r}"
            )


def _in_order(branch_fns: Any) -> list[_Branch]:
    """The functions by number."""
    if not isinstance(branch_fns, Mapping):
        if not any(isinstance(branch, tuple) for branch in branch_fns):
            return _not_empty(list(branch_fns))
        branch_fns = dict(branch_fns)
    if sorted(branch_fns) != list(range(len(branch_fns))):
        raise ValueError(
            f"branch_fns must have the numbers 0 to {len(branch_fns) - 1}, not {sorted(branch_fns)}"
        )
    return _not_empty([branch_fns[number] for number in sorted(branch_fns)])


def _not_empty(functions: list[_Branch]) -> list[_Branch]:
    if not functions:
        raise ValueError("branch_fns is empty")
    return functions


def _graph_of(selector: Any) -> Graph:
    graph = graph_of_call(tensors_in(selector))
    assert graph is not None
    return graph


def _is_symbolic(value: Any) -> bool:
    return next(tensors_in(value), None) is not None
