"""Type hints of a function, read as parts of an op: `Tensor["T"]` is a tensor, all else an attr.

    hint                                    in the op
    Tensor["T"], Tensor["float"]            a tensor of the type attr T, or of that type
    list[Tensor["T"]]                       `N * T`; Annotated[list[...], "M"] is `M * T`
    int, float, bool, str                   an attr of that type
    DataType, PartialTensorShape            an attr of type `type`, `shape`
    numpy.ndarray, NameAttrList             an attr of type `tensor`, `func`
    Literal["A", "B"]                       a string attr with these values
    list[...] of one of these               a list of them

The element of Tensor is a string, a DataType, or a TypeVar whose name counts.
"""

import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    TypeVar,
    get_args,
    get_origin,
)

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.proto import AttrValue, NameAttrList
from opkernel.records import dataclass
from opkernel.types import DataType, PartialTensorShape

if TYPE_CHECKING:
    Tensor: Any
    """The hint of a tensor. For type checkers anything: the op takes arrays, lists and tensors of graphs."""
else:
    from opkernel.graph import Tensor

__all__ = ["AttrHint", "Tensor", "TensorHint", "attr_hint", "evaluated", "tensor_hint"]

_KINDS: Mapping[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    DataType: "type",
    PartialTensorShape: "shape",
    np.ndarray: "tensor",
    NameAttrList: "func",
}
_ATTRS = "int, float, bool, str, DataType, PartialTensorShape, Literal['A', 'B'], or a list of one"


@dataclass(frozen=True)
class TensorHint:
    """A tensor, or a list of tensors: the word for its type, and the attr of the list's length."""

    type_word: str
    number_attr: str = ""


@dataclass(frozen=True)
class AttrHint:
    """An attr: its type, as in an OpDef, and the strings that it may be."""

    type: str
    allowed: tuple[str, ...] = ()

    def allowed_values(self) -> AttrValue | None:
        """The strings that it may be, as in an OpDef; None for all."""
        encoded = [text.encode() for text in self.allowed]
        return AttrValue(list=AttrValue.ListValue(s=encoded)) if encoded else None


def evaluated(hint: Any, function: FunctionType, local_names: Mapping[str, Any]) -> Any:
    """The value of a hint that is a string, as under `from __future__ import annotations`.

    Raises:
        InvalidArgumentError: it is no expression, or has names that neither the function's module nor
            `local_names` have.
    """
    while isinstance(hint, str | ForwardRef):
        text = hint.__forward_arg__ if isinstance(hint, ForwardRef) else hint
        try:
            hint = eval(text, inspect.unwrap(function).__globals__, dict(local_names))
        except Exception as error:
            raise InvalidArgumentError(
                f"has the hint {text}, which cannot be evaluated ({error}); import its names where the "
                "function is defined"
            ) from error
    return hint


def tensor_hint(hint: Any) -> TensorHint | None:
    """The tensor, or list of tensors, that a hint describes; None where the hint is an attr's.

    Raises:
        InvalidArgumentError: the hint of a tensor breaks a rule.
    """
    number = ""
    if get_origin(hint) is Annotated:
        hint, number = hint.__origin__, str(hint.__metadata__[0])
    if get_origin(hint) in (list, Sequence):
        item = tensor_hint(*get_args(hint))
        return None if item is None else TensorHint(item.type_word, number or "N")
    if hint is Tensor:
        raise InvalidArgumentError(
            "has the hint Tensor without a type; write Tensor['T'] for any type, Tensor['float'] for one"
        )
    if get_origin(hint) is Tensor:
        return TensorHint(_type_word(*get_args(hint)))
    if any(get_origin(one) is Tensor or one is Tensor for one in get_args(hint)):
        raise InvalidArgumentError(
            f"has the hint {hint}, but an op has all its tensors at every call; write Tensor['T'], or "
            "list[Tensor['T']]"
        )
    return None


def _type_word(*element: Any) -> str:
    match element:
        case (str() as word,):
            return word
        case (DataType() as dtype,):
            return dtype.string
        case (TypeVar() as variable,):
            return variable.__name__
    shown = ", ".join(map(repr, element))
    raise InvalidArgumentError(
        f"has the hint Tensor[{shown}], which names no type; write a type attr, Tensor['T'], or a type, "
        "Tensor['float']"
    )


def attr_hint(hint: Any) -> AttrHint:
    """The attr that a hint describes.

    Raises:
        InvalidArgumentError: no attr goes with the hint.
    """
    if get_origin(hint) in (list, Sequence):
        item = attr_hint(*get_args(hint))
        if not item.type.startswith("list("):
            return AttrHint(f"list({item.type})", item.allowed)
    elif get_origin(hint) is Literal and all(isinstance(one, str) for one in get_args(hint)):
        return AttrHint("string", get_args(hint))
    else:
        for known, kind in _KINDS.items():
            if known is (get_origin(hint) or hint):
                return AttrHint(kind)
    if type(None) in get_args(hint):
        raise InvalidArgumentError(
            f"has the hint {hint}, but an attr is never None; give the attr a default of its type"
        )
    raise InvalidArgumentError(
        f"has the hint {hint!r}; a tensor has a hint such as Tensor['T'], and an attr one of {_ATTRS}"
    )
