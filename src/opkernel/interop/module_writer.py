"""write_module: a Module as a SavedModel of TF2.

Source: TensorFlow python/saved_model/save.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import ConcreteFunction
from opkernel.graph.tracing.function_tracing import Function
from opkernel.interop.counted_loops import counted_loops
from opkernel.interop.loaded_resource import LoadedConstant
from opkernel.interop.saved_functions import (
    NamedFunction,
    exported_signature,
    function_spec,
    functions_of,
)
from opkernel.interop.serving_graph import ServingGraph
from opkernel.proto import FunctionDef, SavedModel, SavedObject, SavedObjectGraph
from opkernel.training import Module, Variable
from opkernel.training.checkpoint import write_variables
from opkernel.training.tracked_objects import TrackedObjects
from opkernel.types import DataType

__all__ = ["write_module"]

_SIGNATURES = "signatures"
_HANDLES = (DataType.DT_RESOURCE, DataType.DT_VARIANT)
_LISTS = ("variables", "trainable_variables")
"""What a loaded model lists, as those of Keras do."""
_TENSORFLOW_VERSION = "2.21.0"  # whose format it is; TensorFlow's loader compares it with others
_SERVING_DEFAULT = "serving_default"


def write_module(module: Module, directory: str, signatures: Mapping[str, Any] | Any) -> None:
    """Write a module, its functions and the values of its variables.

    Raises:
        InvalidArgumentError: a function or signature cannot be saved.
        UnimplementedError: the module holds parts of a loaded model.
    """
    writer = _ModuleWriter(module)
    writer.add_functions()
    writer.add_signatures(_named_signatures(module, signatures))
    saved_model = writer.finish()
    variables = os.path.join(directory, "variables")
    os.mkdir(variables)
    os.mkdir(os.path.join(directory, "assets"))
    write_variables(os.path.join(variables, "variables"), writer.tracked)
    with open(os.path.join(directory, "saved_model.pb"), "wb") as file:
        file.write(saved_model.SerializeToString(deterministic=True))


def _named_signatures(module: Module, given: Any) -> dict[str, Any]:
    """The signatures by name; without any, that of the only function with an input signature."""
    if isinstance(given, Mapping):
        wrong = [name for name in given if not isinstance(name, str) or not name]
        if wrong:
            raise InvalidArgumentError(f"Signatures have names of text, and not {wrong[0]!r}")
        return dict(given)
    if given is not None:
        return {_SERVING_DEFAULT: given}
    functions = [one for one in functions_of(module).values() if isinstance(one, Function)]
    found = [one for one in functions if one.input_signature is not None]
    return {_SERVING_DEFAULT: found[0]} if len(found) == 1 else {}


class _ModuleWriter:
    """The messages of one SavedModel.

    Attributes:
        tracked: The objects of the module.
    """

    def __init__(self, module: Module) -> None:
        self.tracked = TrackedObjects(module)
        held = {name for name, _ in self.tracked.children[0]}
        for name in _LISTS:
            if name not in held:
                self.tracked.attach(name, [*getattr(module, name)])
        self._graph = SavedObjectGraph()
        self._functions: dict[str, NamedFunction] = {}
        self._saved: dict[int, NamedFunction] = {}
        self._constants: dict[Any, int] = {}
        self._signatures: dict[str, NamedFunction] = {}
        for number, one in enumerate(self.tracked.objects):
            self._describe(one, self._graph.nodes.add())
            for name, child in self.tracked.children[number]:
                self._graph.nodes[number].children.add(node_id=child, local_name=name)

    def add_functions(self) -> None:
        """Add the functions of all objects, as far as they were traced or have an input signature."""
        for number, one in enumerate(self.tracked.objects):
            for name, function in functions_of(one).items():
                node = self._add_function(function)
                self._graph.nodes[number].children.add(node_id=node, local_name=name)

    def add_signatures(self, signatures: Mapping[str, Any]) -> None:
        """Add the signatures, below the root under the name `signatures`.

        Raises:
            InvalidArgumentError: the module has another attribute of that name, or a function does not suit.
        """
        if any(child.local_name == _SIGNATURES for child in self._graph.nodes[0].children):
            raise InvalidArgumentError(
                f"The attribute {_SIGNATURES!r} of the module has the name under which signatures are saved: rename it"
            )
        number, node = self._new_node()
        node.user_object.identifier = "signature_map"
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
        self._graph.nodes[0].children.add(node_id=number, local_name=_SIGNATURES)
        for name, given in signatures.items():
            function = self._named(exported_signature(name, given))
            self._signatures[name] = function
            child = self._add_bare_function(function, int(len(function.arguments) == 1))
            self._graph.nodes[number].children.add(node_id=child, local_name=name)

    def finish(self) -> SavedModel:
        """The SavedModel."""
        model = SavedModel(saved_model_schema_version=1)
        meta_graph = model.meta_graphs.add()
        meta_graph.meta_info_def.tags.append("serve")
        meta_graph.meta_info_def.tensorflow_version = _TENSORFLOW_VERSION
        variables = self.tracked.variables()
        constants = {f"constant_{number}": value for value, number in self._constants.items()}
        graph = ServingGraph(meta_graph, variables, constants, [*self._library().values()])
        for name, function in self._signatures.items():
            graph.add_signature(name, function)
        objects = self.tracked.to_proto().SerializeToString(deterministic=True)
        graph.finish(variables, objects)
        meta_graph.object_graph_def.CopyFrom(self._graph)
        return model

    def _describe(self, one: Any, node: SavedObject) -> None:
        if isinstance(one, Variable):
            node.variable.dtype = one.dtype
            node.variable.shape.CopyFrom(one.shape.to_proto())
            node.variable.trainable = one.trainable
            node.variable.name = one.name
            return
        if hasattr(one, "_source"):
            raise UnimplementedError(
                f"{one!r} is a part of a loaded model, and cannot be saved as a part of another one: save the "
                f"loaded model itself"
            )
        kind = "_generic_user_object"
        if isinstance(one, list | tuple):
            kind = "trackable_list_wrapper"
        elif isinstance(one, Mapping):
            kind = "trackable_dict_wrapper"
        node.user_object.identifier = kind
        node.user_object.version.producer = node.user_object.version.min_consumer = 1

    def _new_node(self) -> tuple[int, SavedObject]:
        node = self._graph.nodes.add()
        return len(self._graph.nodes) - 1, node

    def _add_function(self, function: Function[..., Any] | ConcreteFunction) -> int:
        if isinstance(function, ConcreteFunction):
            named = self._named(function)
            return self._add_bare_function(named, len(named.arguments))
        if function.input_signature is not None:
            function.get_concrete_function()
        names = [self._named(concrete).name for concrete in function.concrete_functions]
        number, node = self._new_node()
        node.function.concrete_functions.extend(names)
        node.function.function_spec.CopyFrom(function_spec(function.python_function))
        return number

    def _add_bare_function(self, function: NamedFunction, positional: int) -> int:
        number, node = self._new_node()
        definition = node.bare_concrete_function
        definition.concrete_function_name = function.name
        definition.argument_keywords.extend([tensor.op.name for tensor in function.arguments])
        definition.allowed_positional_arguments = positional
        return number

    def _named(self, concrete: Any) -> NamedFunction:
        found = self._saved.get(id(concrete))
        if found is not None:
            return found
        function = self._saved[id(concrete)] = NamedFunction(concrete)
        self._functions[function.name] = function
        saved = self._graph.concrete_functions[function.name]
        saved.bound_inputs.extend([self._number_of(value) for value in function.captured])
        saved.canonicalized_input_signature.CopyFrom(function.input_signature())
        saved.output_signature.CopyFrom(function.output_signature())
        return function

    def _number_of(self, value: Any) -> int:
        """The number of what a function takes from outside.

        Raises:
            InvalidArgumentError: the module does not hold it.
        """
        number = self.tracked.number(value)
        if number is not None:
            return number
        if isinstance(value, LoadedConstant):
            if value not in self._constants:
                number, node = self._new_node()
                node.constant.operation = f"constant_{number}"
                self._constants[value] = number
            return self._constants[value]
        raise InvalidArgumentError(
            f"A function uses {value!r}, which the module does not hold: make it an attribute of the module"
        )

    def _library(self) -> dict[str, FunctionDef]:
        """All functions that are saved, by name."""
        found: dict[str, FunctionDef] = {}
        for name, function in self._functions.items():
            found |= dict(function.concrete.graph.function_library)
            found[name] = function.function_def
        for function_def in found.values():
            _check_saves_resources(function_def)
        return counted_loops(found)


def _check_saves_resources(function: FunctionDef) -> None:
    for node in function.node_def:
        if node.op == "Const" and node.attr["dtype"].type in _HANDLES:
            raise UnimplementedError(
                f"Function {function.signature.name!r} uses a table, or another resource, that was made outside of it "
                f"({node.name!r}): of what a module holds, variables alone can be saved"
            )
