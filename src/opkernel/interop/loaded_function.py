"""Functions of a loaded SavedModel: one for each signature, and those that choose among them.

Source: TensorFlow python/saved_model/function_deserialization.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from opkernel.errors import DataLossError, OpError
from opkernel.graph import ConcreteFunction, Tensor, TensorSpec
from opkernel.graph.core.captured_value import CapturedValue
from opkernel.graph.tracing.func_graph import FuncGraph
from opkernel.graph.tracing.nested_structure import packer
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.interop.loaded_body import LoadedBody
from opkernel.interop.saved_arguments import Misfit, flat_arguments
from opkernel.interop.saved_model.composite import CompositeSpec, CompositeValue
from opkernel.messages import short_repr
from opkernel.proto import FunctionSpec, SavedConcreteFunction

__all__ = ["LoadedConcreteFunction", "LoadedFunction"]


class FunctionSource(Protocol):
    """What knows the functions of a SavedModel, and what they take from outside."""

    def body(self, name: str) -> LoadedBody:
        """The body of a function."""

    def captured(self, name: str) -> Sequence[CapturedValue]:
        """What a function takes after its arguments."""

    def what(self, name: str) -> str:
        """What messages call a function."""

    def saved_function(self, name: str) -> SavedConcreteFunction:
        """What the model says of a function."""


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
        self.keywords = keywords

    @property
    def saved(self) -> SavedConcreteFunction:
        """What the SavedModel says of it."""
        return self._source.saved_function(self.loaded_name)

    @cached_property
    def graph(self) -> FuncGraph:  # type: ignore[override]  # made at first use
        """The body.

        Raises:
            DataLossError: what the SavedModel says of the function is not so.
            NotFoundError: an op of the body is not registered.
        """
        body = self._source.body(self.loaded_name)
        captured = self._source.captured(self.loaded_name)
        count = _count(self.input_signature)
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
            body.structured_outputs = _filled(self.output_signature, tensors)
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


def _count(spec: Any) -> int:
    """The number of tensors that arguments have."""
    if isinstance(spec, TensorSpec):
        return 1
    if isinstance(spec, CompositeSpec):
        return len(spec.components)
    if isinstance(spec, Mapping):
        return sum([_count(one) for one in spec.values()])
    return sum([_count(one) for one in spec]) if isinstance(spec, list | tuple) else 0


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
                    values = flat_arguments(
                        (positional, named), function.input_signature, may_convert
                    )
                except Misfit:
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
                flat_arguments((positional, named), function.input_signature, False)
            except Misfit:
                continue
            return function
        raise ValueError(self._no_match(positional, named))

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
