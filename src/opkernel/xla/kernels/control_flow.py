"""Calls of functions, conditionals and loops: `lax.switch` and `lax.while_loop` of compiled functions.

The branches and bodies are compiled into the program that is being traced. Variables that they assign to are results of
theirs.

Source: TensorFlow compiler/tf2xla/kernels/if_op.cc, while_op.cc, case_op.cc, partitioned_call in xla_compiler.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.graph.functions.function_body import FunctionBody
from opkernel.proto import NameAttrList
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource
from opkernel.xla.tensor_list import XlaTensorList

_PASSING = frozenset({"Identity", "StopGradient"})


@register_xla_kernel(["PartitionedCall", "StatefulPartitionedCall"], resources=True, variants=True)
class CallOp(XlaOpKernel):
    """The operations of the function, in the place of the call."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Compile the function."""
        ctx.outputs[:] = ctx.call_function(self.node_def.attr["f"].func, ctx.inputs)


class _Part:
    """A function that is compiled as a part of the program, with the values that it shares with the rest."""

    def __init__(
        self, ctx: XlaOpKernelContext, function: NameAttrList, inputs: Sequence[Any]
    ) -> None:
        self._ctx, self._function, self._inputs = ctx, function, inputs

    def __call__(self) -> tuple[list[Any], list[Any]]:
        """The results, and the values that resources have afterwards."""
        copies = [_copied(value) for value in self._inputs]
        results = self._ctx.call_function(self._function, copies)
        resources = [one for one in copies if isinstance(one, XlaResource)]
        return [_in_program(one) for one in results], [one.value for one in resources]


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, XlaResource) else value


def _in_program(value: Any) -> Any:
    """A result as a value of the program; a resource is the same in all branches."""
    if isinstance(value, XlaResource):
        return None
    return jnp().asarray(value) if isinstance(value, np.ndarray) else value


def _resources(inputs: Sequence[Any]) -> list[XlaResource]:
    return [one for one in inputs if isinstance(one, XlaResource)]


def _note(resources: Sequence[XlaResource], values: Sequence[Any]) -> None:
    """Give resources the values that they have after a part of the program."""
    for resource, value in zip(resources, values, strict=True):
        if value is not resource.value and resource.dtype is not None:
            resource.assign(resource.dtype, value)


def _index_of_branch(ctx: XlaOpKernelContext, count: int) -> Any:
    """The branch that Case takes: the last one if there is no such branch."""
    index = ctx.inputs[0].reshape(())
    xp = np if isinstance(index, np.ndarray) else jnp()
    return xp.where((index < 0) | (index >= count), count - 1, index)


def truth(value: Any) -> Any:
    """Whether a tensor counts as true: a scalar that is not zero, or another tensor with elements."""
    if value.shape:
        return np.asarray(value.size > 0)
    return value != 0 if value.dtype != bool else value


def _branch(ctx: XlaOpKernelContext, index: Any, functions: Sequence[NameAttrList]) -> None:
    """Compile one of several functions on all inputs but the first."""
    inputs = ctx.inputs[1:]
    if isinstance(index, np.ndarray | np.generic):
        ctx.outputs[:] = ctx.call_function(functions[int(index)], inputs)
        return
    parts = [_Part(ctx, function, inputs) for function in functions]
    results, values = lax().switch(index, parts)
    _note(_resources(inputs), values)
    ctx.outputs[:] = results


@register_xla_kernel(["If", "StatelessIf"], resources=True, variants=True)
class IfOp(XlaOpKernel):
    """`then_branch` or `else_branch`."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Compile both, or the one that is taken where that is known."""
        attrs = self.node_def.attr
        chosen = truth(ctx.inputs[0])
        index = chosen.astype("int32")
        _branch(ctx, index, [attrs["else_branch"].func, attrs["then_branch"].func])


@register_xla_kernel(["Case", "StatelessCase"], resources=True, variants=True)
class CaseOp(XlaOpKernel):
    """One of `branches`."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Compile all, or the one that is taken where that is known."""
        functions = list(self.node_def.attr["branches"].list.func)
        _branch(ctx, _index_of_branch(ctx, len(functions)), functions)


@register_xla_kernel(["While", "StatelessWhile"], resources=True, variants=True)
class WhileOp(XlaOpKernel):
    """`body` while `cond`."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Compile a loop over all inputs that the body changes."""
        attrs = self.node_def.attr
        body = ctx.function_body(attrs["body"].func)
        loop = _Loop(ctx, attrs["cond"].func, attrs["body"].func, _invariant(body))
        ctx.outputs[:] = loop.run()


class _Loop:
    """A loop: its state has the inputs that change, and the values of resources."""

    def __init__(
        self,
        ctx: XlaOpKernelContext,
        cond: NameAttrList,
        body: NameAttrList,
        invariant: frozenset[int],
    ) -> None:
        self._ctx, self._cond, self._body = ctx, cond, body
        inputs = ctx.inputs
        self._stays = invariant | {
            i for i, one in enumerate(inputs) if isinstance(one, XlaResource)
        }

    def run(self) -> list[Any]:
        """The results."""
        inputs = self._ctx.inputs
        first = self._state(inputs, _resources(inputs))
        first = _with_buffers(first, jax().eval_shape(self._turn, first))
        last = lax().while_loop(self._holds, self._turn, first)
        _note(_resources(inputs), last[1])
        changed = iter(last[0])
        return [one if i in self._stays else next(changed) for i, one in enumerate(inputs)]

    def _state(self, values: Sequence[Any], resources: Sequence[XlaResource]) -> Any:
        changing = [_in_program(one) for i, one in enumerate(values) if i not in self._stays]
        return changing, [one.value for one in resources]

    def _inputs(self, state: Any) -> list[Any]:
        """The arguments of the functions for a state, with resources of their own."""
        changing, values = map(iter, state)
        given = []
        for i, one in enumerate(self._ctx.inputs):
            if isinstance(one, XlaResource):
                one = one.copy()
                one.value = next(values)
            elif i not in self._stays:
                one = next(changing)
            given.append(one)
        return given

    def _holds(self, state: Any) -> Any:
        (answer,) = self._ctx.call_function(self._cond, self._inputs(state))
        return jnp().asarray(truth(answer))

    def _turn(self, state: Any) -> Any:
        inputs = self._inputs(state)
        results = self._ctx.call_function(self._body, inputs)
        return self._state(results, _resources(inputs))


def _invariant(body: FunctionBody) -> frozenset[int]:
    """The arguments that a body gives back as they are."""
    return frozenset(
        index
        for index, (arg, ret) in enumerate(zip(body.arg_nodes, body.ret_nodes, strict=True))
        if _source(ret) is arg
    )


def _source(op: Operation) -> Operation:
    """The operation whose output comes to another one, through operations that pass it on."""
    op = op.edges[0]
    while op.type in _PASSING:
        op = op.edges[0]
    return op


def _with_buffers(state: Any, after: Any) -> Any:
    """The state with buffers for lists whose elements' shape only the loop's body tells.

    Raises:
        InvalidArgumentError: a value changes its shape or type from turn to turn.
    """
    values = [_prepared(one, later) for one, later in zip(state[0], after[0], strict=True)]
    for index, (one, later) in enumerate(zip(values, after[0], strict=True)):
        if hasattr(one, "shape") and (one.shape, one.dtype) != (later.shape, later.dtype):
            raise InvalidArgumentError(
                f"Loop variable {index} is {one.dtype}{list(one.shape)} before a turn and "
                f"{later.dtype}{list(later.shape)} after it; XLA needs one shape and type"
            )
    return values, state[1]


def _prepared(value: Any, later: Any) -> Any:
    if isinstance(value, XlaTensorList) and later.buffer is not None:
        return value.like(tuple(later.buffer.shape[1:]))
    return value
