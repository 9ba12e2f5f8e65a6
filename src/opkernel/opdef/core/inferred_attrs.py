"""Attrs that follow from the inputs of a call: types and numbers of inputs.

An attr is inferred where an input refers to it. A type comes from the first tensor among all
inputs that have it, else from the default of the attr where the value goes with it, else from the
first value. TensorFlow has this rule twice, for graphs and for eager calls. Here both share the rule;
each says which values count as tensors.

Source: TensorFlow python/framework/op_def_library.py, python/eager/execute.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.messages import short_repr
from opkernel.opdef.core.attr_value import attr_from_python, attr_to_python
from opkernel.opdef.core.declarations import find_attr, is_list_arg
from opkernel.proto import OpDef
from opkernel.types import DataType, as_dtype, can_become, natural_dtype

TypeOfTensor: TypeAlias = Callable[[Any], DataType | None]
"""The type of a tensor; None for a value that is to become one."""

_T = TypeVar("_T")
_Inferred = TypeVar("_Inferred", DataType, list[DataType])


def inferred_attr_names(op_def: OpDef) -> set[str]:
    """The attrs that inputs refer to."""
    refer = ((a.type_attr, a.number_attr, a.type_list_attr) for a in op_def.input_arg)
    return {name for names in refer for name in names if name}


class InputValues(NamedTuple):
    """The values of one input argument, and the type that each is wanted as."""

    arg: OpDef.ArgDef
    values: Sequence[Any]
    dtypes: Sequence[DataType]


class CallInputs:
    """The inputs of one call, sorted out.

    Attributes:
        arguments: the values by argument, in the order of the OpDef.
        attrs: the given and the inferred attrs.
    """

    def __init__(
        self,
        op_def: OpDef,
        inputs: Mapping[str, Any],
        attrs: dict[str, Any],
        type_of_tensor: TypeOfTensor,
    ) -> None:
        """Infer attrs.

        Args:
            op_def: the op.
            inputs: a value for each input argument; a list or tuple for a list argument.
            attrs: the given attrs, as Python values; inferred attrs are added.
            type_of_tensor: the type of a value that counts as a tensor; None for others.

        Raises:
            InvalidArgumentError: a list argument is no list or has a wrong length; a value makes
                no tensor.
        """
        self.attrs = attrs
        self._op_def = op_def
        self._type_of_tensor = type_of_tensor
        self._found_in: dict[str, str] = {}
        self._values = {arg.name: self._as_list(arg, inputs[arg.name]) for arg in op_def.input_arg}
        self.arguments = [self._argument(arg) for arg in op_def.input_arg]

    def mismatch(self, argument: InputValues, found: Iterable[DataType]) -> InvalidArgumentError:
        """The error for an argument whose tensors are not of the types wanted, but of others."""
        arg, op = argument.arg, self._op_def.name
        wanted = _names(dtype.base for dtype in dict.fromkeys(argument.dtypes))
        attr = arg.type_attr or arg.type_list_attr
        kind = "type list" if arg.type_list_attr else "type"
        fact = f"{kind} {wanted} of {self._origin(attr)}" if attr else f"expected type of {wanted}"
        if is_list_arg(arg):
            subject = f"Tensors in list passed to '{arg.name}' of '{op}' Op have types"
            return InvalidArgumentError(f"{subject} [{_names(found)}] that do not match {fact}")
        return InvalidArgumentError(
            f"Input '{arg.name}' of '{op}' Op has type {_names(found)} that does not match {fact}"
        )

    def _as_list(self, arg: OpDef.ArgDef, value: Any) -> Sequence[Any]:
        if not is_list_arg(arg):
            return (value,)
        if not isinstance(value, list | tuple):
            raise InvalidArgumentError(
                f"Expected list for '{arg.name}' argument to '{self._op_def.name}' Op, not "
                f"{short_repr(value)}"
            )
        return value

    def _argument(self, arg: OpDef.ArgDef) -> InputValues:
        values = self._values[arg.name]
        if arg.type_list_attr:
            return InputValues(arg, values, self._type_list(arg, values))
        if arg.number_attr:
            length = self.attrs.setdefault(arg.number_attr, len(values))
            self._check_length(arg, arg.number_attr, len(values), length)
        if arg.type_attr:
            given = self.attrs.get(arg.type_attr)
            dtype = self._find_type(arg) if given is None else as_dtype(given)
        else:
            dtype = DataType(arg.type)
        return InputValues(arg, values, [dtype] * len(values))

    def _type_list(self, arg: OpDef.ArgDef, values: Sequence[Any]) -> list[DataType]:
        types: list[DataType]
        given = self.attrs.get(arg.type_list_attr)
        if given is None:
            types = [self._natural_type(arg, value).base for value in values]
            self._note(arg.type_list_attr, types, arg)
            return types
        types = attr_to_python(attr_from_python(given, "list(type)"), "list(type)")
        self._check_length(arg, arg.type_list_attr, len(values), len(types))
        return types

    def _check_length(self, arg: OpDef.ArgDef, attr: str, length: int, wanted: int) -> None:
        if length == wanted:
            self._found_in.setdefault(attr, arg.name)
            return
        raise InvalidArgumentError(
            f"List argument '{arg.name}' of '{self._op_def.name}' Op has length {length} that "
            f"does not match length {wanted} of {self._origin(attr)}"
        )

    def _find_type(self, arg: OpDef.ArgDef) -> DataType:
        attr = arg.type_attr
        users = [user for user in self._op_def.input_arg if user.type_attr == attr]
        for user in users:
            for value in self._values[user.name]:
                dtype = self._type_by(self._type_of_tensor, user, value)
                if dtype is not None:
                    return self._note(attr, dtype.base, user)
        for user in users:
            for value in self._values[user.name]:
                return self._note(attr, self._type_of_value(user, value), user)
        default = self._default_type(attr)
        if default is None:
            raise InvalidArgumentError(
                f"Don't know how to infer type variable '{attr}' from empty input list passed to "
                f"input '{arg.name}' of '{self._op_def.name}' Op"
            )
        return self._note(attr, default, arg)

    def _type_by(self, type_of: Callable[[Any], _T], arg: OpDef.ArgDef, value: Any) -> _T:
        """What `type_of` says of a value; its errors name the argument."""
        try:
            return type_of(value)
        except OpError as error:
            raise InvalidArgumentError(
                f"Tried to convert '{arg.name}' of '{self._op_def.name}' Op to a tensor and failed: "
                f"{error.message}"
            ) from error

    def _natural_type(self, arg: OpDef.ArgDef, value: Any) -> DataType:
        """The type of a tensor, or the one that a value has by itself."""
        known = self._type_by(self._type_of_tensor, arg, value)
        return known or self._type_by(natural_dtype, arg, value)

    def _type_of_value(self, arg: OpDef.ArgDef, value: Any) -> DataType:
        """The default where the value goes with it, but rather a natural type that is allowed."""
        natural = self._natural_type(arg, value)
        default = self._default_type(arg.type_attr)
        declared = find_attr(self._op_def, arg.type_attr)
        if default is None or (declared and natural in declared.allowed_values.list.type):
            return natural
        return default if can_become(value, default) else natural

    def _default_type(self, attr: str) -> DataType | None:
        declared = find_attr(self._op_def, attr)
        if declared is None or not declared.HasField("default_value"):
            return None
        return DataType(declared.default_value.type)

    def _note(self, attr: str, value: _Inferred, arg: OpDef.ArgDef) -> _Inferred:
        """Set an attr, and remember which argument showed it."""
        self._found_in[attr] = arg.name
        self.attrs[attr] = value
        return value

    def _origin(self, attr: str) -> str:
        by = self._found_in.get(attr)
        return f"attr '{attr}'" if by is None else f"argument '{by}'"


def _names(dtypes: Iterable[DataType]) -> str:
    return ", ".join(dtype.tf_name for dtype in dtypes)
