"""Functions of a module as SavedModels describe them: for each signature a FunctionDef and what it takes.

Source: TensorFlow python/saved_model/function_serialization.py, signature_serialization.py, core/protobuf/saved_object_graph.proto.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import ConcreteFunction, Graph, Tensor, TensorSpec, function
from opkernel.graph.core.captured_value import CapturedValue
from opkernel.graph.tracing.function_tracing import Function
from opkernel.graph.tracing.nested_structure import flatten, map_structure
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.interop.loaded_function import LoadedConcreteFunction, LoadedFunction
from opkernel.interop.loaded_objects import Again
from opkernel.interop.signature import Signature
from opkernel.interop.structured_value import encoded
from opkernel.proto import FunctionDef, FunctionSpec, StructuredValue
from opkernel.training import Module

_KINDS = (Function, ConcreteFunction, LoadedFunction)
SavedFunction = Function[..., Any] | ConcreteFunction | LoadedFunction
"""What becomes a function of a SavedModel."""
_numbers = itertools.count(1)


class NamedFunction:
    """A traced function under the name that it is saved by.

    Attributes:
        concrete: The function.
        name: The name, which no other function of the process is saved by.
        function_def: The message.
    """

    def __init__(self, concrete: ConcreteFunction) -> None:
        outside = [*concrete.graph.captures]
        if outside:
            raise FailedPreconditionError(
                f"Function {concrete.graph.name!r} uses {outside[0].name!r} of a graph: it cannot be saved"
            )
        self.concrete = concrete
        self.function_def = FunctionDef()
        self.function_def.CopyFrom(concrete.graph.function_def)
        if not isinstance(concrete, LoadedConcreteFunction):
            self.function_def.signature.name = f"__inference_{concrete.graph.name}_{next(_numbers)}"
        self.name = self.function_def.signature.name

    @property
    def captured(self) -> list[CapturedValue]:
        """What it takes after its arguments."""
        values = self.concrete.graph.captured_values
        return [one.value if isinstance(one, Again) else one for one in values]

    @property
    def arguments(self) -> list[Tensor]:
        """The tensors that it takes as arguments."""
        inputs = self.concrete.graph.inputs
        return inputs[: len(inputs) - len(self.captured)]

    @property
    def keywords(self) -> list[str]:
        """The names of its arguments."""
        found = self.concrete.keywords if isinstance(self.concrete, LoadedConcreteFunction) else ()
        return [*found] or [tensor.op.name for tensor in self.arguments]

    def add_to(self, graph: Graph) -> None:
        """Put the functions that it calls into the library of a graph, and their gradients."""
        if isinstance(self.concrete, LoadedConcreteFunction):
            self.concrete.graph.add_to(graph)
            return
        library, called = graph.function_library, self.concrete.graph.function_library
        for function_def in called.values():
            library.add_function(function_def)
        library.custom_gradients.update(called.custom_gradients)

    def input_signature(self) -> StructuredValue:
        """What it takes.

        Raises:
            InvalidArgumentError: a Python argument cannot be written.
        """
        if isinstance(self.concrete, LoadedConcreteFunction):
            return self.concrete.saved.canonicalized_input_signature
        graph = self.concrete.graph
        return _encoded(graph.structured_input_signature, f"Function {graph.name!r}")

    def output_signature(self) -> StructuredValue:
        """What it gives."""
        if isinstance(self.concrete, LoadedConcreteFunction):
            return self.concrete.saved.output_signature
        numbers = itertools.count()

        def spec(one: Any) -> TensorSpec | None:
            if one is None:
                return None
            return TensorSpec(one.shape, one.dtype, f"output_{next(numbers)}")

        graph = self.concrete.graph
        return _encoded(map_structure(spec, graph.structured_outputs), f"Function {graph.name!r}")


def _encoded(value: Any, what: str) -> StructuredValue:
    try:
        return encoded(value)
    except TypeError as error:
        raise InvalidArgumentError(f"{what} cannot be saved: {error}") from error


def functions_of(one: Any) -> dict[str, SavedFunction]:
    """The functions that an object holds, by name: a module's methods and attributes, items of lists and dicts."""
    held: dict[str, Any]
    if isinstance(one, list | tuple):
        held = {str(index): value for index, value in enumerate(one)}
    elif isinstance(one, Mapping):
        held = {key: value for key, value in one.items() if isinstance(key, str)}
    elif isinstance(one, Module):
        names = sorted({*dir(type(one)), *vars(one)})
        static = {name: inspect.getattr_static(one, name, None) for name in names}
        held = {
            name: getattr(one, name) for name, value in static.items() if isinstance(value, _KINDS)
        }
    elif hasattr(one, "_tracked_children"):
        held = one._tracked_children()
    else:
        return {}
    return {name: value for name, value in held.items() if isinstance(value, _KINDS)}


def function_spec(traced: Function[..., Any]) -> FunctionSpec:
    """The Python signature of a function, without `self`, and its input signature.

    Raises:
        InvalidArgumentError: a default cannot be written.
    """
    python_function = traced.python_function
    signature, kind = inspect.signature(python_function), inspect.Parameter
    parameters = signature.parameters.values()
    positional = [
        p for p in parameters if p.kind in (kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD)
    ]
    only = [p for p in parameters if p.kind is kind.KEYWORD_ONLY]
    described = inspect.FullArgSpec(
        args=[p.name for p in positional],
        varargs=next((p.name for p in parameters if p.kind is kind.VAR_POSITIONAL), None),
        varkw=next((p.name for p in parameters if p.kind is kind.VAR_KEYWORD), None),
        defaults=tuple([p.default for p in positional if p.default is not p.empty]) or None,
        kwonlyargs=[p.name for p in only],
        kwonlydefaults={p.name: p.default for p in only if p.default is not p.empty} or None,
        annotations={},
    )
    spec = FunctionSpec()
    what = f"{getattr(python_function, '__name__', python_function)}{signature}"
    spec.fullargspec.CopyFrom(_encoded(described, what))
    spec.input_signature.CopyFrom(_encoded(traced.input_signature, what))
    return spec


def exported_signature(name: str, given: Any) -> ConcreteFunction:
    """The function of a signature: it takes tensors by keyword, and gives a dict of tensors.

    Args:
        name: The name of the signature.
        given: A traced function, or one with an input signature.

    Raises:
        InvalidArgumentError: the function has no signature, or takes or gives what a signature cannot.
    """
    concrete = concrete_function(name, given)
    args, kwargs = (
        concrete.input_signature
        if isinstance(concrete, LoadedConcreteFunction)
        else concrete.graph.structured_input_signature
    )
    specs = [spec for spec in flatten((args, kwargs)) if isinstance(spec, TensorSpec)]
    names = [spec.name or f"input_{i}" for i, spec in enumerate(specs)]

    def signature_wrapper(**inputs: Any) -> dict[str, Any]:
        return _named_outputs(name, concrete.call([inputs[key] for key in names]))

    by_name = {key: TensorSpec(s.shape, s.dtype, key) for key, s in zip(names, specs, strict=True)}
    wrapped = function(signature_wrapper, name=f"signature_wrapper_{name}")
    return wrapped.get_concrete_function(**dict(sorted(by_name.items())))


def concrete_function(name: str, given: Any) -> ConcreteFunction:
    """The function for one signature, of what is given for a signature of that name.

    Raises:
        InvalidArgumentError: it has several or none.
    """
    if isinstance(given, ConcreteFunction):
        return given
    if isinstance(given, Function) and given.input_signature is not None:
        return given.get_concrete_function()
    if isinstance(given, Function | LoadedFunction) and len(given.concrete_functions) == 1:
        return given.concrete_functions[0]
    if isinstance(given, Signature):
        return function(given, name=given.name).get_concrete_function(**given.inputs)
    raise InvalidArgumentError(
        f"Signature {name!r} needs a function for one signature: "
        f"opkernel.function(..., input_signature=[...]), or function.get_concrete_function(...)"
    )


def _named_outputs(name: str, outputs: Any) -> dict[str, Any]:
    if isinstance(outputs, Mapping):
        found = {str(key): value for key, value in outputs.items()}
    elif isinstance(outputs, list | tuple):
        found = {f"output_{i}": value for i, value in enumerate(outputs)}
    else:
        found = {"output_0": outputs}
    wrong = [key for key, value in found.items() if spec_of(value) is None]
    if wrong:
        raise InvalidArgumentError(f"Result {wrong[0]!r} of signature {name!r} is no tensor")
    return found
