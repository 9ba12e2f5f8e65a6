"""CallSignature: what a traced function is specialised for; CallBinder: from a call to that.

Tensors, arrays and handles count by type and shape; other Python values by type and value, or by
identity where they cannot be hashed. `True`, `1` and `1.0` are three values here.

Source: TensorFlow core/function/polymorphism/function_type.py, core/function/trace_type/.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph.building.constructors import array_like_tensor
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.tracing.nested_structure import flatten, map_structure, structure_of
from opkernel.graph.tracing.tensor_spec import TensorSpec, spec_of
from opkernel.messages import did_you_mean, short_repr
from opkernel.types import array_from_python


class _Identity:
    """A Python value that cannot be hashed: equal to itself alone."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class CallSignature:
    """The known facts about the arguments of a call.

    Attributes:
        structure: how they are nested, by parameter.
        leaves: the spec of each tensor; of other values what they are compared by.
    """

    structure: Hashable
    leaves: tuple[Hashable, ...]

    @property
    def specs(self) -> list[TensorSpec]:
        """The specs of the tensors."""
        return [leaf for leaf in self.leaves if isinstance(leaf, TensorSpec)]

    @property
    def unknowns(self) -> float:
        """How much of the shapes is unknown."""
        return sum(spec.unknowns for spec in self.specs)

    def includes(self, other: CallSignature) -> bool:
        """Whether a trace for this signature serves a call of the other."""
        return self._is_like(other) and all(
            mine.includes(theirs) for mine, theirs in zip(self.specs, other.specs, strict=True)
        )

    def generalised(self, other: CallSignature) -> CallSignature:
        """The most special signature that serves both; this one if none does."""
        if not self._is_like(other):
            return self
        leaves = [
            TensorSpec(
                mine.shape.most_specific_compatible_shape(theirs.shape), mine.dtype, mine.name
            )
            if isinstance(mine, TensorSpec) and isinstance(theirs, TensorSpec)
            else mine
            for mine, theirs in zip(self.leaves, other.leaves, strict=True)
        ]
        return CallSignature(self.structure, tuple(leaves))

    def _is_like(self, other: CallSignature) -> bool:
        """Whether the two differ in shapes alone."""
        return self.structure == other.structure and all(
            mine.dtype == theirs.dtype
            if isinstance(mine, TensorSpec) and isinstance(theirs, TensorSpec)
            else mine == theirs
            for mine, theirs in zip(self.leaves, other.leaves, strict=True)
        )


@dataclass(frozen=True, slots=True)
class BoundCall:
    """The arguments of a call, sorted out.

    Attributes:
        arguments: the values by parameter, with defaults.
        signature: what a trace for the call is made for.
        tensors: the values of the tensors among the leaves: tensors, arrays, or specs.
    """

    arguments: inspect.BoundArguments
    signature: CallSignature
    tensors: list[Any]

    def named_specs(self) -> Iterator[tuple[str, TensorSpec]]:
        """The spec of each tensor, and what to call it."""
        leaves = iter(self.signature.leaves)
        for name, value in self.arguments.arguments.items():
            for leaf in [next(leaves) for _ in flatten(value)]:
                if isinstance(leaf, TensorSpec):
                    yield leaf.name or name, leaf

    def arguments_with(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, positional and by keyword, with others in the place of the tensors."""
        left, leaves = iter(tensors), iter(self.signature.leaves)

        def replaced(value: Any) -> Any:
            return next(left) if isinstance(next(leaves), TensorSpec) else value

        arguments = self.arguments
        values = OrderedDict(
            (name, map_structure(replaced, value)) for name, value in arguments.arguments.items()
        )
        bound = inspect.BoundArguments(arguments.signature, values)
        return bound.args, bound.kwargs

    def __str__(self) -> str:
        leaves = iter(self.signature.leaves)

        def leaf_text(value: Any) -> str:
            leaf = next(leaves)
            return str(leaf) if isinstance(leaf, TensorSpec) else short_repr(value)

        texts = []
        for name, value in self.arguments.arguments.items():
            parts = ", ".join([leaf_text(leaf) for leaf in flatten(value)])
            nested = isinstance(value, list | tuple | Mapping)
            texts.append(f"{name}: ({parts})" if nested else f"{name}: {parts}")
        return ", ".join(texts)


class CallBinder:
    """Sorts out the calls of one Python function."""

    def __init__(
        self, function: Callable[..., Any], input_signature: Sequence[Any] | None = None
    ) -> None:
        """With `input_signature` the first arguments are tensors of these specs.

        Raises:
            TypeError: the function has fewer parameters, or the signature holds what is no spec.
        """
        self._signature = inspect.signature(function)
        self._name = getattr(function, "__name__", None) or type(function).__name__
        self._specs: dict[str, Any] = {}
        if input_signature is not None:
            for spec in flatten(input_signature):
                if not isinstance(spec, TensorSpec):
                    raise TypeError(
                        f"input_signature must hold TensorSpecs, not {short_repr(spec)}"
                    )
            self._specs = dict(self._signature.bind_partial(*input_signature).arguments)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> BoundCall:
        """Sort out a call.

        Raises:
            TypeError: the arguments do not fit the parameters or the input signature.
            InvalidArgumentError: an array is of a type that tensors do not have.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self._misfit(error, args, kwargs) from None
        bound.apply_defaults()
        leaves: list[Hashable] = []
        tensors: list[Any] = []
        for name, value in bound.arguments.items():
            spec = self._specs.get(name)
            if spec is not None:
                try:
                    bound.arguments[name] = value = _converted(name, value, spec)
                except TypeError as error:
                    raise TypeError(f"{self._name}() {error}") from error.__cause__
                leaves += flatten(spec)
                tensors += flatten(value)
                continue
            for leaf in flatten(value):
                key, tensor = _sorted_out(leaf)
                leaves.append(key)
                if isinstance(key, TensorSpec):
                    tensors.append(tensor)
        structure = tuple([(name, structure_of(v)) for name, v in bound.arguments.items()])
        return BoundCall(bound, CallSignature(structure, tuple(leaves)), tensors)

    def _misfit(
        self, error: TypeError, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TypeError:
        """The error for arguments that do not fit the parameters."""
        parameters = self._signature.parameters
        fact = str(error)
        unknown = [name for name in kwargs if name not in parameters]
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        if unknown and not takes_any:
            hint = did_you_mean(unknown[0], parameters)
            fact = f"got an unexpected keyword argument {unknown[0]!r}{hint}"
        given = ", ".join(
            [
                *map(short_repr, args),
                *[f"{name}={short_repr(value)}" for name, value in kwargs.items()],
            ]
        )
        takes = ", ".join(map(_parameter_text, parameters.values()))
        return TypeError(f"{self._name}() {fact}; it takes ({takes}) and was given ({given})")


def _parameter_text(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    return f"{parameter.name}={short_repr(parameter.default)}"


def _sorted_out(value: Any) -> tuple[Hashable, Any]:
    """The key by which an argument is compared, and the tensor that it is."""
    convert = getattr(value, "_as_graph_element", None)
    if convert is not None:
        value = convert()
    spec = spec_of(value)
    if spec is None and hasattr(value, "__array__") and not isinstance(value, type | np.generic):
        value = np.asarray(value)
        spec = spec_of(value)
    if spec is not None:
        return spec, value
    try:
        hash(value)
    except TypeError:
        return _Identity(value), None
    return (type(value), value), None


def _converted(name: str, value: Any, spec: Any) -> Any:
    """An argument as what the input signature says of it."""
    if isinstance(spec, TensorSpec):
        return _tensor_of_spec(name, value, spec)
    if isinstance(spec, Mapping) and isinstance(value, Mapping) and set(value) == set(spec):
        return {key: _converted(f"{name}[{key!r}]", value[key], spec[key]) for key in spec}
    both = isinstance(spec, list | tuple) and isinstance(value, list | tuple)
    if not both or len(value) != len(spec):
        raise TypeError(
            f"argument {name!r} is {short_repr(value)}; the input signature asks for {spec}"
        )
    parts = zip(value, spec, strict=True)
    return type(spec)([_converted(f"{name}[{i}]", *part) for i, part in enumerate(parts)])


def _tensor_of_spec(name: str, value: Any, spec: TensorSpec) -> Any:
    found = _sorted_out(value)[1]
    try:
        if found is None:
            found = array_from_python(value, spec.dtype)
        elif not isinstance(found, Tensor | TensorSpec):
            found = array_like_tensor(found, spec.dtype)
        fits = spec.is_compatible_with(found)
    except OpError as error:
        raise TypeError(
            f"argument {name!r} must be {spec}, as the input signature says: {error.message}"
        ) from error
    if not fits:
        raise TypeError(
            f"argument {name!r} is {spec_of(found)}; the input signature asks for {spec}"
        )
    return found
