"""GradientCall: a call of an op in a graph, its weighted outputs and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from opkernel.errors import OpError, UnimplementedError
from opkernel.gradients import gradients, is_trainable, look_up_gradient
from opkernel.gradients.gradient_nodes import as_dense
from opkernel.graph import Graph, Operation, Tensor, constant, placeholder
from opkernel.runtime import Session
from opkernel.testing.op_call import CheckFailure, OpCall, deed_of
from opkernel.testing.op_runs import graph_def_version_for
from opkernel.types import Array


class GradientCall:
    """A graph with the node of a call, whose inputs are fed.

    Attributes:
        call: the call.
        trainable: flat numbers of the inputs that may have gradients.
        ys: the outputs that are differentiated.
    """

    def __init__(
        self, call: OpCall, outputs: Sequence[int] | None = None, *, shapes_known: bool
    ) -> None:
        """Build the graph.

        Args:
            call: the call.
            outputs: flat numbers of the outputs to differentiate; all if None.
            shapes_known: whether the graph knows the shapes of inputs that may have gradients, and the
                values of all else.
        """
        self.call = call
        self._shapes_known = shapes_known
        self._graph = Graph()
        self._graph.graph_def_versions.producer = graph_def_version_for(call.registration.op_def)
        with self._graph.as_default():
            self._tensors = list(map(self._input, range(len(call.inputs))))
            op: Operation = self._graph.create_op(
                call.node_def.op, self._tensors, attrs=dict(call.node_def.attr)
            )
        chosen = range(len(op.outputs)) if outputs is None else outputs
        self.trainable = [i for i, tensor in enumerate(self._tensors) if _is_number(tensor)]
        self.ys = [y for y in map(op.outputs.__getitem__, chosen) if _is_number(y)]
        self._session = Session(self._graph, optimize=False)  # it is built for a few steps

    def outputs(self, inputs: Sequence[Any]) -> list[Array]:
        """The values of `ys`; of halves and singles as doubles, so that differences are exact.

        Raises:
            OpError: the kernel refuses the inputs.
        """
        return [_wide(value) for value in self._computed(*inputs)]

    @cached_property
    def _computed(self) -> Callable[..., Any]:
        return self._session.make_callable(self.ys, self._tensors)

    def gradients(self, wanted: Sequence[int], weights: Sequence[Array]) -> list[Array | None]:
        """The gradients of inputs, by their flat numbers, of the weighted sum of `ys`.

        Raises:
            CheckFailure: they cannot be had, or are of a wrong type or shape.
            UnimplementedError: the gradient of such a call is not implemented.
        """
        name = getattr(look_up_gradient(self.call.node_def.op), "__name__", "")
        grad_ys = [
            weight.astype(y.dtype.numpy_dtype) for weight, y in zip(weights, self.ys, strict=True)
        ]
        try:
            with self._graph.as_default():
                xs = [self._tensors[index] for index in wanted]
                found = [as_dense(g) for g in gradients(self.ys, xs, grad_ys)]
        except UnimplementedError:
            raise
        except Exception as error:  # a gradient function may raise anything
            raise self.failure(f"the gradient function {name} {deed_of(error)}") from error
        given = {index: g for index, g in zip(wanted, found, strict=True) if g is not None}
        for index, gradient in given.items():
            self._check_type(index, gradient)
        values = dict(zip(given, self._run([*given.values()]), strict=True))
        return [
            self._checked(index, values[index]) if index in values else None for index in wanted
        ]

    def failure(self, what: str) -> CheckFailure:
        """An error that tells the call."""
        known = "known" if self._shapes_known else "unknown"
        return CheckFailure(self.call, f"{what} (shapes {known})")

    def name_of(self, index: int) -> str:
        """The name of an input in messages."""
        return f"input {index} ('{self.call.node_def.input[index]}')"

    def _check_type(self, index: int, gradient: Tensor) -> None:
        wanted = self._tensors[index].dtype
        if gradient.dtype != wanted:
            raise self.failure(
                f"the gradient of {self.name_of(index)} is of type {gradient.dtype.string}, "
                f"the input {wanted.string}"
            )

    def _checked(self, index: int, value: Any) -> Array:
        """The value of a gradient, which has the shape of the input."""
        shape = np.shape(self.call.inputs[index])
        if np.shape(value) != shape:
            raise self.failure(
                f"the gradient of {self.name_of(index)} has the shape {list(np.shape(value))}, "
                f"the input {list(shape)}"
            )
        return _wide(value)

    def _run(self, fetches: Sequence[Tensor]) -> list[Any]:
        feeds = dict(zip(self._tensors, self.call.inputs, strict=True))
        try:
            return list(self._session.run(list(fetches), feeds))
        except UnimplementedError:
            raise
        except OpError as error:
            what = f"what the gradient function adds {deed_of(error)}"
            raise self.failure(what) from error

    def _input(self, index: int) -> Tensor:
        """A placeholder for an input; with known shapes, a constant where none is differentiated."""
        array, dtype = np.asarray(self.call.inputs[index]), self.call.input_types[index]
        tensor = placeholder(dtype, array.shape, name=self.call.node_def.input[index])
        if is_trainable(tensor) and not self._shapes_known:
            return placeholder(dtype, name=self.call.node_def.input[index])
        return constant(array) if self._shapes_known and not is_trainable(tensor) else tensor


def _is_number(tensor: Tensor) -> bool:
    """Whether a tensor has gradients and is none that stands for others, as resources do."""
    return is_trainable(tensor) and not tensor.dtype.numpy_dtype.hasobject


def _wide(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
