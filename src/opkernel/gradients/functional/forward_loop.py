"""ForwardLoop: a While node with further variables, which its gradient needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.gradients.contexts import origin
from opkernel.gradients.frames import in_frame_of
from opkernel.gradients.functional.body_gradient import called_body, new_function
from opkernel.gradients.node_methods import nodes
from opkernel.graph import (
    FunctionBody,
    Operation,
    Tensor,
    constant,
    placeholder,
)
from opkernel.graph.edit.loop_variables import add_loop_variables
from opkernel.graph.inference.shape_refiner import facts_of
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.types import DataType, PartialTensorShape

_INT32, _VARIANT = DataType.DT_INT32, DataType.DT_VARIANT


class ForwardLoop:
    """A loop whose gradient is made.

    Attributes:
        op: the node.
        body: an instance of its body.
        constants: the tensors of the body that are the same in all turns, with what the node takes
            for them.
        stops: none.
    """

    def __init__(self, op: Operation) -> None:
        self.op = op
        self._inputs = op.inputs
        self.body = self._instance("body")
        self.constants = {
            argument: self._inputs[index]
            for index, argument in enumerate(self.body.inputs)
            if origin(self.body.outputs[index]) is argument
        }
        self.stops: Sequence[Tensor] = ()
        self._define_arguments()

    def keep(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Have the loop count its turns, and keep tensors of the body in lists.

        Returns:
            The number of turns, and the lists with an element for each turn.
        """
        op, number = self.op, len(self._inputs)
        count, lists = self._first_values(tensors)
        shapes = [PartialTensorShape([])] * (1 + len(lists))
        body, cond = self._new_body(tensors), self._new_condition(1 + len(tensors))
        add_loop_variables(op, (count, *lists), shapes, {"body": body, "cond": cond})
        op.graph.put_in_order(op.graph.get_operations())  # its inputs may be newer
        turns, *kept = op.outputs[number:]
        return turns, list(kept)

    def _first_values(self, tensors: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The initial values of the added variables."""
        graph = self.op.graph
        with graph.as_default(), graph.control_dependencies(None), in_frame_of(self._inputs[0]):
            lists = [
                nodes.EmptyTensorList(element_shape(t), -1, element_dtype=t.dtype.base)
                for t in tensors
            ]
            return constant(0, _INT32), lists

    def _new_body(self, tensors: Sequence[Tensor]) -> Any:
        body = self.body
        with body.graph.as_default():
            count = placeholder(_INT32, [], name="turns")
            before = [placeholder(_VARIANT, [], name="list") for _ in tensors]
            after = [
                nodes.TensorListPushBack(handle, tensor)
                for handle, tensor in zip(before, tensors, strict=True)
            ]
            next_count = nodes.AddV2(count, 1)
        inputs = [*body.inputs, count, *before]
        outputs = [*body.outputs, next_count, *after]
        return new_function(body.graph, f"{body.name}_forward", inputs, outputs, body)

    def _new_condition(self, further: int) -> Any:
        body = self._instance("cond")
        with body.graph.as_default():
            types = [_INT32, *[_VARIANT] * (further - 1)]
            unused = [placeholder(dtype, [], name="unused") for dtype in types]
        inputs = [*body.inputs, *unused]
        return new_function(body.graph, f"{body.name}_forward", inputs, body.outputs, body)

    def _instance(self, attr: str) -> FunctionBody:
        return called_body(self.op, self.op.node_def.attr[attr].func, attr)

    def _define_arguments(self) -> None:
        """Let the body know the shapes of the variables, and all that is known of constants."""
        for index, argument in enumerate(self.body.inputs):
            first = facts_of(self._inputs[index])
            always = TensorFacts(facts_of(self.op.outputs[index]).shape, first.held)
            facts = first if argument in self.constants else always
            self.body.graph.refiner.define(argument.op, facts)


def element_shape(tensor: Tensor) -> Any:
    """The known part of a shape, in the form that list ops take."""
    dims = tensor.shape.dims
    if dims is None:
        return constant(-1, _INT32)
    return constant([-1 if size is None else size for size in dims], _INT32)
