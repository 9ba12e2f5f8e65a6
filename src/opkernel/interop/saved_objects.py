"""SavedObjects: makes the objects, functions and variables of a SavedModel of TF2 when they are asked for.

Source: TensorFlow python/saved_model/load.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from opkernel.device.permissions import Permissions, mark_nodes, mark_of
from opkernel.errors import DataLossError, OpError, UnimplementedError
from opkernel.graph.core.captured_value import CapturedValue
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.interop.loaded_body import LoadedBody, LoadedGradient
from opkernel.interop.loaded_function import (
    LoadedConcreteFunction,
    LoadedFunction,
    is_signature,
    python_signature,
)
from opkernel.interop.loaded_objects import (
    Again,
    LoadedConstant,
    LoadedDict,
    LoadedList,
    LoadedObject,
    LoadedResource,
)
from opkernel.interop.saved_model_files import SavedValues
from opkernel.interop.structured_value import decoded
from opkernel.opdef import global_op_registry
from opkernel.proto import (
    MetaGraphDef,
    NodeDef,
    SavedObject,
    SavedUserObject,
    StructuredValue,
    TensorShapeProto,
)
from opkernel.training import Variable
from opkernel.training.resource import PARTS_OF_TABLE, Asset, Constant
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto

if TYPE_CHECKING:
    from opkernel.interop.saved_model_files import SavedModelFiles

_loads = itertools.count(1)
_LISTS = ("trackable_list_wrapper", "trackable_tuple_wrapper")
_DICTS = ("trackable_dict_wrapper",)


class SavedObjects:
    """The objects of a MetaGraph, by number; number 0 is the root.

    Attributes:
        root: The object of number 0.

    Raises:
        DataLossError: an object refers to one that is not there.
    """

    def __init__(
        self,
        files: SavedModelFiles,
        meta_graph: MetaGraphDef,
        permissions: Permissions,
        jit: str = "",
    ) -> None:
        self.files = files
        self.meta_graph = meta_graph
        self.nodes: Sequence[SavedObject] = meta_graph.object_graph_def.nodes
        self.permissions = permissions.reading_own(files.directory)
        self._jit = jit
        self._suffix = f"_load_{next(_loads)}"
        self._lock = threading.RLock()
        self._values = SavedValues(files, self.nodes, self.children, self.permissions)
        self.root: Any = None
        self._objects: dict[int, Any] = {}
        self._children: dict[int, dict[str, int]] = {}
        self._functions: dict[str, LoadedConcreteFunction] = {}
        self._separated: set[str] = set()
        self._shapes: dict[bytes, PartialTensorShape] = {}
        self._check()

    def _check(self) -> None:
        count = len(self.nodes)
        for number, node in enumerate(self.nodes):
            references = [(child.local_name, child.node_id) for child in node.children]
            references += [(s.slot_name, s.slot_variable_node_id) for s in node.slot_variables]
            for name, other in references:
                if not 0 <= other < count:
                    raise self._damage(
                        f"object {number} refers to {other} as {name!r}, and there are {count} objects"
                    )
        for name, function in self.meta_graph.object_graph_def.concrete_functions.items():
            for number in function.bound_inputs:
                if not 0 <= number < count:
                    raise self._damage(f"function {name!r} refers to object {number} of {count}")

    def children(self, number: int) -> Mapping[str, int]:
        """The numbers of the children of an object, by name."""
        found = self._children.get(number)
        if found is None:
            references = self.nodes[number].children
            found = {str(child.local_name): int(child.node_id) for child in references}
            self._children[number] = found
        return found

    def get(self, number: int) -> Any:
        """The object of a number, made when it is first asked for."""
        if number == 0:
            return self.root
        found = self._objects.get(number)
        if found is None:
            with self._lock:
                found = self._objects.get(number)
                if found is None:
                    found = self._objects[number] = self._made(number)
        return found

    @property
    def variables(self) -> list[Variable]:
        """All variables, in the order in which they were saved."""
        return [
            self.get(number)
            for number, node in enumerate(self.nodes)
            if node.WhichOneof("kind") == "variable"
        ]

    def what(self, name: str) -> str:
        """What messages call a function."""
        return f"function {name!r} of {self.files.directory}"

    def kind(self, number: int) -> SavedUserObject:
        """What the model says of an object that is none of TensorFlow's.

        Raises:
            UnimplementedError: it has values that functions of its own save.
        """
        own = [*self.nodes[number].saveable_objects]
        if own:
            raise UnimplementedError(
                f"An object of {self.files.directory} saves {own[0]!r} by functions of its own, and can be saved "
                f"only with the whole of that model"
            )
        kind = SavedUserObject(identifier="_generic_user_object")
        kind.version.producer = kind.version.min_consumer = 1
        saved = self.nodes[number]
        return saved.user_object if saved.WhichOneof("kind") == "user_object" else kind

    # Objects.

    def _made(self, number: int) -> Any:
        node = self.nodes[number]
        make = self._makers.get(node.WhichOneof("kind") or "")
        return LoadedObject(self, number, "object") if make is None else make(number, node)

    @cached_property
    def _makers(self) -> dict[str, Callable[[int, SavedObject], Any]]:
        return {
            "user_object": self._user_object,
            "variable": self._variable,
            "function": self._function,
            "bare_concrete_function": self._bare_function,
            "constant": self._constant,
            "asset": self._asset,
            "resource": self._resource,
        }

    def _user_object(self, number: int, node: SavedObject) -> Any:
        kind = node.user_object.identifier
        if kind in _LISTS:
            return LoadedList(self, number)
        return LoadedDict(self, number) if kind in _DICTS else LoadedObject(self, number, kind)

    def _variable(self, number: int, node: SavedObject) -> Variable:
        saved = node.variable
        try:
            dtype, shape = DataType(saved.dtype), self._shape(saved.shape)
        except (OpError, ValueError) as error:
            raise self._damage(f"variable {saved.name!r}: {error}") from error
        return Variable.of_handle(
            None,
            dtype=dtype,
            shape=shape,
            name=saved.name or "Variable",
            trainable=saved.trainable,
            initializer=lambda: self._values.variable(number, saved.name, dtype, shape),
        )

    def _shape(self, proto: TensorShapeProto) -> PartialTensorShape:
        """A shape, of which many variables have the same."""
        key = proto.SerializeToString()
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = PartialTensorShape.from_proto(proto)
        return found

    def _constant(self, number: int, node: SavedObject) -> LoadedConstant:
        name = node.constant.operation
        value = self._constants.get(name)
        if value is None:
            raise self._damage(f"object {number} is the constant {name!r}, which the graph lacks")
        try:
            return LoadedConstant(name, tensor_from_proto(value))
        except OpError as error:
            raise self._damage(f"constant {name!r}: {error.message}") from error

    @cached_property
    def _constants(self) -> dict[str, Any]:
        nodes = self.meta_graph.graph_def.node
        return {node.name: node.attr["value"].tensor for node in nodes if node.op == "Const"}

    def _asset(self, number: int, node: SavedObject) -> Asset:
        files, index = self.meta_graph.asset_file_def, node.asset.asset_file_def_index
        if not 0 <= index < len(files):
            raise self._damage(f"object {number} is asset {index} of {len(files)}")
        return Asset(self.files.asset_path(files[index].filename), self.permissions)

    def _resource(self, number: int, node: SavedObject) -> LoadedResource:
        children = self.children(number)
        if "_create_resource" not in children:
            raise self._damage(f"object {number} is a resource that no function creates")

        def create() -> Any:
            return self._call(children["_create_resource"])

        def fill() -> None:
            if "_initialize" in children:
                self._call(children["_initialize"])
            self._restore_resource(number, node)

        name = f"Resource {number} of {self.files.path}"
        return LoadedResource(self, number, name, create, fill)

    def type_of_resource(self, number: int) -> DataType:
        """The type of the tensor that its function gives for a resource: a variant is a dataset."""
        create = self.nodes[self.children(number)["_create_resource"]]
        names = [*create.function.concrete_functions]
        results = [tensor for name in names for tensor in self.body(name).outputs]
        return results[0].dtype if results else DataType.DT_RESOURCE

    # Values of the checkpoint.

    def current_values(self) -> dict[str, Any]:
        """What the checkpoint is to hold now: variables that were used, and tables, by their keys."""
        found: dict[str, Any] = {}
        for number, one in [*self._objects.items()]:
            place = self._values.key(number) if isinstance(one, Variable) else None
            if place is not None:
                found[place[1]] = one
            if isinstance(one, LoadedResource):
                found |= self._values_of_table(number, one)
        return found

    def _values_of_table(self, number: int, table: LoadedResource) -> dict[str, Any]:
        for name in self.nodes[number].saveable_objects:
            place = self._values.key(number, name)
            if place is not None and table.is_ready:
                parts = table.saved_parts(name)
                return {f"{place[1]}{part}": value for part, value in parts.items()}
        return {}

    def types_of_table(self, number: int, attribute: str) -> dict[str, DataType]:
        """The types of keys and values of a table, as ops name them.

        Raises:
            DataLossError: the checkpoint lacks them.
        """
        place = self._values.key(number, attribute)
        if place is None:
            raise self._damage(f"the content of the table {number} was not saved")
        reader, key = place
        types = [reader.dtype(f"{key}{part}") for part in PARTS_OF_TABLE]
        return dict(zip(("Tkeys", "Tvalues"), types, strict=True))

    def _restore_resource(self, number: int, node: SavedObject) -> None:
        """Give a table what the checkpoint has of it."""
        for name, saved in node.saveable_objects.items():
            if not 0 <= saved.restore_function < len(self.nodes):
                raise self._damage(f"object {number} refers to {saved.restore_function}")
            found = self._values.key(number, name)
            if found is not None:
                reader, key = found
                parts = [reader.get(f"{key}{part}") for part in PARTS_OF_TABLE]
                self._call(saved.restore_function, *parts)

    def _call(self, number: int, *args: Any) -> Any:
        """Call a function that an object is made with.

        Raises:
            DataLossError: it is no function, or one of other arguments.
        """
        function = self.get(number)
        if not isinstance(function, LoadedFunction | LoadedConcreteFunction):
            raise self._damage(f"object {number} is no function")
        try:
            return function(*args)
        except (TypeError, ValueError) as error:
            if isinstance(error, OpError):
                raise
            raise self._damage(f"{function!r}: {error}") from error

    # Functions.

    @cached_property
    def library(self) -> FunctionLibraryDefinition:
        """The functions of the model; their nodes may do what the model may."""
        library = FunctionLibraryDefinition(global_op_registry())
        library.add_library(self.meta_graph.graph_def.library)
        nodes = chain.from_iterable(function.node_def for function in library.values())
        mark_nodes(nodes, mark_of(self.permissions), library.may_open_files)
        return library

    def body(self, name: str) -> LoadedBody:
        """The body of a function.

        Raises:
            DataLossError: the model lacks it.
        """
        with self._lock:
            if name not in self.library:
                raise self._damage(f"there is no function {name!r}")
            self._separate_resources(name)
            versions = self.meta_graph.graph_def.versions
            body = LoadedBody(self.library, name, versions, self._suffix, self._gradients)
            body.jit = self._jit
            return body

    @cached_property
    def _gradients(self) -> dict[str, LoadedGradient]:
        """The gradient functions that nodes ask for, by what they ask for."""
        known = self.meta_graph.object_graph_def.concrete_functions
        found = {}
        for registered in self.meta_graph.graph_def.library.registered_gradients:
            name = registered.gradient_func
            if name not in known:
                raise self._damage(f"there is no gradient function {name!r}")
            captured = [self.nodes[number].captured_tensor for number in known[name].bound_inputs]
            signature = self._decoded(name, known[name].output_signature)
            found[registered.registered_op_type] = LoadedGradient(
                name, captured, signature, known[name]
            )
        return found

    def _separate_resources(self, name: str) -> None:
        """Give the resources that functions create names that no other load of the model has.

        It concerns the function of a name, and those that it calls.
        """
        call = NodeDef(name="call", op="PartitionedCall")
        call.attr["f"].func.name = name
        suffix = self._suffix.encode()
        reached = list(self.library.reachable_definitions([call], without=self._separated))
        for called in reached:
            for node in self.library.get_function(called).node_def:
                if "shared_name" in node.attr:
                    own = node.attr["shared_name"].s or node.name.encode()
                    # An interrupted call has given some nodes their names.
                    node.attr["shared_name"].s = own.removesuffix(suffix) + suffix
        self._separated.update(reached)

    def captured(self, name: str) -> list[CapturedValue]:
        """What a function takes after its arguments.

        Raises:
            DataLossError: one of them is nothing that a function can take.
        """
        found: dict[Any, None] = {}
        for number in self.meta_graph.object_graph_def.concrete_functions[name].bound_inputs:
            one = self.get(number)
            if not isinstance(one, Variable | LoadedResource | Constant):
                raise self._damage(f"{self.what(name)} takes object {number}, which is no tensor")
            found[Again(one) if one in found else one] = None
        return [*found]

    def concrete(self, name: str, keywords: Sequence[str] = ()) -> LoadedConcreteFunction:
        """A function for one signature.

        Raises:
            DataLossError: the model says nothing of it, or what it says is damaged.
        """
        with self._lock:
            found = self._functions.get(name)
            if found is None:
                known = self.meta_graph.object_graph_def.concrete_functions
                if name not in known:
                    raise self._damage(f"there is no function {name!r}")
                proto = known[name]
                taken = self._decoded(name, proto.canonicalized_input_signature)
                if not is_signature(taken):
                    raise self._damage(f"{self.what(name)} has no arguments by place and by name")
                found = self._functions[name] = LoadedConcreteFunction(
                    self,
                    name,
                    taken,
                    self._decoded(name, proto.output_signature),
                )
            found.keywords = keywords or found.keywords
            return found

    def _function(self, number: int, node: SavedObject) -> LoadedFunction:
        saved = node.function
        functions = [self.concrete(name) for name in saved.concrete_functions]
        has_spec = saved.function_spec.fullargspec.WhichOneof("kind") is not None
        name = self._name_of(number)
        spec = self._decoded(name, saved.function_spec.fullargspec) if has_spec else None
        try:
            signature = python_signature(spec, saved.function_spec.is_method)
        except DataLossError as error:
            raise self._damage(f"function {name!r}: {error.message}") from error
        return LoadedFunction(name, functions, signature, saved.function_spec)

    def _decoded(self, name: str, value: StructuredValue) -> Any:
        """What the model says of a function.

        Raises:
            DataLossError: it is damaged.
            UnimplementedError: it has values of an unknown class.
        """
        try:
            return decoded(value)
        except OpError as error:
            error.add_context(f"In {self.what(name)}")
            raise

    def _bare_function(self, number: int, node: SavedObject) -> LoadedConcreteFunction:
        saved = node.bare_concrete_function
        return self.concrete(saved.concrete_function_name, [*saved.argument_keywords])

    def _name_of(self, number: int) -> str:
        saved = self.nodes[number].function.concrete_functions
        return saved[0].removeprefix("__inference_").rpartition("_")[0] if saved else "function"

    def _damage(self, fact: str) -> DataLossError:
        return DataLossError(f"{self.files.path} is damaged: {fact}")
