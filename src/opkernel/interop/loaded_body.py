"""The bodies of functions of a SavedModel, the gradient functions that it keeps for nodes, and the short names of functions.

A model that is saved again has its functions under the names that they had before they were loaded (`shorten_names`).
Functions of different loads may have had the same name; all but one of them get a number then.

Source: TensorFlow python/saved_model/function_deserialization.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from opkernel.gradients import nodes, zeros_like
from opkernel.graph import Graph, Operation
from opkernel.graph.core.node import GRADIENT_OP_TYPE_ATTR, copied
from opkernel.graph.core.tensor_name import free_name
from opkernel.graph.functions.function_body import instantiate_into
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import flatten
from opkernel.proto import (
    AttrValue,
    CapturedTensor,
    FunctionDef,
    MetaGraphDef,
    NameAttrList,
    NodeDef,
    SavedConcreteFunction,
    VersionDef,
)
from opkernel.records import dataclass, replace


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
        copy = copied(function)
        copy.signature.name += self._suffix
        for node in copy.node_def:
            rename_functions(node, *self._new_names)
        return copy

    @cached_property
    def _new_names(self) -> tuple[dict[str, str], dict[str, str]]:
        """The names of functions, and what gradients are registered for, with those that no other model has."""
        functions, op_types = (
            {name: name + self._suffix for name in names}
            for names in (self._needed, self._gradients)
        )
        return functions, op_types


def rename_functions(
    node: NodeDef, functions: Mapping[str, str], op_types: Mapping[str, str]
) -> None:
    """Give the functions and the gradients that a node asks for other names."""
    node.op = functions.get(node.op, node.op)
    for attr in node.attr.values():
        kind = attr.WhichOneof("value")
        called = [attr.func] if kind == "func" else attr.list.func if kind == "list" else ()
        for reference in called:
            reference.name = functions.get(reference.name, reference.name)
    op_type = _gradient_op_type(node)
    if op_type in op_types:
        node.attr[GRADIENT_OP_TYPE_ATTR].s = op_types[op_type].encode()


def _gradient_op_type(node: NodeDef) -> str:
    attr = node.attr.get(GRADIENT_OP_TYPE_ATTR)
    return "" if attr is None else attr.s.decode(errors="replace")


def _gradient_op_types(function: FunctionDef) -> set[str]:
    return {_gradient_op_type(node) for node in function.node_def} - {""}


@dataclass(frozen=True, eq=False)
class LoadedGradient:
    """The gradient function of nodes, as `tf.custom_gradient` made it and the SavedModel keeps it.

    Attributes:
        function: Its name.
        captured: The tensors that it takes from the function that it is a gradient in.
        output_signature: What it gives: the gradients of the inputs, None for those without one.
        saved: What the SavedModel says of the function.
    """

    function: str
    captured: Sequence[CapturedTensor]
    output_signature: Any
    saved: SavedConcreteFunction

    def renamed(self, suffix: str) -> LoadedGradient:
        """The same, of functions of longer names."""
        captured = [
            CapturedTensor(name=one.name, concrete_function=one.concrete_function + suffix)
            for one in self.captured
        ]
        return replace(self, function=self.function + suffix, captured=captured)

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


_LOADED = re.compile(r"(_load_\d+)+$")


def shorten_names(meta_graph: MetaGraphDef) -> None:
    """Rename functions, and what gradients are registered for, wherever a MetaGraph names them."""
    library, objects = meta_graph.graph_def.library, meta_graph.object_graph_def
    functions = _short([function.signature.name for function in library.function])
    op_types = _short([one.registered_op_type for one in library.registered_gradients])
    if not functions and not op_types:
        return
    nodes = [*meta_graph.graph_def.node]
    for function in library.function:
        function.signature.name = functions.get(function.signature.name, function.signature.name)
        nodes += function.node_def
    for node in nodes:
        rename_functions(node, functions, op_types)
    for one in library.registered_gradients:
        one.gradient_func = functions.get(one.gradient_func, one.gradient_func)
        one.registered_op_type = op_types.get(one.registered_op_type, one.registered_op_type)
    for old, new in functions.items():
        if old in objects.concrete_functions:
            objects.concrete_functions[new].CopyFrom(objects.concrete_functions[old])
            del objects.concrete_functions[old]
    for saved in objects.nodes:
        _rename_in_object(saved, functions)


def _short(names: Iterable[str]) -> dict[str, str]:
    """The names without what loading added, for those that it added to."""
    taken, found = {*names}, dict[str, str]()
    for name in sorted(taken):
        if _LOADED.search(name):
            found[name] = free_name(_LOADED.sub("", name), taken)
            taken.add(found[name])
    return found


def _rename_in_object(saved: Any, functions: Mapping[str, str]) -> None:
    kind = saved.WhichOneof("kind")
    if kind == "function":
        names = [functions.get(name, name) for name in saved.function.concrete_functions]
        saved.function.concrete_functions[:] = names
    elif kind == "bare_concrete_function":
        bare = saved.bare_concrete_function
        bare.concrete_function_name = functions.get(
            bare.concrete_function_name, bare.concrete_function_name
        )
    elif kind == "captured_tensor":
        tensor = saved.captured_tensor
        tensor.concrete_function = functions.get(tensor.concrete_function, tensor.concrete_function)
