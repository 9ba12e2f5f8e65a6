"""Functions of a loaded SavedModel: one for each signature, and those that choose among them.

Source: TensorFlow python/saved_model/function_deserialization.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import DataLossError, OpError
from opkernel.graph import ConcreteFunction, Tensor, TensorSpec
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import flatten, map_structure, packer
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.interop.structured_value import CompositeSpec
from opkernel.messages import short_repr
from opkernel.proto import FunctionSpec, SavedConcreteFunction
from opkernel.tracebacks import entrances, hide_frames
from opkernel.types import array_from_python

if TYPE_CHECKING:
    from opkernel.interop.saved_objects import SavedObjects


class Misfit(Exception):
    """An argument that a signature does not take."""


def python_signature(spec: Any, is_method: bool) -> inspect.Signature | None:
    """The signature of the Python function that was saved; None where it was not kept.

    Raises:
        DataLossError: it is none that a function can have.
    """
    if spec is None:
        return None
    try:
        return inspect.Signature(_parameters(spec, is_method))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataLossError(f"The signature of a function is damaged: {error}") from error


def _parameters(spec: Any, is_method: bool) -> list[inspect.Parameter]:
    """The parameters that an `inspect.FullArgSpec` has."""
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
    return parameters


def is_signature(value: Any) -> bool:
    """Whether it has what a function takes: positional arguments, and those by keyword."""
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and isinstance(value[0], list | tuple)
        and isinstance(value[1], Mapping)
    )


_Convert = Callable[[Any, TensorSpec], Any]
"""Makes the tensor of a spec from a value of another type; raises Misfit where that is not allowed."""


def flat_arguments(value: Any, spec: Any, convert: _Convert | None = None) -> list[Any]:
    """The tensors of arguments that a signature takes, in its order.

    Args:
        value: The arguments.
        spec: The signature.
        convert: Makes tensors of values of other types; None where only the types of the signature fit.

    Raises:
        Misfit: it does not take them.
    """
    found: list[Any] = []
    _take(value, spec, convert, found)
    return found


def _take(value: Any, spec: Any, convert: _Convert | None, found: list[Any]) -> None:
    if isinstance(spec, TensorSpec):
        found.append(_tensor(value, spec, convert))
    elif isinstance(spec, list | tuple):
        _check_sequence(value, spec, convert is not None)
        for one, part in zip(value, spec, strict=True):
            _take(one, part, convert, found)
    elif isinstance(spec, dict):
        _check_keys(value, spec)
        for key in sorted(spec):
            _take(value[key], spec[key], convert, found)
    elif isinstance(spec, CompositeSpec):
        parts = spec.parts(value)
        if parts is None:
            raise Misfit
        for part, one in zip(parts, spec.components, strict=True):
            found.append(_tensor(part, one, convert))
    elif not _is_same(value, spec):
        raise Misfit


def _check_sequence(value: Any, spec: Any, may_convert: bool) -> None:
    """A list may become a tuple, and the other way round, where nothing was saved for the value itself."""
    if not isinstance(value, list | tuple) or len(value) != len(spec):
        raise Misfit
    if isinstance(value, list) != isinstance(spec, list) and not may_convert:
        raise Misfit


def _check_keys(value: Any, spec: Mapping[str, Any]) -> None:
    if not isinstance(value, Mapping) or value.keys() != spec.keys():
        raise Misfit


def _is_same(value: Any, saved: Any) -> bool:
    """Whether a Python value is the one that a signature was saved for."""
    if isinstance(value, Tensor | np.ndarray) or isinstance(saved, np.ndarray):
        return value is saved
    return bool(value == saved)


def _tensor(value: Any, spec: TensorSpec, convert: _Convert | None) -> Any:
    element: Callable[[], Any] | None = getattr(value, "_as_graph_element", None)
    if element is not None:
        value = element()
        value = value if isinstance(value, Tensor) else np.asarray(value)
    if spec.is_compatible_with(value):
        return value
    if convert is not None and not isinstance(value, Tensor | TensorSpec) and value is not None:
        try:
            value = convert(value, spec)
        except (OpError, TypeError, ValueError):
            raise Misfit from None
        if spec.is_compatible_with(value):
            return value
    raise Misfit


def _from_python(value: Any, spec: TensorSpec) -> Any:
    """Numbers, text and lists as a tensor. Arrays keep their type, as TensorFlow's tensors do."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSU":
        raise Misfit
    return array_from_python(value, spec.dtype)


def _from_any(value: Any, spec: TensorSpec) -> Any:
    """The same; and arrays as tensors of another type, where no kind of value is lost by that."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        wanted = spec.dtype.as_numpy_dtype
        if not np.can_cast(value.dtype, wanted, "same_kind"):
            raise Misfit
        return value.astype(wanted)
    return array_from_python(value, spec.dtype)


class LoadedConcreteFunction(ConcreteFunction):
    """A function of a SavedModel for one signature; its body is made when it is first called.

    Attributes:
        loaded_name: Its name in the SavedModel.
        input_signature: What it takes: positional arguments, and those by keyword.
        output_signature: What it gives.
        keywords: The names of its tensors, where it is called by these.
    """

    def __init__(
        self,
        source: SavedObjects,
        name: str,
        input_signature: Any,
        output_signature: Any,
        keywords: Sequence[str] = (),
    ) -> None:
        self.loaded_name = name
        self.input_signature = input_signature
        self.output_signature = output_signature
        self._source = source
        self.keywords = keywords

    @property
    def saved(self) -> SavedConcreteFunction:
        """What the SavedModel says of it."""
        return self._source.meta_graph.object_graph_def.concrete_functions[self.loaded_name]

    @cached_property
    def graph(self) -> FuncGraph:  # type: ignore[override]  # made at first use
        """The body.

        Raises:
            DataLossError: what the SavedModel says of the function is not so.
            NotFoundError: an op of the body is not registered.
        """
        body = self._source.body(self.loaded_name)
        captured = self._source.captured(self.loaded_name)
        count = sum(isinstance(leaf, TensorSpec) for leaf in flatten(self.input_signature))
        if count + len(captured) != len(body.inputs):
            raise self._damage(
                f"takes {len(body.inputs)} tensors, and its signature has {count}, and "
                f"{len(captured)} tensors from outside"
            )
        body.captured_values = dict(zip(captured, body.inputs[count:], strict=True))
        for value, given in body.captured_values.items():
            if value.captured_spec[0] is not given.dtype:
                raise self._damage(f"takes {given.op.name!r} as another type than {value!r}")
        tensors = iter(body.outputs)
        try:
            body.structured_outputs = map_structure(
                lambda leaf: next(tensors) if isinstance(leaf, TensorSpec) else None,
                self.output_signature,
            )
        except StopIteration:
            raise self._damage("gives fewer tensors than its signature says") from None
        return body

    @cached_property
    def _pack(self) -> Any:  # type: ignore[override]  # made at first use
        return packer(self.graph.structured_outputs)

    @cached_property
    def run(self) -> Callable[[Sequence[Any]], Any]:
        """Runs it on arrays."""
        from opkernel.runtime.calls.traced_calls import (
            make_runner,  # models are also shown, and not run
        )

        return make_runner(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with its tensors, in order or by keyword."""
        if kwargs:
            args = (
                *args,
                *[kwargs.pop(name) for name in self.keywords[len(args) :] if name in kwargs],
            )
        count = len(self.graph.inputs) - len(self.graph.captured_values)
        if kwargs or len(args) != count:
            given = f"{len(args)} tensors" + (f" and {', '.join(kwargs)}" if kwargs else "")
            raise TypeError(f"{self} takes {count} tensors, and was given {given}")
        return self.call(args)

    def call(self, values: Sequence[Any]) -> Any:
        """Call it with the values of its tensors, in order; errors name the function."""
        try:
            return super().call(values)
        except OpError as error:
            error.add_context(f"In {self._source.what(self.loaded_name)}")
            raise

    def _damage(self, fact: str) -> DataLossError:
        return DataLossError(f"The {self._source.what(self.loaded_name)} is damaged: it {fact}")

    def __str__(self) -> str:
        return f"Function {self.loaded_name!r}"

    def __repr__(self) -> str:
        return f"<opkernel.LoadedConcreteFunction {self.loaded_name}>"


@entrances
class LoadedFunction:
    """A function of a SavedModel as Python called it: it chooses among the signatures that were saved.

    Attributes:
        concrete_functions: One for each signature.
        function_spec: The Python signature as it was saved.
    """

    def __init__(
        self,
        name: str,
        concrete_functions: Sequence[LoadedConcreteFunction],
        signature: inspect.Signature | None,
        function_spec: FunctionSpec,
    ) -> None:
        self.__name__ = name
        self.concrete_functions = list(concrete_functions)
        self.function_spec = function_spec
        self._signature = signature
        self._defaults = None if signature is None else _defaults_by_place(signature)
        kind = function_spec.input_signature.WhichOneof("kind")
        self._has_input_signature = kind not in (None, "none_value")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it: arrays run at once; tensors of a function that is being traced become a node there.

        Raises:
            ValueError: no signature that was saved takes such arguments.
            TypeError: the arguments are not those of the Python function.
        """
        try:
            positional, named = self._bound(args, kwargs)
            convert = _from_any if self._has_input_signature else _from_python
            found = self._match(positional, named) or self._match(positional, named, convert)
            if found is None:
                raise ValueError(self._no_match(positional, named))
            function, values = found
            return function.call(values)
        except Exception as error:
            hide_frames(error)
            raise

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> LoadedConcreteFunction:
        """The function for arguments, or for TensorSpecs in their places.

        Raises:
            ValueError: none was saved.
        """
        positional, named = self._bound(args, kwargs)
        found = self._match(positional, named)
        if found is None:
            raise ValueError(self._no_match(positional, named))
        return found[0]

    def _match(
        self, positional: Any, named: Any, convert: _Convert | None = None
    ) -> tuple[LoadedConcreteFunction, list[Any]] | None:
        """The first function that takes arguments, and the tensors of these; None where there is none."""
        arguments = positional, named
        for function in self.concrete_functions:
            try:
                return function, flat_arguments(arguments, function.input_signature, convert)
            except Misfit:
                continue
        return None

    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._signature is None:
            return args, kwargs
        if not kwargs and self._defaults is not None and len(args) <= len(self._defaults):
            rest = self._defaults[len(args) :]  # the common case, without the slower `bind`
            if not any(one is inspect.Parameter.empty for one in rest):
                return (*args, *rest), {}
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


def _defaults_by_place(signature: inspect.Signature) -> tuple[Any, ...] | None:
    """The defaults of the arguments, or what stands for none; None where some are not given by place."""
    parameters = signature.parameters.values()
    if any(one.kind is not one.POSITIONAL_OR_KEYWORD for one in parameters):
        return None
    return tuple([one.default for one in parameters])


def _text(signature: Any) -> str:
    args, kwargs = signature
    return f"({', '.join([*map(_short, args), *[f'{k}={_short(v)}' for k, v in kwargs.items()]])})"


def _short(value: Any) -> str:
    spec = None if isinstance(value, CompositeSpec) else spec_of(value)
    return str(spec) if spec is not None else short_repr(value)
