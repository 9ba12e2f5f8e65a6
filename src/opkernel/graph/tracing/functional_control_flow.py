"""`cond`, `switch_case` and `while_loop`: Python functions as branches of If and Case, condition and body of a While.

Tensors that the functions use from outside become further inputs of the node; those of a loop stay the same. All bodies
of a node take the same inputs. Where what decides has a value already, Python decides: one function is called at once.

Source: TensorFlow python/ops/cond_v2.py, control_flow_switch_case.py, while_v2.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.graph.building.constructors import array_like_tensor
from opkernel.graph.core.create_op import as_tensor
from opkernel.graph.core.default_graph import graph_of_call, graph_of_tensors, innermost_default
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.graph.tracing.func_graph import FuncGraph, function_name
from opkernel.graph.tracing.nested_structure import (
    flatten,
    flatten_up_to,
    map_structure,
    packer,
    structure_of,
)
from opkernel.graph.tracing.tensor_spec import TensorSpec
from opkernel.messages import short_repr
from opkernel.proto import AttrValue
from opkernel.types import PartialTensorShape


def traced_body(
    graph: Graph, name: str, function: Callable[..., Any], specs: Sequence[TensorSpec] = ()
) -> FuncGraph:
    """A function of tensors, traced inside a graph; more can be captured until it is closed."""
    body = FuncGraph(name=function_name(name), outer_graph=graph)
    arguments = [body.add_input(spec, spec.name or "x") for spec in specs]
    body.trace(function, *arguments)
    return body


def check_scalar(tensor: Tensor, what: str) -> None:
    """Raise ValueError where what decides is known to be no scalar.

    The ops take any array that has elements for true.
    """
    if tensor.shape.rank not in (None, 0):
        raise ValueError(f"{what} must be a scalar, but has the shape {tensor.shape}")


def let_bodies_take_same(
    bodies: list[FuncGraph], count: int
) -> tuple[list[Tensor], list[Operation]]:
    """Let all bodies take what any of them captures, after `count` arguments; what that is."""
    captures = dict.fromkeys(tensor for body in bodies for tensor in body.captures)
    for body in bodies:
        inside = [body.capture(tensor) for tensor in captures]
        body.inputs[count:] = inside
        body.close()
    controls = dict.fromkeys(op for body in bodies for op in body.control_captures)
    return list(captures), list(controls)


def references_of(graph: Graph, bodies: list[FuncGraph]) -> list[AttrValue]:
    """The values of attrs that name the functions, which the graph knows then."""
    for body in bodies:
        body.add_to(graph)
    return [body.reference for body in bodies]


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
    graph = graph_of_tensors(tensors_in(pred))
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
    functions = _in_order(branch_fns) + ([] if default is None else [default])
    if not _is_symbolic(branch_index):
        chosen = int(branch_index)
        return functions[chosen if 0 <= chosen < len(functions) else -1]()
    graph = graph_of_tensors(tensors_in(branch_index))
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
        functools.reduce(
            PartialTensorShape.most_specific_compatible_shape, [tensor.shape for tensor in tensors]
        )
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
    if not branch_fns:
        raise ValueError("branch_fns is empty")
    if not isinstance(branch_fns, Mapping):
        if not any(isinstance(branch, tuple) for branch in branch_fns):
            return list(branch_fns)
        branch_fns = dict(branch_fns)
    if sorted(branch_fns) != list(range(len(branch_fns))):
        raise ValueError(
            f"branch_fns must have the numbers 0 to {len(branch_fns) - 1}, not {sorted(branch_fns)}"
        )
    return [branch_fns[number] for number in sorted(branch_fns)]


def _is_symbolic(value: Any) -> bool:
    return next(tensors_in(value), None) is not None


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
    graph = graph_of_tensors([tensor])
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
            shapes = [
                shape.shape if isinstance(shape, TensorSpec) else PartialTensorShape(shape)
                for shape in flatten_up_to(loop_vars, invariants)
            ]
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
        pack = packer(self._form)

        def traced(part: str, function: Callable[..., Any]) -> FuncGraph:
            """A function of the loop variables, as one of their tensors."""
            name = f"{self._name}_{part}"
            return traced_body(self._graph, name, lambda *t: function(*pack(t)), self.specs)

        test, turn = traced("cond", cond), traced("body", self._next(body))
        if len(test.outputs) != 1:
            raise TypeError(f"cond must return one bool, not {short_repr(test.structured_outputs)}")
        check_scalar(test.outputs[0], f"what cond returns for {self._name!r}")
        for spec, tensor in zip(self.specs, turn.outputs, strict=True):
            if tensor.dtype.base != spec.dtype:
                raise TypeError(
                    f"loop variable {spec.name!r} is {spec.dtype.tf_name}, but the body of "
                    f"{self._name!r} returns {tensor.dtype.tf_name} for it"
                )
        self._check_shapes(turn.outputs, "has after one turn")
        return test, turn

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

    def _check_shapes(self, tensors: Sequence[Tensor], what: str) -> None:
        for spec, tensor in zip(self.specs, tensors, strict=True):
            if not spec.includes(TensorSpec(tensor.shape, spec.dtype)):
                raise ValueError(
                    f"loop variable {spec.name!r} of {self._name!r} has the shape {spec.shape}, but "
                    f"{what} the shape {tensor.shape}; say in shape_invariants what stays the same"
                )


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
