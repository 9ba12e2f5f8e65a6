"""Arguments of functions of a SavedModel: the Python signature, and which saved signature takes them.

Source: TensorFlow python/saved_model/function_deserialization.py, core/function/polymorphism/function_type.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel.errors import DataLossError, OpError
from opkernel.graph import Tensor, TensorSpec
from opkernel.interop.saved_model.composite import CompositeSpec
from opkernel.types import array_from_python


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


def flat_arguments(value: Any, spec: Any, may_convert: bool) -> list[Any]:
    """The tensors of arguments that a signature takes, in its order.

    Raises:
        Misfit: it does not take them.
    """
    found: list[Any] = []
    _take(value, spec, may_convert, found)
    return found


def _take(value: Any, spec: Any, may_convert: bool, found: list[Any]) -> None:
    if isinstance(spec, TensorSpec):
        found.append(_tensor(value, spec, may_convert))
    elif isinstance(spec, list | tuple):
        _check_sequence(value, spec, may_convert)
        for one, part in zip(value, spec, strict=True):
            _take(one, part, may_convert, found)
    elif isinstance(spec, dict):
        _check_keys(value, spec)
        for key in sorted(spec):
            _take(value[key], spec[key], may_convert, found)
    elif isinstance(spec, CompositeSpec):
        parts = spec.parts(value)
        if parts is None:
            raise Misfit
        for part, one in zip(parts, spec.components, strict=True):
            found.append(_tensor(part, one, may_convert))
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
            raise Misfit from None
        if spec.is_compatible_with(value):
            return value
    raise Misfit


def _converted(value: Any, spec: TensorSpec) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        wanted = spec.dtype.as_numpy_dtype
        if not np.can_cast(value.dtype, wanted, "same_kind"):
            raise Misfit
        return value.astype(wanted)
    return array_from_python(value, spec.dtype)
