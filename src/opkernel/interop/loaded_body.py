"""The bodies of functions of a SavedModel, and the gradient functions that it keeps for nodes.

Source: TensorFlow python/saved_model/function_deserialization.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from opkernel.gradients import nodes, zeros_like
from opkernel.graph import Graph, Operation
from opkernel.graph.core.node import GRADIENT_OP_TYPE_ATTR
from opkernel.graph.functions.function_instance import instantiate_into
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.proto import (
    AttrValue,
    CapturedTensor,
    FunctionDef,
    NameAttrList,
    NodeDef,
    SavedConcreteFunction,
    VersionDef,
)


class LoadedBody(FuncGraph):
    """The body of a function of a SavedModel, which keeps the name and the FunctionDef that were saved."""

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        name: str,
        versions: VersionDef,
        suffix: str,
        gradients: Mapping[str, LoadedGradient],
    ) -> None:
        super().__init__(name=name, function_library=library)
        self._gradients = gradients
        self.graph_def_versions.CopyFrom(versions)
        self._suffix = suffix
        body = instantiate_into(self, name)
        self.inputs = [*body.inputs]
        self.outputs = [*body.outputs]
        self.control_outputs = [*body.targets]

    @cached_property
    def function_def(self) -> FunctionDef:
        """The function as it was saved, under a name that no other loaded model has."""
        return self._renamed(self.function_library.get_function(self.name))

    def empty(self) -> FuncGraph:
        """An empty body that may call the same functions."""
        return FuncGraph(function_library=self.function_library)

    @property
    def is_stateful(self) -> bool:
        """Whether any operation of the body is, but for the arguments."""
        return any(
            op.op_def.is_stateful and op.type not in ("_Arg", "_Retval", "Placeholder")
            for op in self.get_operations()
        )

    def add_to(self, graph: Graph) -> None:
        """Put the function, and those that it calls, into the library of a graph."""
        library = graph.function_library
        if self.function_def.signature.name in library:
            return
        for called in self._needed.values():
            renamed = self._renamed(called)
            if renamed.signature.name not in library:
                library.add_function(renamed)
        if self.function_def.signature.name not in library:
            library.add_function(self.function_def)
        for op_type, gradient in self._gradients.items():
            if gradient.function in self._needed:
                library.custom_gradients[op_type + self._suffix] = gradient.renamed(self._suffix)

    @cached_property
    def _needed(self) -> Mapping[str, FunctionDef]:
        """The function, those that it calls, and the gradients that these ask for."""
        waiting, needed = [self.name], dict[str, FunctionDef]()
        while waiting:
            call = NodeDef(name="call", op="PartitionedCall")
            call.attr["f"].func.name = waiting.pop()
            found = self.function_library.reachable_definitions([call], without=needed)
            needed.update(found)
            waiting += [
                self._gradients[op_type].function
                for function in found.values()
                for op_type in _gradient_op_types(function)
                if op_type in self._gradients
            ]
        return needed

    def _renamed(self, function: FunctionDef) -> FunctionDef:
        """A copy of a function in which all functions of the model have names of their own."""
        copy = FunctionDef()
        copy.CopyFrom(function)
        copy.signature.name += self._suffix
        for node in copy.node_def:
            if node.op in self._needed:
                node.op += self._suffix
            if _gradient_op_type(node) in self._gradients:
                node.attr[GRADIENT_OP_TYPE_ATTR].s += self._suffix.encode()
            for attr in node.attr.values():
                for reference in function_references(attr):
                    if reference.name in self._needed:
                        reference.name += self._suffix
        return copy


def function_references(attr: AttrValue) -> Sequence[NameAttrList]:
    """The functions that the value of an attr names."""
    kind = attr.WhichOneof("value")
    if kind == "func":
        return [attr.func]
    return attr.list.func if kind == "list" else ()


def _gradient_op_type(node: NodeDef) -> str:
    attr = node.attr.get(GRADIENT_OP_TYPE_ATTR)
    return "" if attr is None else attr.s.decode(errors="replace")


def _gradient_op_types(function: FunctionDef) -> set[str]:
    return {_gradient_op_type(node) for node in function.node_def} - {""}


class LoadedGradient:
    """The gradient function of nodes, as `tf.custom_gradient` made it and the SavedModel keeps it.

    Attributes:
        function: Its name.
        captured: The tensors that it takes from the function that it is a gradient in.
        output_signature: What it gives: the gradients of the inputs, None for those without one.
        saved: What the SavedModel says of the function.
    """

    def __init__(
        self,
        function: str,
        captured: Sequence[CapturedTensor],
        output_signature: Any,
        saved: SavedConcreteFunction,
    ) -> None:
        self.function = function
        self.captured = list(captured)
        self.output_signature = output_signature
        self.saved = saved

    def renamed(self, suffix: str) -> LoadedGradient:
        """The same, of functions of longer names."""
        captured = [
            CapturedTensor(name=one.name, concrete_function=one.concrete_function + suffix)
            for one in self.captured
        ]
        return LoadedGradient(self.function + suffix, captured, self.output_signature, self.saved)

    def __call__(self, op: Operation, *grads: Any) -> Any:
        """The gradients of the inputs of an operation from those of its outputs."""
        given = [
            zeros_like(output) if grad is None else grad
            for grad, output in zip(grads, op.outputs, strict=True)
        ]
        captured = [op.graph.get_tensor_by_name(one.name) for one in self.captured]
        leaves = flatten(self.output_signature)
        types = [leaf.dtype for leaf in leaves if leaf is not None]
        call = nodes.StatefulPartitionedCall(
            [*given, *captured],
            Tout=types,
            f=AttrValue(func=NameAttrList(name=self.function)),
        )
        found = iter(call if isinstance(call, list | tuple) else [call])
        results = [None if leaf is None else next(found) for leaf in leaves]
        return results[len(results) - len(op.inputs) :]
