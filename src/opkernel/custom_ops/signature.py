"""The specs of an op from the signature of a function, whose type hints are read as parts of the op.

`Tensor["T"]` is a tensor, all else an attr:

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
import re
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NoReturn,
    TypeVar,
    get_args,
    get_origin,
)

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef import attr_from_python
from opkernel.opdef.text.spec_text import attr_spec
from opkernel.proto import AttrValue, NameAttrList, OpDef
from opkernel.records import dataclass
from opkernel.types import DataType, PartialTensorShape, as_dtype

__all__ = ["AttrHint", "Tensor", "TensorHint", "attr_hint", "evaluated", "tensor_hint"]


if TYPE_CHECKING:
    Tensor: Any
    """The hint of a tensor. For type checkers anything: the op takes arrays, lists and tensors of graphs."""
else:
    from opkernel.graph import Tensor


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


_INPUT = re.compile(r"[a-z][a-z0-9_]*")
_ATTR = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TYPE_ATTR = re.compile(r"[A-Z][A-Za-z0-9_]*")

Types = Mapping[str, DataType | str | Sequence[DataType | str]]
"""The types that type attrs may be."""


@dataclass(frozen=True)
class OpSignature:
    """The signature of an op, as `register_op` takes it.

    Attributes:
        inputs: The specs of the inputs.
        outputs: The specs of the outputs.
        attrs: The specs of the attrs; attrs that inputs determine come first.
        result: A NamedTuple class or `tuple` where a call gives one; None where the output itself.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: tuple[str, ...]
    result: Any


def read_signature(
    function: FunctionType, types: Types, local_names: Mapping[str, Any]
) -> OpSignature:
    """The signature of an op from the signature of a function.

    Args:
        function: Its parameters and result have hints (`opkernel.custom_ops.signature`), inputs first.
        types: The types that type attrs may be, by attr; any type if not said.
        local_names: Names that hints may have beside the names of the function's module.

    Raises:
        InvalidArgumentError: a hint breaks a rule; the message names the function and the parameter.
    """
    reader = _Reader(function, local_names)
    reader.read_parameters()
    outputs, result = reader.read_result()
    reader.restrict(types)
    return OpSignature(
        tuple(reader.inputs),
        tuple(outputs),
        tuple(map(attr_spec, reader.attrs.values())),
        result,
    )


class _Reader:
    """Reads the hints of one function.

    Attributes:
        inputs: The specs of the inputs.
        attrs: The attrs by name: attrs that inputs determine, and attrs that are parameters.
    """

    def __init__(self, function: FunctionType, local_names: Mapping[str, Any]) -> None:
        self.inputs: list[str] = []
        self.attrs: dict[str, OpDef.AttrDef] = {}
        self._function = function
        self._local_names = local_names
        self._parameters = inspect.signature(function).parameters

    def read_parameters(self) -> None:
        hints = {name: self._read(parameter) for name, parameter in self._parameters.items()}
        tensors = {n: hint for n, hint in hints.items() if isinstance(hint, TensorHint)}
        own = {n: hint for n, hint in hints.items() if isinstance(hint, AttrHint)}
        if list(hints)[: len(tensors)] != list(tensors):
            late = next(n for n in reversed(hints) if n in tensors)
            self._refuse(late, "is an input behind an attr; put the inputs first")
        for name, hint in tensors.items():
            for word in (hint.type_word, hint.number_attr):
                if word in own:
                    self._refuse(
                        word, f"is an attr that the input {name!r} determines; take it out"
                    )
            self.inputs.append(f"{name}: {self._element(name, hint, is_input=True)}")
        for name, attr in own.items():
            self.attrs[name] = self._attr(name, attr)

    def _read(self, parameter: inspect.Parameter) -> TensorHint | AttrHint:
        name, hint = parameter.name, parameter.annotation
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            self._refuse(name, "takes any number of arguments; write list[Tensor['T']] for a list")
        if hint is parameter.empty:
            self._refuse(
                name, "has no hint; write Tensor['T'] for an input, float and the like for an attr"
            )
        read = self._hint(name, hint)
        pattern = _INPUT if isinstance(read, TensorHint) else _ATTR
        if not pattern.fullmatch(name):
            rule = "a lower-case letter" if pattern is _INPUT else "a letter"
            self._refuse(
                name,
                f"is no name for an op: it begins with {rule}, then come letters, digits and _",
            )
        if isinstance(read, TensorHint):
            if parameter.kind is parameter.KEYWORD_ONLY:
                self._refuse(
                    name, "is an input by keyword alone; put the inputs first, before the *"
                )
            if parameter.default is not parameter.empty:
                self._refuse(
                    name, "is an input with a default; an op has all its inputs: take it out"
                )
        return read

    def _hint(self, name: str, hint: Any) -> TensorHint | AttrHint:
        try:
            hint = evaluated(hint, self._function, self._local_names)
            return tensor_hint(hint) or attr_hint(hint)
        except InvalidArgumentError as error:
            self._refuse(name, error.message)

    def _element(self, name: str, hint: TensorHint, *, is_input: bool) -> str:
        """The part of a spec after the colon; the attrs that an input determines are declared."""
        dtype = DataType.find(hint.type_word)
        element = hint.type_word if dtype is None else dtype.string
        if dtype is None:
            self._type_attr(name, element, is_input=is_input)
        if not hint.number_attr or self._type_of(element) == "list(type)":
            return element
        self._number_attr(name, hint.number_attr, is_input=is_input)
        return f"{hint.number_attr} * {element}"

    def _number_attr(self, name: str, number: str, *, is_input: bool) -> None:
        found = self._type_of(number)
        if found == "int":
            return
        if found or not _ATTR.fullmatch(number):
            why = f"an attr of type {found}" if found else "no name"
            self._refuse(name, f"is a list of {number!r} tensors, which is {why}; write 'N'")
        if not is_input:
            self._refuse(
                name,
                f"is a list whose length, the attr {number!r}, no input determines; make it a "
                f"parameter, {number}: int",
            )
        self.attrs[number] = OpDef.AttrDef(name=number, type="int")

    def _type_attr(self, name: str, word: str, *, is_input: bool) -> None:
        found = self._type_of(word)
        if found in ("type", "list(type)"):
            return
        if found or not _TYPE_ATTR.fullmatch(word):
            why = f"is an attr of type {found}" if found else "is no type"
            self._refuse(
                name,
                f"is of type {word!r}, which {why}; a type attr begins with a capital: Tensor['T']",
            )
        if not is_input:
            self._refuse(
                name,
                f"is of type {word!r}, which no input determines; write a type, Tensor['float'], or add the "
                "parameter dtype: DataType and write Tensor['dtype']",
            )
        self.attrs[word] = OpDef.AttrDef(name=word, type="type")

    def _type_of(self, attr: str) -> str:
        return self.attrs[attr].type if attr in self.attrs else ""

    def _attr(self, name: str, hint: AttrHint) -> OpDef.AttrDef:
        attr = OpDef.AttrDef(name=name, type=hint.type, allowed_values=hint.allowed_values())
        default = self._parameters[name].default
        if default is not inspect.Parameter.empty:
            try:
                attr.default_value.CopyFrom(attr_from_python(default, hint.type))
            except InvalidArgumentError as error:
                self._refuse(name, f"has a default that is not of its hint: {error.message}")
        return attr

    def read_result(self) -> tuple[list[str], Any]:
        """The specs of the outputs, and the class in which a call returns them."""
        annotation = inspect.signature(self._function).return_annotation
        if annotation is inspect.Signature.empty:
            self._refuse("return", "has no hint; write -> Tensor['T'], or -> None for no outputs")
        try:
            hint = evaluated(annotation, self._function, self._local_names)
        except InvalidArgumentError as error:
            self._refuse("return", error.message)
        if hint is None:
            return [], None
        if isinstance(hint, type) and hasattr(hint, "_fields"):
            named = inspect.get_annotations(hint)
        elif get_origin(hint) is tuple:
            named = {f"output_{index}": item for index, item in enumerate(get_args(hint))}
        else:
            return [*self._outputs({"output": hint})], None
        return [*self._outputs(named)], get_origin(hint) or hint

    def _outputs(self, named: Mapping[str, Any]) -> Iterator[str]:
        for name, hint in named.items():
            shown = "return" if name.startswith("output") else name
            if hint is ...:
                self._refuse(shown, "is a tuple of any length; write list[Tensor['T']]")
            read = self._hint(shown, hint)
            if isinstance(read, AttrHint):
                self._refuse(
                    shown, f"is no tensor but {hint!r}; write Tensor['T'] or Tensor['float']"
                )
            if not _INPUT.fullmatch(name):
                self._refuse(
                    shown, "is no name for an output: it has lower-case letters, digits and _"
                )
            yield f"{name}: {self._element(shown, read, is_input=False)}"

    def restrict(self, types: Types) -> None:
        """Let type attrs be some types alone."""
        for name, allowed in types.items():
            if self._type_of(name) not in ("type", "list(type)"):
                known = [n for n in self.attrs if self._type_of(n) in ("type", "list(type)")]
                raise self._error(
                    f"types= names {name!r}, which is no type attr of it; it has "
                    f"{', '.join(known) or 'none'}"
                )
            listed = [allowed] if isinstance(allowed, DataType | str) else allowed
            try:
                dtypes = [as_dtype(one) for one in listed]
            except OpError as error:
                raise self._error(f"types= of {name!r}: {error.message}") from None
            self.attrs[name].allowed_values.CopyFrom(
                AttrValue(list=AttrValue.ListValue(type=dtypes))
            )

    def _refuse(self, name: str, what: str) -> NoReturn:
        """Raise the error of a parameter, of an output, or of the result, whose name is `return`."""
        kind = "parameter" if name in self._parameters else "output"
        subject = "result" if name == "return" else f"{kind} {name!r}"
        raise self._error(f"its {subject} {what}") from None

    def _error(self, what: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self._function.__name__} makes no op: {what}")
