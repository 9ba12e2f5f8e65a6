"""`while_loop`: Python functions as condition and body of a While.

Tensors that the functions use from outside become further inputs of the node, which stay the same.

Source: TensorFlow python/ops/while_v2.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.graph.building.tensor_conversion import array_like_tensor
from opkernel.graph.core.create_op import as_tensor
from opkernel.graph.core.default_graph import graph_of_call, innermost_default
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import (
    flatten,
    flatten_up_to,
    map_structure,
    packer,
    structure_of,
)
from opkernel.graph.tracing.tensor_spec import TensorSpec
from opkernel.graph.tracing.traced_bodies import (
    check_scalar,
    let_bodies_take_same,
    references_of,
    traced_body,
)
from opkernel.messages import short_repr
from opkernel.types import PartialTensorShape


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    shape_invariants: Sequence[Any] | None = None,
    *,
    parallel_iterations: int = 10,
    maximum_iterations: int | Tensor | None = None,
    name: str = "while",
) -> Any:
    """The loop variables after the last turn of a loop.

    Where a graph is being built, or a loop variable is a tensor, this makes a While node; else
    Python runs the loop.

    Args:
        cond: takes the loop variables and tells whether there is another turn.
        body: takes the loop variables and returns the next ones.
        loop_vars: a list or tuple of values, which may be nested.
        shape_invariants: shapes or TensorSpecs of the loop variables, nested alike, where a shape
            changes from turn to turn.
        parallel_iterations: how many turns may run side by side, for those who can.
        maximum_iterations: the most turns.
        name: the name of the node.

    Raises:
        TypeError: the body returns another structure or other types than it is given.
        ValueError: a shape changes of which `shape_invariants` do not say so; `cond` gives no scalar;
            no loop variables.
    """
    if not isinstance(loop_vars, list | tuple) or not loop_vars:
        raise ValueError(
            f"loop_vars must be a list or tuple of loop variables, not {short_repr(loop_vars)}"
        )
    if maximum_iterations is not None:
        cond, body = _counted(cond, body, loop_vars, maximum_iterations)
        counters = [_zero_like(maximum_iterations)]
        invariants = (
            None if shape_invariants is None else [PartialTensorShape([]), *shape_invariants]
        )
        counted = while_loop(
            cond,
            body,
            [*counters, *loop_vars],
            invariants,
            parallel_iterations=parallel_iterations,
            name=name,
        )
        return _like_form(counted[1:], loop_vars)
    graph = graph_of_call(tensors_in(flatten(loop_vars)))
    if graph is not None:
        return _TracedLoop(graph, loop_vars, shape_invariants, name).node(
            cond, body, parallel_iterations
        )
    while cond(*loop_vars):
        loop_vars = _like_form(body(*loop_vars), loop_vars)
    return loop_vars


def _counted(
    cond: Callable[..., Any], body: Callable[..., Any], form: Any, limit: Any
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions of a loop with the number of the turn as a first variable."""

    def counted_cond(count: Any, *variables: Any) -> Any:
        more = cond(*variables)
        return (count < limit) & (more if isinstance(more, Tensor) else bool(more))

    def counted_body(count: Any, *variables: Any) -> Any:
        return [count + 1, *_like_form(body(*variables), form)]

    return counted_cond, counted_body


def _zero_like(limit: Any) -> Any:
    """Where the count begins: of the type of the limit, and a tensor if that is one."""
    tensor = next(tensors_in(limit), None)
    if tensor is None:
        return np.int32(0)
    graph = graph_of_call([tensor])
    assert graph is not None
    zero = tensor.dtype.base.numpy_dtype.type(0)
    return as_tensor(graph, graph.scopes.name, zero, "Const", None)


class _TracedLoop:
    """A While node in the making.

    Attributes:
        specs: what holds of the loop variables in every turn.
    """

    def __init__(self, graph: Graph, loop_vars: Any, invariants: Any, name: str) -> None:
        self._graph = graph
        self._name = name
        self._form = loop_vars
        scope = graph.scopes.name
        self._variables = [as_tensor(graph, scope, v, "Const", None) for v in flatten(loop_vars)]
        shapes = [tensor.shape for tensor in self._variables]
        if invariants is not None:
            shapes = _shapes_of(invariants, loop_vars)
        self.specs = [
            TensorSpec(shape, tensor.dtype.base, tensor.op.name.rpartition("/")[2])
            for shape, tensor in zip(shapes, self._variables, strict=True)
        ]
        self._check_shapes(self._variables, "enters the loop with")

    def node(
        self, cond: Callable[..., Any], body: Callable[..., Any], parallel_iterations: int
    ) -> Any:
        """Add the node; the loop variables after the loop."""
        graph, count = self._graph, len(self.specs)
        test, turn = self._traced(cond, body)
        captures, controls = let_bodies_take_same([test, turn], count)
        turn.outputs += turn.inputs[count:]
        references = references_of(graph, [test, turn])
        shapes = [spec.shape for spec in self.specs] + [tensor.shape for tensor in captures]
        op = graph.create_op(
            "While" if test.is_stateful or turn.is_stateful else "StatelessWhile",
            [[*self._variables, *captures]],
            name=self._name,
            attrs={
                "cond": references[0],
                "body": references[1],
                "output_shapes": shapes,
                "parallel_iterations": parallel_iterations,
            },
            control_inputs=controls,
        )
        return packer(self._form)(op.outputs[:count])

    def _traced(
        self, cond: Callable[..., Any], body: Callable[..., Any]
    ) -> tuple[FuncGraph, FuncGraph]:
        """The two functions, traced and checked."""
        test, turn = (
            traced_body(self._graph, f"{self._name}_{part}", self._unpacking(function), self.specs)
            for part, function in (("cond", cond), ("body", self._next(body)))
        )
        if len(test.outputs) != 1:
            raise TypeError(f"cond must return one bool, not {short_repr(test.structured_outputs)}")
        check_scalar(test.outputs[0], f"what cond returns for {self._name!r}")
        self._check_types(turn.outputs)
        self._check_shapes(turn.outputs, "has after one turn")
        return test, turn

    def _unpacking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the loop variables as one of their tensors."""
        pack = packer(self._form)
        return lambda *tensors: function(*pack(tensors))

    def _next(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """The body, with numbers and arrays among its results made tensors of the right types."""

        def turn(*variables: Any) -> Any:
            graph = innermost_default()
            assert graph is not None
            leaves = flatten(_like_form(body(*variables), self._form))
            return [
                leaf
                if isinstance(leaf, Tensor)
                else as_tensor(graph, "", array_like_tensor(leaf, spec.dtype), "Const", spec.dtype)
                for leaf, spec in zip(leaves, self.specs, strict=True)
            ]

        return turn

    def _check_types(self, results: Sequence[Tensor]) -> None:
        for spec, tensor in zip(self.specs, results, strict=True):
            if tensor.dtype.base != spec.dtype:
                raise TypeError(
                    f"loop variable {spec.name!r} is {spec.dtype.tf_name}, but the body of "
                    f"{self._name!r} returns {tensor.dtype.tf_name} for it"
                )

    def _check_shapes(self, tensors: Sequence[Tensor], what: str) -> None:
        for spec, tensor in zip(self.specs, tensors, strict=True):
            if not spec.includes(TensorSpec(tensor.shape, spec.dtype)):
                raise ValueError(
                    f"loop variable {spec.name!r} of {self._name!r} has the shape {spec.shape}, but "
                    f"{what} the shape {tensor.shape}; say in shape_invariants what stays the same"
                )


def _shapes_of(invariants: Any, loop_vars: Any) -> list[PartialTensorShape]:
    """The shape of each loop variable."""
    return [
        shape.shape if isinstance(shape, TensorSpec) else PartialTensorShape(shape)
        for shape in flatten_up_to(loop_vars, invariants)
    ]


def _like_form(variables: Any, form: Any) -> Any:
    """Loop variables in the form in which they entered the loop; one may come by itself."""
    if not isinstance(variables, list | tuple):
        variables = [variables]
    if structure_of(list(variables)) != structure_of(list(form)):
        raise TypeError(
            f"the body of a loop must return values like those that it takes: it takes {short_repr(form)} "
            f"and returned {short_repr(variables)}"
        )
    leaves = iter(flatten(variables))
    return map_structure(lambda _: next(leaves), form)
