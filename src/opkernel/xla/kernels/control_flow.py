"""Calls of functions, conditionals and loops: `lax.switch` and `lax.while_loop` of compiled functions.

The branches and bodies are compiled into the program that is being traced. Variables that they assign to are results of
theirs.

Source: TensorFlow compiler/tf2xla/kernels/if_op.cc, while_op.cc, case_op.cc, partitioned_call in xla_compiler.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.proto import NameAttrList
from opkernel.types import DataType
from opkernel.xla.const_analysis import passed_on
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.kernels.pass_through import truth
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource, XlaTensorList, resources_of

_PASSING = frozenset({"Identity", "StopGradient"})


@register_xla_kernel(["PartitionedCall", "StatefulPartitionedCall"], resources=True, variants=True)
class CallOp(XlaOpKernel):
    """The operations of the function, in the place of the call."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Compile the function."""
        ctx.outputs[:] = ctx.call_function(self.node_def.attr["f"].func, ctx.inputs)


class _Shared:
    """The inputs that parts of the program share: the branches of a conditional, or the turns of a loop.

    Each part works on resources of its own. What some part assigns to is a result of all parts. Where the program
    draws random numbers, its generator is the last input.
    """

    def __init__(self, ctx: XlaOpKernelContext, inputs: Sequence[Any]) -> None:
        self._ctx = ctx
        generator = ctx.compiler.generator
        self._draws = generator is not None
        self.inputs = [*inputs, generator] if self._draws else inputs
        self._written: dict[int, DataType] = {}
        self._passed: dict[int, XlaResource] = {}
        self._new_gradients: list[tuple[XlaResource, str]] = []

    @property
    def resources(self) -> list[XlaResource]:
        """The resources, each with those for its gradients behind it."""
        return resources_of(self.inputs)

    def copies(self) -> list[Any]:
        """The inputs, with resources of a part's own."""
        return [one.copy() if isinstance(one, XlaResource) else one for one in self.inputs]

    def called(self, function: NameAttrList, copies: Sequence[Any]) -> list[Any]:
        """The results of a part's function for its copies of the inputs."""
        if not self._draws:
            return self._ctx.call_function(function, copies)
        return self._ctx.call_function(function, copies[:-1], copies[-1])

    def after(self, copies: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The results of a part as values of the program, and the values that its resources have.

        Raises:
            InvalidArgumentError: a result is another resource than in another part.
            UnimplementedError: a result is a resource that the part made.
        """
        own = self._own(copies)
        for number, one in enumerate(own):
            if one.is_written and one.dtype is not None:
                self._written[number] = one.dtype
        for index, result in enumerate(results):
            if isinstance(result, XlaResource):
                self._note_passed(index, result, own)
        return [_in_program(one) for one in results], [one.value for one in own]

    def _own(self, copies: Sequence[Any]) -> list[XlaResource]:
        """The resources of a part in the order of `resources`."""
        found = []
        for one, copy in zip(self.inputs, copies, strict=True):
            if isinstance(copy, XlaResource):
                found += [copy, *(copy.gradients[source] for source in one.gradients)]
                self._new_gradients += [
                    (one, source) for source in copy.gradients if source not in one.gradients
                ]
        return found

    def _note_passed(self, index: int, result: XlaResource, own: Sequence[XlaResource]) -> None:
        if result not in own:
            raise UnimplementedError(
                f"XLA does not compile a function that gives a resource of its own: result {index}, {result.name}"
            )
        resource = self.resources[own.index(result)]
        if self._passed.setdefault(index, resource) is not resource:
            raise InvalidArgumentError(
                f"Result {index} stands for variable {resource.name} in one branch, and for "
                f"{self._passed[index].name} in another; XLA needs one"
            )

    def make_gradients(self) -> bool:
        """Make the TensorArrays for gradients that a part made since the last call; whether there was one.

        They are shared, too: parts have to be compiled once more.
        """
        made, self._new_gradients = self._new_gradients, []
        for resource, source in made:
            resource.gradient(source)
        return bool(made)

    def note(self, results: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """The results; resources have the values that they have after the parts."""
        for number, dtype in self._written.items():
            self.resources[number].assign(dtype, values[number])
        return [self._passed.get(index, result) for index, result in enumerate(results)]


def _in_program(value: Any) -> Any:
    """A result as a value of the program, of which a resource is none."""
    if isinstance(value, XlaResource):
        return None
    return jnp().asarray(value) if isinstance(value, np.ndarray) else value


def _with_traced_length(value: Any) -> Any:
    """A list as one whose number of elements only the program knows; any other value itself."""
    return value.with_traced_length() if isinstance(value, XlaTensorList) else value


def _index_of_branch(ctx: XlaOpKernelContext, count: int) -> Any:
    """The branch that Case takes: the last one if there is no such branch."""
    index = ctx.inputs[0].reshape(())
    xp = np if isinstance(index, np.ndarray) else jnp()
    return xp.where((index < 0) | (index >= count), count - 1, index)


def _branch(ctx: XlaOpKernelContext, index: Any, functions: Sequence[NameAttrList]) -> None:
    """Compile one of several functions on all inputs but the first."""
    inputs = ctx.inputs[1:]
    if isinstance(index, np.ndarray | np.generic):
        ctx.outputs[:] = ctx.call_function(functions[int(index)], inputs)
        return
    shared = _Shared(ctx, inputs)

    def taken(function: NameAttrList) -> tuple[list[Any], list[Any]]:
        copies = shared.copies()
        results, values = shared.after(copies, shared.called(function, copies))
        return [*map(_with_traced_length, results)], [*map(_with_traced_length, values)]

    branches = [partial(taken, one) for one in functions]
    if any(isinstance(one.value, XlaTensorList) for one in shared.resources):
        for branch in branches:
            jax().eval_shape(branch)
        shared.make_gradients()
    results, values = lax().switch(index, branches)
    ctx.outputs[:] = shared.note(results, values)


@register_xla_kernel(["If", "StatelessIf", "XlaIf"], resources=True, variants=True)
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


@register_xla_kernel(["While", "StatelessWhile", "XlaWhile"], resources=True, variants=True)
class WhileOp(XlaOpKernel):
    """`body` while `cond`."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Compile a loop over all inputs that the body changes."""
        attrs = self.node_def.attr
        body = ctx.function_body(attrs["body"].func)
        loop = _CompiledLoop(ctx, attrs["cond"].func, attrs["body"].func, passed_on(body, _PASSING))
        ctx.outputs[:] = loop.run()


class _CompiledLoop:
    """A loop: its state has the inputs that change, and the values of resources."""

    def __init__(
        self,
        ctx: XlaOpKernelContext,
        cond: NameAttrList,
        body: NameAttrList,
        invariant: frozenset[int],
    ) -> None:
        self._ctx, self._cond, self._body = ctx, cond, body
        self._shared = _Shared(ctx, ctx.inputs)
        resources = {i for i, one in enumerate(ctx.inputs) if isinstance(one, XlaResource)}
        if not resources <= invariant:
            raise UnimplementedError(
                "XLA does not compile a loop whose body gives another resource than it is given"
            )
        self._stays = invariant
        self._changes_length: set[int] = set()

    def run(self) -> list[Any]:
        """The results."""
        inputs = self._ctx.inputs
        first, after = self._tried()
        if self._shared.make_gradients():
            first, after = self._tried()
        while self._note_changing_lengths(first, after):
            first, after = self._tried()
        first = _with_buffers(first, after)
        last, written = lax().while_loop(self._holds, self._turn, first)
        self._shared.note((), written)
        changed = iter(last)
        return [one if i in self._stays else next(changed) for i, one in enumerate(inputs)]

    def _tried(self) -> tuple[Any, Any]:
        """The state before the first turn, and its shapes and types after it."""
        values = [_in_program(one) for one in self._changing(self._ctx.inputs)]
        first = self._steady((values, [one.value for one in self._shared.resources]))
        return first, jax().eval_shape(self._turn, first)

    def _note_changing_lengths(self, before: Any, after: Any) -> bool:
        """Note the lists whose number of elements a turn changes; whether there are more than were known."""
        pairs = zip([*before[0], *before[1]], [*after[0], *after[1]], strict=True)
        found = {
            place
            for place, (one, later) in enumerate(pairs)
            if isinstance(one, XlaTensorList) and one.known_length != later.known_length
        }
        has_more = not found <= self._changes_length
        self._changes_length |= found
        return has_more

    def _steady(self, state: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
        """A state of which only the program knows the changing numbers of elements."""
        flat = [
            _with_traced_length(one) if place in self._changes_length else one
            for place, one in enumerate([*state[0], *state[1]])
        ]
        return flat[: len(state[0])], flat[len(state[0]) :]

    def _changing(self, values: Sequence[Any]) -> list[Any]:
        """The values that may be others after a turn."""
        return [one for i, one in enumerate(values) if i not in self._stays]

    def _inputs(self, state: Any) -> list[Any]:
        """The arguments of the functions for a state, with resources of their own."""
        changing, values = map(iter, state)
        given = self._shared.copies()
        for one in resources_of(given):
            one.value = next(values)
        return [
            one if isinstance(one, XlaResource) or i in self._stays else next(changing)
            for i, one in enumerate(given)
        ]

    def _holds(self, state: Any) -> Any:
        (answer,) = self._shared.called(self._cond, self._inputs(state))
        return jnp().asarray(truth(answer))

    def _turn(self, state: Any) -> Any:
        inputs = self._inputs(state)
        results = self._shared.called(self._body, inputs)
        return self._steady(self._shared.after(inputs, self._changing(results)))


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
    held = [_prepared(one, later) for one, later in zip(state[1], after[1], strict=True)]
    return values, held


def _prepared(value: Any, later: Any) -> Any:
    if isinstance(value, XlaTensorList) and later.buffer is not None:
        return value.like(tuple(later.buffer.shape[1:]))
    return value
