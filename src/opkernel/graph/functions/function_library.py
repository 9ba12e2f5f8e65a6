"""FunctionLibraryDefinition: functions by name, in front of a registry of ops.

A function is an op too: its signature is its OpDef. Source: TensorFlow core/framework/function.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.graph.core.structural_ops import STRUCTURAL_OPS
from opkernel.messages import did_you_mean
from opkernel.opdef import (
    OpRegistrationData,
    OpRegistry,
    OpTraits,
    global_op_registry,
    unknown_shape,
)
from opkernel.opdef.core.op_traits import NO_TRAITS
from opkernel.proto import (
    AttrValue,
    FunctionDef,
    FunctionDefLibrary,
    GradientDef,
    NameAttrList,
    NodeDef,
    OpDef,
)

GRADIENT_OP = "SymbolicGradient"
"""The op that stands for the gradient of the function in its attr `f`."""


class FunctionLibraryDefinition(Mapping[str, FunctionDef]):
    """The functions of a graph, by name. A library is equal to itself alone.

    Attributes:
        custom_gradients: gradient functions of nodes, as `register_gradient` takes them, by what their attr
            `_gradient_op_type` says. They count in the graphs of this library, before those that are
            registered.
        kept: objects that nodes of the graphs name, and that are to live as long as these.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(
        self, op_registry: OpRegistry | None = None, library: FunctionDefLibrary | None = None
    ) -> None:
        self.op_registry = global_op_registry() if op_registry is None else op_registry
        self._functions: dict[str, FunctionDef] = {}
        self._registrations: dict[str, OpRegistrationData] = {}
        self._gradients: dict[str, str] = {}
        self.custom_gradients: dict[str, Callable[..., Any]] = {}
        self.kept: dict[object, None] = {}
        if library is not None:
            self.add_library(library)

    def __getitem__(self, name: str) -> FunctionDef:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:  # asked of each node, mostly in vain
        return name in self._functions

    def get_function(self, name: str) -> FunctionDef:
        """The function of a name.

        Raises:
            NotFoundError: there is none.
        """
        function = self._functions.get(name)
        if function is None:
            raise NotFoundError(f"Function {name} is not defined{did_you_mean(name, self)}.")
        return function

    def look_up(self, op_type: str) -> OpRegistrationData:
        """The op of a name: a function's signature, or else the registry's.

        The ops that graphs themselves are made of belong to every registry.

        Raises:
            NotFoundError: there is none.
        """
        registration = self._registrations.get(op_type)
        if registration is not None:
            return registration
        if op_type in STRUCTURAL_OPS:
            return global_op_registry().look_up(op_type)
        return self.op_registry.look_up(op_type)

    def traits(self, op_type: str) -> OpTraits:
        """The traits of an op, none for a function; loads nothing."""
        return NO_TRAITS if op_type in self else self.op_registry.traits(op_type)

    def may_open_files(self, op_type: str) -> bool:
        """Whether kernels of an op may open files; the nodes of a function do so for themselves."""
        return op_type not in self and self.op_registry.may_open_files(op_type)

    def look_up_op_def(self, name: str) -> OpDef:
        """The OpDef of an op or function; raises as `look_up` does."""
        return self.look_up(name).op_def

    def add_function(self, function: FunctionDef) -> None:
        """Add a function; to add an equal one again changes nothing.

        Raises:
            InvalidArgumentError: another function or an op has its name.
        """
        name = function.signature.name
        existing = self._functions.get(name)
        if existing is not None:
            if not function_defs_equal(existing, function):
                raise InvalidArgumentError(
                    f"Cannot add function '{name}' because a different function with the same "
                    f"name already exists."
                )
            return
        if self.op_registry.knows(name):
            raise InvalidArgumentError(
                f"Cannot add function '{name}' because an op with the same name already exists."
            )
        own = FunctionDef.FromString(function.SerializeToString())
        self._functions[name] = own
        self._registrations[name] = OpRegistrationData(
            op_def=own.signature, shape_inference_fn=unknown_shape, is_function_op=True
        )

    def remove_function(self, name: str) -> None:
        """Take a function out; its gradient stays recorded.

        Raises:
            InvalidArgumentError: there is no such function.
        """
        if name not in self._functions:
            raise InvalidArgumentError(f"Tried to remove non-existent function '{name}'.")
        del self._functions[name], self._registrations[name]

    def clear(self) -> None:
        """Take all functions out; gradients stay recorded."""
        self._functions.clear()
        self._registrations.clear()

    def add_gradient(self, function: str, gradient: str) -> None:
        """Record which function computes the gradient of another.

        Raises:
            InvalidArgumentError: it has another gradient function.
        """
        existing = self._gradients.setdefault(function, gradient)
        if existing != gradient:
            raise InvalidArgumentError(
                f"Cannot assign gradient function '{gradient}' to '{function}' because it "
                f"already has gradient function '{existing}'"
            )

    def find_gradient(self, function: str) -> str:
        """The name of a function's gradient function; empty if it has none."""
        return self._gradients.get(function, "")

    def add_library(self, library: FunctionDefLibrary) -> None:
        """Add all functions and gradients of a library, or on an error none of them.

        Raises:
            InvalidArgumentError: as `add_function` and `add_gradient` do.
        """
        before = self._functions.copy(), self._registrations.copy(), self._gradients.copy()
        try:
            for function in library.function:
                check_time("importing the function", function.signature.name)
                self.add_function(function)
            for gradient in library.gradient:
                self.add_gradient(gradient.function_name, gradient.gradient_func)
        except OpError:
            self._functions, self._registrations, self._gradients = before
            raise

    def add_missing(self, other: FunctionLibraryDefinition) -> None:
        """Add the functions of another library whose names this one lacks."""
        for name in other.keys() - self.keys():
            self.add_function(other[name])
        self.kept |= other.kept

    def copy(self) -> FunctionLibraryDefinition:
        """A library with the same functions."""
        return FunctionLibraryDefinition(self.op_registry)._take(self)

    def joined_with(self, other: FunctionLibraryDefinition) -> FunctionLibraryDefinition:
        """A library with the functions of both. Where both have a name, the other library's function counts."""
        return self.copy()._take(other)

    def _take(self, other: FunctionLibraryDefinition) -> FunctionLibraryDefinition:
        """Hold what another library holds as well; gives itself."""
        self._functions |= other._functions
        self._registrations |= other._registrations
        self._gradients |= other._gradients
        self.custom_gradients |= other.custom_gradients
        self.kept |= other.kept
        return self

    def adopt(self, other: FunctionLibraryDefinition) -> None:
        """Hold what another library holds."""
        self._functions = other._functions
        self._registrations = other._registrations
        self._gradients = other._gradients
        self.custom_gradients = other.custom_gradients
        self.kept = other.kept

    def to_proto(self) -> FunctionDefLibrary:
        """The library as a message, ordered by name."""
        return FunctionDefLibrary(
            function=[self._functions[name] for name in sorted(self._functions)],
            gradient=[
                GradientDef(function_name=name, gradient_func=self._gradients[name])
                for name in sorted(self._gradients)
            ],
        )

    def get_attr(self, node: NodeDef, attr: str) -> AttrValue | None:
        """An attr of the function that a node calls, such as `_noinline`; None if it has none.

        A SymbolicGradient node has the attrs of the gradient function of `f`, or else of `f`.
        """
        name = node.op
        if name == GRADIENT_OP and "f" in node.attr:
            forward = node.attr["f"].func.name
            name = self.find_gradient(forward) or forward
        function = self._functions.get(name)
        return function.attr[attr] if function is not None and attr in function.attr else None

    def ops_reached(self, nodes: Iterable[NodeDef]) -> set[str]:
        """The ops of the nodes of all functions that nodes need."""
        reached = self.reachable_definitions(nodes).values()
        return {node.op for function in reached for node in function.node_def}

    def reachable_definitions(
        self, nodes: Iterable[NodeDef], without: Container[str] = ()
    ) -> FunctionLibraryDefinition:
        """The part of the library that nodes need: functions that are called or named in attrs, and their gradients.

        A function that implements an interface brings all that implement it. Functions that are
        `without` are left out, with what they alone need.
        """
        reached = FunctionLibraryDefinition(self.op_registry)
        implementations: dict[str, list[str]] | None = None
        waiting = [name for node in nodes for name in functions_named_by(node)]
        while waiting:
            name = waiting.pop()
            gradient = self._gradients.get(name)
            if gradient is not None and name not in reached._gradients:
                reached._gradients[name] = gradient
                waiting.append(gradient)
            function = self._functions.get(name)
            if function is None or name in reached or name in without:
                continue
            reached._functions[name] = function
            reached._registrations[name] = self._registrations[name]
            if interface := _interface(function):
                if implementations is None:
                    implementations = self._by_interface()
                waiting += implementations[interface]
            for node in function.node_def:
                waiting += functions_named_by(node)
        return reached

    def _by_interface(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for name, function in self._functions.items():
            if interface := _interface(function):
                groups.setdefault(interface, []).append(name)
        return groups


def _interface(function: FunctionDef) -> str:
    if "api_implements" not in function.attr:
        return ""
    return function.attr["api_implements"].s.decode("utf-8", "surrogateescape")


def known_op(look_up: Callable[[str], OpRegistrationData], op_type: str) -> OpDef | None:
    """The op of a name; None where there is none."""
    try:
        return look_up(op_type).op_def
    except NotFoundError:
        return None


def functions_of(value: AttrValue) -> Sequence[NameAttrList]:
    """The function that an attr names, or the functions of a list."""
    return [value.func] if value.HasField("func") else value.list.func


def functions_named_by(node: NodeDef) -> list[str]:
    """The op of a node, and the functions that its attrs name, and the attrs of these functions."""
    names, waiting = [node.op], [*node.attr.values()]
    while waiting:
        for function in functions_of(waiting.pop()):
            names.append(function.name)
            waiting += function.attr.values()
    return names


def function_defs_equal(a: FunctionDef, b: FunctionDef) -> bool:
    """Whether two functions are the same; the order of their nodes does not matter."""
    if a == b:  # by far the quickest to tell
        return True
    if len(a.node_def) != len(b.node_def) or a.signature != b.signature:
        return False
    if any(dict(getattr(a, m)) != dict(getattr(b, m)) for m in ("ret", "control_ret", "attr")):
        return False
    nodes = {node.name: node for node in b.node_def}
    return all(nodes.get(node.name) == node for node in a.node_def)


def function_def_hash(function: FunctionDef) -> int:
    """A number of 64 bits that equal functions share; the order of their nodes does not matter."""
    from opkernel.opdef.core.fingerprint import fingerprint64  # few functions are hashed

    sorted_nodes = FunctionDef()
    sorted_nodes.CopyFrom(function)
    del sorted_nodes.node_def[:]
    sorted_nodes.node_def.extend(sorted(function.node_def, key=lambda node: node.name))
    for ignored in ("arg_attr", "resource_arg_unique_id"):
        sorted_nodes.ClearField(ignored)
    return fingerprint64(sorted_nodes.SerializeToString(deterministic=True))
