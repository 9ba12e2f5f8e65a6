"""Functions of a loaded SavedModel: one for each signature, and those that choose among them.

Source: TensorFlow python/saved_model/function_deserialization.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, OpError
from opkernel.graph import ConcreteFunction, Graph, Tensor, TensorSpec
from opkernel.graph.core.captured_value import CapturedValue
from opkernel.graph.functions.function_instance import instantiate_into
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import packer
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.interop.saved_model.composite import CompositeSpec, CompositeValue
from opkernel.messages import shown
from opkernel.proto import AttrValue, FunctionDef, NameAttrList, NodeDef, VersionDef
from opkernel.types import array_from_python

__all__ = ["LoadedBody", "LoadedConcreteFunction", "LoadedFunction"]


class LoadedBody(FuncGraph):
    """The body of a function of a SavedModel, which keeps the name and the FunctionDef that were saved."""

    def __init__(
        self,
        library: FunctionLibraryDefinition,
        name: str,
        versions: VersionDef,
        permissions: Permissions,
        suffix: str,
    ) -> None:
        super().__init__(name=name, function_library=library)
        self.graph_def_versions.CopyFrom(versions)
        self.permissions = permissions
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
            for op in self._operations
        )

    def add_to(self, graph: Graph) -> None:
        """Put the function, and those that it calls, into the library of a graph."""
        if isinstance(graph, FuncGraph):
            graph.permissions = graph.permissions.joined(self.permissions)
        library = graph.function_library
        if self.function_def.signature.name in library:
            return
        for called in self._needed.values():
            renamed = self._renamed(called)
            if renamed.signature.name not in library:
                library.add_function(renamed)
        if self.function_def.signature.name not in library:
            library.add_function(self.function_def)

    @cached_property
    def _needed(self) -> Mapping[str, FunctionDef]:
        call = NodeDef(name="call", op="PartitionedCall")
        call.attr["f"].func.name = self.name
        return self.function_library.reachable_definitions([call])

    def _renamed(self, function: FunctionDef) -> FunctionDef:
        """A copy of a function in which all functions of the model have names of their own."""
        copy = FunctionDef()
        copy.CopyFrom(function)
        copy.signature.name += self._suffix
        for node in copy.node_def:
            if node.op in self._needed:
                node.op += self._suffix
            for attr in node.attr.values():
                for reference in _references(attr):
                    if reference.name in self._needed:
                        reference.name += self._suffix
        return copy


def _references(attr: AttrValue) -> Sequence[NameAttrList]:
    """The functions that the value of an attr names."""
    kind = attr.WhichOneof("value")
    if kind == "func":
        return [attr.func]
    return attr.list.func if kind == "list" else ()


class FunctionSource(Protocol):
    """What knows the functions of a SavedModel, and what they take from outside."""

    def body(self, name: str) -> LoadedBody:
        """The body of a function."""

    def captured(self, name: str) -> Sequence[CapturedValue]:
        """What a function takes after its arguments."""

    def what(self, name: str) -> str:
        """What messages call a function."""


class LoadedConcreteFunction(ConcreteFunction):
    """A function of a SavedModel for one signature; its body is made when it is first called.

    Attributes:
        loaded_name: Its name in the SavedModel.
        input_signature: What it takes: positional arguments, and those by keyword.
        output_signature: What it gives.
    """

    def __init__(
        self,
        source: FunctionSource,
        name: str,
        input_signature: Any,
        output_signature: Any,
        keywords: Sequence[str] = (),
    ) -> None:
        self.loaded_name = name
        self.input_signature = input_signature
        self.output_signature = output_signature
        self._source = source
        self._keywords = keywords

    @cached_property
    def graph(self) -> FuncGraph:  # type: ignore[override]  # made at first use
        """The body.

        Raises:
            DataLossError: what the SavedModel says of the function is not so.
            NotFoundError: an op of the body is not registered.
        """
        body = self._source.body(self.loaded_name)
        captured = self._source.captured(self.loaded_name)
        count = len(body.inputs) - len(captured)
        if count < 0:
            raise self._damage(f"takes {len(captured)} tensors from outside")
        body.captured_values = dict(zip(captured, body.inputs[count:], strict=True))
        tensors = iter(body.outputs)
        try:
            body.structured_outputs = _filled(self.output_signature, tensors)
        except StopIteration:
            raise self._damage("gives fewer tensors than its signature says") from None
        return body

    @cached_property
    def _pack(self) -> Any:  # type: ignore[override]  # made at first use
        return packer(self.graph.structured_outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with its tensors, in order or by keyword."""
        if kwargs:
            args = (
                *args,
                *[kwargs.pop(name) for name in self._keywords[len(args) :] if name in kwargs],
            )
        count = len(self.graph.inputs) - len(self.graph.captured_values)
        if kwargs or len(args) != count:
            given = f"{len(args)} tensors" + (f" and {', '.join(kwargs)}" if kwargs else "")
            raise TypeError(f"{self} takes {count} tensors, and was given {given}")
        return self.call(args)

    def _damage(self, fact: str) -> DataLossError:
        return DataLossError(f"{self._source.what(self.loaded_name)} is damaged: it {fact}")

    def __str__(self) -> str:
        return f"Function {self.loaded_name!r}"

    def __repr__(self) -> str:
        return f"<opkernel.LoadedConcreteFunction {self.loaded_name}>"


def _filled(spec: Any, tensors: Iterator[Tensor]) -> Any:
    """The structure of the results, with tensors for specs."""
    if isinstance(spec, TensorSpec):
        return next(tensors)
    if isinstance(spec, CompositeSpec):
        return CompositeValue(spec, [next(tensors) for _ in spec.components])
    if isinstance(spec, Mapping):
        return {key: _filled(spec[key], tensors) for key in sorted(spec)}
    if isinstance(spec, tuple) and hasattr(spec, "_fields"):
        return type(spec)(*[_filled(one, tensors) for one in spec])
    if isinstance(spec, list | tuple):
        return type(spec)([_filled(one, tensors) for one in spec])
    return None


class _Misfit(Exception):
    """An argument that a signature does not take."""


class LoadedFunction:
    """A function of a SavedModel as Python called it: it chooses among the signatures that were saved.

    Attributes:
        concrete_functions: One for each signature.
    """

    def __init__(
        self,
        name: str,
        concrete_functions: Sequence[LoadedConcreteFunction],
        spec: Any,
        is_method: bool,
    ) -> None:
        self.__name__ = name
        self.concrete_functions = list(concrete_functions)
        self._signature = _python_signature(spec, is_method)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it: arrays run at once; tensors of a function that is being traced become a node there.

        Raises:
            ValueError: no signature that was saved takes such arguments.
            TypeError: the arguments are not those of the Python function.
        """
        positional, named = self._bound(args, kwargs)
        for may_convert in (False, True):
            for function in self.concrete_functions:
                try:
                    values = _flat((positional, named), function.input_signature, may_convert)
                except _Misfit:
                    continue
                return function.call(values)
        raise ValueError(self._no_match(positional, named))

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> LoadedConcreteFunction:
        """The function for arguments, or for TensorSpecs in their places.

        Raises:
            ValueError: none was saved.
        """
        positional, named = self._bound(args, kwargs)
        for function in self.concrete_functions:
            try:
                _flat((positional, named), function.input_signature, False)
            except _Misfit:
                continue
            return function
        raise ValueError(self._no_match(positional, named))

    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._signature is None:
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self._signature}: {error}") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _no_match(self, positional: Any, named: Any) -> str:
        options = "".join([f"\n  {_text(one.input_signature)}" for one in self.concrete_functions])
        return (
            f"{self.__name__} was saved for other arguments than {_text((positional, named))}. It was "
            f"saved for:{options or ' none'}"
        )

    def __repr__(self) -> str:
        options = "".join([f"\n  {_text(one.input_signature)}" for one in self.concrete_functions])
        return f"<opkernel.LoadedFunction {self.__name__}, saved for{options or ' no arguments'}>"


def _text(signature: Any) -> str:
    args, kwargs = signature
    return f"({', '.join([*map(_short, args), *[f'{k}={_short(v)}' for k, v in kwargs.items()]])})"


def _short(value: Any) -> str:
    spec = None if isinstance(value, CompositeSpec) else spec_of(value)
    return str(spec) if spec is not None else shown(value)


def _python_signature(spec: Any, is_method: bool) -> inspect.Signature | None:
    """The signature of the Python function that was saved; None where it was not kept."""
    if spec is None:
        return None
    kind = inspect.Parameter
    names = [*(spec.args or [])][1 if is_method else 0 :]
    defaults = [*(spec.defaults or [])][-len(names) or len(names) :] if names else []
    optional = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    parameters = [
        kind(name, kind.POSITIONAL_OR_KEYWORD, default=optional.get(name, kind.empty))
        for name in names
    ]
    if spec.varargs:
        parameters.append(kind(spec.varargs, kind.VAR_POSITIONAL))
    only = spec.kwonlydefaults or {}
    parameters += [
        kind(name, kind.KEYWORD_ONLY, default=only.get(name, kind.empty))
        for name in spec.kwonlyargs or []
    ]
    if spec.varkw:
        parameters.append(kind(spec.varkw, kind.VAR_KEYWORD))
    try:
        return inspect.Signature(parameters)
    except ValueError as error:
        raise DataLossError(f"The signature of a function is damaged: {error}") from error


def _flat(value: Any, spec: Any, may_convert: bool) -> list[Any]:
    """The tensors of arguments that a signature takes, in its order.

    Raises:
        _Misfit: it does not take them.
    """
    found: list[Any] = []
    _take(value, spec, may_convert, found)
    return found


def _take(value: Any, spec: Any, may_convert: bool, found: list[Any]) -> None:
    if isinstance(spec, TensorSpec):
        found.append(_tensor(value, spec, may_convert))
    elif isinstance(spec, CompositeSpec):
        parts = spec.parts(value)
        if parts is None:
            raise _Misfit
        for part, one in zip(parts, spec.components, strict=True):
            found.append(_tensor(part, one, may_convert))
    elif isinstance(spec, Mapping):
        if not isinstance(value, Mapping) or value.keys() != spec.keys():
            raise _Misfit
        for key in sorted(spec):
            _take(value[key], spec[key], may_convert, found)
    elif isinstance(spec, list | tuple):
        if not isinstance(value, list | tuple) or len(value) != len(spec):
            raise _Misfit
        for one, part in zip(value, spec, strict=True):
            _take(one, part, may_convert, found)
    elif not _is_same(value, spec):
        raise _Misfit


def _is_same(value: Any, saved: Any) -> bool:
    """Whether a Python value is the one that a signature was saved for."""
    if isinstance(value, Tensor | np.ndarray) or isinstance(saved, np.ndarray):
        return value is saved
    return bool(value == saved and isinstance(value, bool) == isinstance(saved, bool))


def _tensor(value: Any, spec: TensorSpec, may_convert: bool) -> Any:
    convert: Callable[[], Any] | None = getattr(value, "_as_graph_element", None)
    if convert is not None:
        value = convert()
        value = value if isinstance(value, Tensor) else np.asarray(value)
    if spec.is_compatible_with(value):
        return value
    if may_convert and not isinstance(value, Tensor | TensorSpec) and value is not None:
        try:
            value = _converted(value, spec)
        except (OpError, TypeError, ValueError):
            raise _Misfit from None
        if spec.is_compatible_with(value):
            return value
    raise _Misfit


def _converted(value: Any, spec: TensorSpec) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        wanted = spec.dtype.as_numpy_dtype
        if not np.can_cast(value.dtype, wanted, "same_kind"):
            raise _Misfit
        return value.astype(wanted)
    return array_from_python(value, spec.dtype)
