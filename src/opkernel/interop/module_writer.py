"""write_module: a Module as a SavedModel of TF2.

Source: TensorFlow python/saved_model/save.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Container, Iterator, Mapping
from typing import Any

import opkernel
from opkernel.device.permissions import set_origin
from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.graph import ConcreteFunction, Graph
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.graph.io.signature_names import DEFAULT_SIGNATURE
from opkernel.graph.tracing.function_tracing import Function
from opkernel.interop.counted_loops import counted_loops
from opkernel.interop.loaded_body import LoadedGradient, shorten_names
from opkernel.interop.loaded_function import LoadedConcreteFunction, LoadedFunction
from opkernel.interop.loaded_objects import LoadedDict, LoadedList, LoadedObject
from opkernel.interop.saved_functions import (
    NamedFunction,
    SavedFunction,
    concrete_function,
    exported_signature,
    function_spec,
    functions_of,
)
from opkernel.interop.serving_graph import SavedResource, ServingGraph
from opkernel.interrupts import contextmanager
from opkernel.logs import logger
from opkernel.proto import FunctionDef, MetaGraphDef, SavedModel, SavedObject, SavedObjectGraph
from opkernel.training import Module, Variable
from opkernel.training.checkpoint import write_variables
from opkernel.training.module import TrackedObjects
from opkernel.training.resource import Asset, Constant, Resource
from opkernel.types import DataType

_SIGNATURES = "signatures"
_HANDLES = (DataType.DT_RESOURCE, DataType.DT_VARIANT)
_LISTS = ("variables", "trainable_variables")
"""What a loaded model lists, as those of Keras do."""
_TENSORFLOW_VERSION = "2.21.0"  # whose format it is; TensorFlow's loader compares it with others


def write_module(module: Module, directory: str, signatures: Mapping[str, Any] | Any) -> None:
    """Write a module, its functions, the values of its variables and tables, and its assets.

    Raises:
        InvalidArgumentError: a function or signature cannot be saved.
        NotFoundError, PermissionDeniedError: an asset cannot be read.
        UnimplementedError: the module holds what cannot be saved.
    """
    writer = _ModuleWriter(module)
    writer.add_functions()
    named = _named_signatures(module, signatures)
    writer.add_signatures(named)
    if not named:
        _warn_of_lost_call(module)
    saved_model = writer.finish()
    variables, assets = (os.path.join(directory, name) for name in ("variables", "assets"))
    os.mkdir(variables)
    os.mkdir(assets)
    write_variables(os.path.join(variables, "variables"), writer.tracked)
    for name, asset in writer.assets.items():
        asset.copy_to(os.path.join(assets, name))
    for meta_graph in saved_model.meta_graphs:
        set_origin(meta_graph.graph_def, b"", lambda op: False)
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
        return {DEFAULT_SIGNATURE: given}
    functions = [one for one in functions_of(module).values() if isinstance(one, Function)]
    found = [one for one in functions if one.input_signature is not None]
    return {DEFAULT_SIGNATURE: found[0]} if len(found) == 1 else {}


def _warn_of_lost_call(module: Module) -> None:
    """Warn where a module can be called and the saved model cannot."""
    saved = functions_of(module).get("__call__")
    is_lost = isinstance(saved, Function) and not saved.concrete_functions
    if not callable(module) or not (saved is None or is_lost):
        return
    why = "is a plain method" if saved is None else "has no input signature and was never called"
    logger("opkernel").warning(
        "%s.__call__ is not saved, and the model has no signature: it %s. Decorate it with "
        "@opkernel.function(input_signature=[opkernel.TensorSpec(shape, dtype)]), or name functions in "
        "opkernel.save(..., signatures=...)",
        *(type(module).__name__, why),
    )


class _ModuleWriter:
    """The messages of one SavedModel.

    Attributes:
        tracked: The objects of the module.
        assets: The files that its functions read, by the names that they are saved by.
    """

    def __init__(self, module: Module) -> None:
        self.tracked = TrackedObjects(module)
        held = {name for name, _ in self.tracked.children[0]}
        for name in _LISTS:
            if name not in held:
                self.tracked.attach(name, [*getattr(module, name)])
        self.assets: dict[str, Asset] = {}
        self._graph = SavedObjectGraph()
        self._functions: dict[str, NamedFunction] = {}
        self._saved: dict[int, NamedFunction] = {}
        self._constants: dict[Any, int] = {}
        self._signatures: dict[str, NamedFunction] = {}
        self._resources: list[SavedResource] = []
        for _ in self.tracked.objects:
            self._graph.nodes.add()
        for number, one in enumerate(self.tracked.objects):
            with self._naming(number):
                self._describe(number, one)
            for name, child in self.tracked.children[number]:
                self._graph.nodes[number].children.add(node_id=child, local_name=name)

    def add_functions(self) -> None:
        """Add the functions of all objects, as far as they were traced or have an input signature."""
        for number, one in enumerate(self.tracked.objects):
            for name, function in functions_of(one).items():
                with self._naming(number, name):
                    node = self._add_function(function)
                self._graph.nodes[number].children.add(node_id=node, local_name=name)
            if isinstance(one, Resource):
                with self._naming(number):
                    self._add_resource(number, one)

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
        meta_graph.meta_info_def.tensorflow_git_version = f"opkernel {opkernel.__version__}"
        variables = self.tracked.variables()
        constants = {self._node_name(value): value for value in self._constants}
        library = self._library()
        functions = counted_loops(dict(library))
        graph = ServingGraph(meta_graph, variables, constants, [*functions.values()])
        graph.add_resources(self._resources)
        for name, function in self._signatures.items():
            graph.add_signature(name, function)
        objects = self.tracked.to_proto().SerializeToString(deterministic=True)
        graph.finish(variables, objects)
        for name, asset in self.assets.items():
            described = meta_graph.asset_file_def.add(filename=name)
            described.tensor_info.name = f"{self._node_name(asset)}:0"
        gradients = {
            op_type: gradient
            for op_type, gradient in library.custom_gradients.items()
            if isinstance(gradient, LoadedGradient)
        }
        self._add_gradients(gradients, meta_graph)
        meta_graph.object_graph_def.CopyFrom(self._graph)
        shorten_names(meta_graph)
        return model

    def _describe(self, number: int, one: Any) -> None:
        """Write what an object is.

        Raises:
            UnimplementedError: it cannot be saved.
        """
        node = self._graph.nodes[number]
        if isinstance(one, Variable):
            node.variable.dtype = one.dtype
            node.variable.shape.CopyFrom(one.shape.to_proto())
            node.variable.trainable = one.trainable
            node.variable.name = one.name
        elif isinstance(one, Resource):
            node.resource.SetInParent()
        elif isinstance(one, Constant):
            self._constants[one] = number
            self._describe_constant(number, one)
        elif isinstance(one, LoadedObject | LoadedList | LoadedDict):
            node.user_object.CopyFrom(one.saved_kind())
        else:
            node.user_object.identifier = _kind(one)
            node.user_object.version.producer = node.user_object.version.min_consumer = 1

    def _describe_constant(self, number: int, one: Constant) -> None:
        node = self._graph.nodes[number]
        if isinstance(one, Asset):
            node.asset.asset_file_def_index = len(self.assets)
            self.assets[_unique(os.path.basename(one.path), self.assets)] = one
        else:
            node.constant.operation = self._node_name(one)

    def _node_name(self, one: Constant) -> str:
        """The name of the node of the graph that gives a constant or the path of an asset."""
        return f"constant_{self._constants[one]}"

    def _add_resource(self, number: int, one: Resource) -> None:
        """Add the functions that save and restore a resource, and note how a graph makes it."""
        for name, functions in one.saveables().items():
            save, restore = (self._add_bare(function) for function in functions)
            saveable = self._graph.nodes[number].saveable_objects[name]
            saveable.save_function, saveable.restore_function = save, restore
        makers = functions_of(one)
        create, fill = (
            None if name not in makers else self._named(concrete_function(name, makers[name]))
            for name in ("_create_resource", "_initialize")
        )
        if create is None:
            raise UnimplementedError(f"{one!r} has no function that creates it")
        keys = {self.tracked.key(number, name): name for name in one.saveables()}
        self._resources.append(SavedResource(one, create, fill, keys))

    def _add_gradients(
        self, gradients: Mapping[str, LoadedGradient], meta_graph: MetaGraphDef
    ) -> None:
        """Add the gradient functions that loaded functions ask for."""
        for op_type, gradient in gradients.items():
            meta_graph.graph_def.library.registered_gradients.add(
                gradient_func=gradient.function, registered_op_type=op_type
            )
            saved = self._graph.concrete_functions[gradient.function]
            saved.CopyFrom(gradient.saved)
            del saved.bound_inputs[:]
            for tensor in gradient.captured:
                number, node = self._new_node()
                node.captured_tensor.CopyFrom(tensor)
                saved.bound_inputs.append(number)

    @contextmanager
    def _naming(self, number: int, name: str = "") -> Iterator[None]:
        """Say in errors where an object stands in the module."""
        try:
            yield
        except OpError as error:
            path = "/".join(filter(None, [self.tracked.paths[number], name]))
            if path:
                error.add_context(f"In {path!r} of the module")
            raise

    def _new_node(self) -> tuple[int, SavedObject]:
        node = self._graph.nodes.add()
        return len(self._graph.nodes) - 1, node

    def _add_function(self, function: SavedFunction) -> int:
        if isinstance(function, ConcreteFunction):
            return self._add_bare(function)
        if isinstance(function, Function) and function.input_signature is not None:
            function.get_concrete_function()
        names = [self._named(concrete).name for concrete in function.concrete_functions]
        number, node = self._new_node()
        node.function.concrete_functions.extend(names)
        node.function.function_spec.CopyFrom(
            function.function_spec
            if isinstance(function, LoadedFunction)
            else function_spec(function)
        )
        return number

    def _add_bare(self, function: SavedFunction) -> int:
        """Add a function for one signature."""
        named = self._named(concrete_function("function", function))
        by_name = isinstance(function, LoadedConcreteFunction) and not function.input_signature[0]
        return self._add_bare_function(
            named, int(len(named.keywords) == 1) if by_name else len(named.keywords)
        )

    def _add_bare_function(self, function: NamedFunction, positional: int) -> int:
        number, node = self._new_node()
        definition = node.bare_concrete_function
        definition.concrete_function_name = function.name
        definition.argument_keywords.extend(function.keywords)
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
        if isinstance(value, Constant):
            if value not in self._constants:
                number, _ = self._new_node()
                self._constants[value] = number
                self._describe_constant(number, value)
            return self._constants[value]
        raise InvalidArgumentError(
            f"A function uses {value!r}, which the module does not hold: make it an attribute of the module"
        )

    def _library(self) -> FunctionLibraryDefinition:
        """All functions that are saved, and the gradients that they ask for."""
        graph = Graph()
        for function in self._functions.values():
            function.add_to(graph)
            if function.name not in graph.function_library:
                graph.function_library.add_function(function.function_def)
        for function_def in graph.function_library.values():
            _check_saves_resources(function_def)
        return graph.function_library


def _kind(one: Any) -> str:
    """What TensorFlow calls a Python object."""
    if isinstance(one, list | tuple):
        return "trackable_list_wrapper"
    return "trackable_dict_wrapper" if isinstance(one, Mapping) else "_generic_user_object"


def _unique(name: str, taken: Container[str]) -> str:
    """A name of a file that no other has."""
    stem, end = os.path.splitext(name)
    numbers = itertools.count(1)
    while name in taken:
        name = f"{stem}_{next(numbers)}{end}"
    return name


def _check_saves_resources(function: FunctionDef) -> None:
    for node in function.node_def:
        if node.op == "Const" and node.attr["dtype"].type in _HANDLES:
            raise UnimplementedError(
                f"Function {function.signature.name!r} uses a table, or another resource, that was made outside of it "
                f"by an op ({node.name!r}). Tables of `opkernel.lookup` can be saved, as attributes of the module"
            )
