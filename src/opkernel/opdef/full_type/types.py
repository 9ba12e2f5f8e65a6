"""The parts of full types, how types are declared, how they stand to each other, and how they read.

A type constructor declares the full type of an op's first output. Functions here make one, for
`register_op(type_constructor=...)`. The types that they declare are patterns: TFT_VAR stands for the value of an attr,
`specialize_type` fills it in for a node.

Source: TensorFlow core/framework/full_type.proto, full_type_util.cc, types.cc (map_dtype_to_tensor), core/graph/graph.cc
(AddNode).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from itertools import zip_longest

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef.core.op_def_builder import OpRegistrationData, OpTypeConstructor
from opkernel.opdef.core.validate import with_context
from opkernel.opdef.text.summary import format_node_def_for_error
from opkernel.proto import AttrValue, FullTypeDef, NodeDef, OpDef
from opkernel.types import DataType


class FullTypeId(enum.IntEnum):
    """The kind of a full type. Being ints, the members go straight into a FullTypeDef."""

    TFT_UNSET = 0
    """Nothing is known."""
    TFT_VAR = 1
    """The type that the attr named by `s` holds."""
    TFT_ANY = 2
    """Any type at all."""
    TFT_PRODUCT = 3
    """Several types side by side, such as the types of a node's outputs."""
    TFT_NAMED = 4
    TFT_FOR_EACH = 20
    """A container, a template, and the variable that takes one value after another in it."""
    TFT_CALLABLE = 100
    TFT_BOOL = 200
    TFT_UINT8 = 201
    TFT_UINT16 = 202
    TFT_UINT32 = 203
    TFT_UINT64 = 204
    TFT_INT8 = 205
    TFT_INT16 = 206
    TFT_INT32 = 207
    TFT_INT64 = 208
    TFT_HALF = 209
    TFT_FLOAT = 210
    TFT_DOUBLE = 211
    TFT_COMPLEX64 = 212
    TFT_COMPLEX128 = 213
    TFT_STRING = 214
    TFT_BFLOAT16 = 215
    TFT_TENSOR = 1000
    TFT_ARRAY = 1001
    """A list of tensors (TensorList)."""
    TFT_OPTIONAL = 1002
    TFT_LITERAL = 1003
    TFT_ENCODED = 1004
    """A value, and the type that it is written as."""
    TFT_SHAPE_TENSOR = 1005
    """A tensor that holds a shape."""
    TFT_DATASET = 10102
    TFT_RAGGED = 10103
    TFT_ITERATOR = 10104
    TFT_MUTEX_LOCK = 10202
    TFT_LEGACY_VARIANT = 10203
    """The type of a variant tensor that does not tell its own type."""


_OF_DTYPE: dict[int, FullTypeId] = {
    DataType[name.replace("TFT_", "DT_")]: number
    for name, number in FullTypeId.__members__.items()
    if FullTypeId.TFT_BOOL <= number < FullTypeId.TFT_BFLOAT16  # which TensorFlow's table lacks
}
_OF_DTYPE[DataType.DT_VARIANT] = FullTypeId.TFT_LEGACY_VARIANT


def full_type(type_id: int, *args: FullTypeDef) -> FullTypeDef:
    """A full type with arguments."""
    return FullTypeDef(type_id=type_id, args=args)


def map_dtype_to_tensor(dtype: int) -> FullTypeId:
    """The id of an element type; TFT_UNSET for a type without one, such as bfloat16."""
    return _OF_DTYPE.get(dtype, FullTypeId.TFT_UNSET)


def map_dtype_to_child_of_tensor(dtype: int) -> FullTypeDef:
    """The full type of a tensor of that element type."""
    return full_type(FullTypeId.TFT_TENSOR, full_type(map_dtype_to_tensor(dtype)))


def no_op() -> OpTypeConstructor | None:
    """No type constructor: types come from elsewhere."""
    return None


def no_outputs() -> OpTypeConstructor:
    """For an op without outputs."""
    return _declare_nothing


def nullary(type_id: int) -> OpTypeConstructor:
    """For an output of type `type_id`, without arguments."""
    return _declare(full_type(type_id))


def unary(type_id: int, var_name: str) -> OpTypeConstructor:
    """For an output of type `type_id[var_name]`, where `var_name` is a type attr."""
    return _declare(full_type(type_id, _var(var_name)))


def unary_generic(type_id: int) -> OpTypeConstructor:
    """For an output of type `type_id[TFT_ANY]`."""
    return _declare(full_type(type_id, full_type(FullTypeId.TFT_ANY)))


def unary_tensor_container(type_id: int, element: int | str) -> OpTypeConstructor:
    """For an output of type `type_id[TFT_TENSOR[element]]`: a FullTypeId, or a type attr's name."""
    element_type = _var(element) if isinstance(element, str) else full_type(element)
    return _declare(full_type(type_id, full_type(FullTypeId.TFT_TENSOR, element_type)))


def variadic_tensor_container(type_id: int, var_name: str) -> OpTypeConstructor:
    """For an output that holds one tensor for each type in the list attr `var_name`.

    The type is `type_id[TFT_PRODUCT[TFT_TENSOR[t0], TFT_TENSOR[t1], ...]]`.
    """
    product, var = full_type(FullTypeId.TFT_PRODUCT), _var(var_name)
    template = full_type(FullTypeId.TFT_TENSOR, var)
    return _declare(full_type(type_id, full_type(FullTypeId.TFT_FOR_EACH, product, template, var)))


def _var(name: str) -> FullTypeDef:
    return FullTypeDef(type_id=FullTypeId.TFT_VAR, s=name)


def _declare_nothing(op_def: OpDef) -> None:
    pass


def _declare(declared: FullTypeDef) -> OpTypeConstructor:
    def construct(op_def: OpDef) -> None:
        if not op_def.output_arg:
            raise InvalidArgumentError(
                f"Op {op_def.name} has a type constructor for its first output, but no output"
            )
        op_def.output_arg[0].experimental_full_type.CopyFrom(declared)

    return construct


_UNSET = FullTypeDef()
_ANY = FullTypeDef(type_id=FullTypeId.TFT_ANY)
_ON_HOST = frozenset({FullTypeId.TFT_DATASET, FullTypeId.TFT_MUTEX_LOCK, FullTypeId.TFT_STRING})
_WHERE_ITS_ELEMENT_IS = frozenset(
    {
        FullTypeId.TFT_TENSOR,
        FullTypeId.TFT_ARRAY,
        FullTypeId.TFT_RAGGED,
        FullTypeId.TFT_ITERATOR,
        FullTypeId.TFT_OPTIONAL,
    }
)


def get_arg_default_unset(full_type: FullTypeDef, index: int) -> FullTypeDef:
    """An argument of a type, for reading only; TFT_UNSET where the type has no such argument."""
    return full_type.args[index] if index < len(full_type.args) else _UNSET


def get_arg_default_any(full_type: FullTypeDef, index: int) -> FullTypeDef:
    """An argument of a type, for reading only; TFT_ANY where the type has none or an unset one."""
    return _any_if_unset(get_arg_default_unset(full_type, index))


def is_equal(lhs: FullTypeDef, rhs: FullTypeDef) -> bool:
    """Whether two types are the same; arguments that are missing, unset or any are all one."""
    if lhs.type_id != rhs.type_id or lhs.s != rhs.s:
        return False
    return all(is_equal(left, right) for left, right in _paired_args(lhs, rhs))


def is_subtype(lhs: FullTypeDef, rhs: FullTypeDef, covariant: bool = True) -> bool:
    """Whether every value of type `lhs` is one of type `rhs`.

    Each type is a subtype of TFT_ANY, of an unset type, and of a tensor of TFT_LEGACY_VARIANT. An
    encoded value is of the type that it is written as. All else must agree, and so must the
    arguments: as subtypes, or as supertypes if not `covariant`.
    """
    if rhs.type_id in (FullTypeId.TFT_ANY, FullTypeId.TFT_UNSET) or is_legacy_variant(rhs):
        return True
    if lhs.type_id == FullTypeId.TFT_ENCODED:
        return is_subtype(get_arg_default_any(lhs, 1), rhs)
    if lhs.type_id != rhs.type_id:
        return False
    pairs = _paired_args(lhs, rhs)
    if covariant:
        return all(is_subtype(left, right) for left, right in pairs)
    return all(is_subtype(right, left) for left, right in pairs)


def is_legacy_variant(full_type: FullTypeDef) -> bool:
    """Whether it is a tensor of unknown variants."""
    return (
        full_type.type_id == FullTypeId.TFT_TENSOR
        and get_arg_default_unset(full_type, 0).type_id == FullTypeId.TFT_LEGACY_VARIANT
    )


def is_host_memory_type(full_type: FullTypeDef) -> bool:
    """Whether values of the type stand in the memory of the host, wherever their op runs."""
    if full_type.type_id in _ON_HOST:
        return True
    if full_type.type_id == FullTypeId.TFT_PRODUCT:
        return any(map(is_host_memory_type, full_type.args))
    element = get_arg_default_any(full_type, 0)
    return full_type.type_id in _WHERE_ITS_ELEMENT_IS and is_host_memory_type(element)


def full_type_string(full_type: FullTypeDef) -> str:
    """The type on one line: `TFT_DATASET[TFT_TENSOR[TFT_INT32]]`, `TFT_VAR["T"]`."""
    args = [full_type_string(arg) for arg in full_type.args]
    if full_type.s:
        args.insert(0, f'"{full_type.s}"')
    name = type_id_name(full_type.type_id)
    return f"{name}[{', '.join(args)}]" if args else name


def type_id_name(type_id: int) -> str:
    """The name of a FullTypeId; the number of one that is not known."""
    try:
        return FullTypeId(type_id).name
    except ValueError:
        return str(type_id)


def _any_if_unset(full_type: FullTypeDef) -> FullTypeDef:
    return _ANY if full_type.type_id == FullTypeId.TFT_UNSET else full_type


def _paired_args(lhs: FullTypeDef, rhs: FullTypeDef) -> list[tuple[FullTypeDef, FullTypeDef]]:
    pairs = zip_longest(lhs.args, rhs.args, fillvalue=_ANY)
    return [(_any_if_unset(left), _any_if_unset(right)) for left, right in pairs]


def full_type_of_node(node_def: NodeDef, registration: OpRegistrationData) -> FullTypeDef | None:
    """The full type of a node by itself: the type that it carries, or the declaration of its op.

    Returns:
        A TFT_PRODUCT of one type for each output argument; None where nothing is declared.

    Raises:
        InvalidArgumentError: the op's types do not fit the attrs.
    """
    if node_def.HasField("experimental_type"):
        return node_def.experimental_type
    op_def = registration.op_def
    declares_types = registration.type_constructor is not None or any(
        output.HasField("experimental_full_type") for output in op_def.output_arg
    )
    if registration.is_function_op or not declares_types:
        return None
    try:
        return specialize_type(node_def, op_def)
    except OpError as error:
        message = f"type error: {error.message}"
        raise InvalidArgumentError(message, node=node_def.name, op=node_def.op) from error


def specialize_type(node_def: NodeDef, op_def: OpDef) -> FullTypeDef:
    """A TFT_PRODUCT of the types that an op declares for its outputs, for one node.

    In them a TFT_VAR becomes the type in the attr it names, and a TFT_FOR_EACH one copy of its
    template for each type in a list. A container of variants that tell nothing loses its
    arguments. Attrs that the node leaves out count with their defaults.

    Raises:
        InvalidArgumentError: a declared type is malformed or names an attr that is missing.
        UnimplementedError: it names an attr that holds no type, or no list of types.
    """
    attrs = {
        attr.name: attr.default_value for attr in op_def.attr if attr.HasField("default_value")
    }
    attrs.update(node_def.attr)
    product = FullTypeDef(type_id=FullTypeId.TFT_PRODUCT)
    for output in op_def.output_arg:
        declared = output.experimental_full_type
        try:
            product.args.append(_substitute(attrs, declared))
        except OpError as error:
            context = (
                f"while expanding vars of {full_type_string(declared)} "
                f"from {format_node_def_for_error(node_def)}"
            )
            raise with_context(error, context) from None
    return product


def _substitute(attrs: Mapping[str, AttrValue], declared: FullTypeDef) -> FullTypeDef:
    if declared.type_id == FullTypeId.TFT_VAR:
        return _substitute_var(attrs, declared)
    if declared.type_id == FullTypeId.TFT_FOR_EACH:
        return _substitute_for_each(attrs, declared)
    result = FullTypeDef(type_id=declared.type_id)
    if declared.HasField("s"):
        result.s = declared.s
    for arg in declared.args:
        result.args.append(_substitute(attrs, arg))
        if is_legacy_variant(result.args[-1]):
            del result.args[:]
            break
    return result


def _substitute_var(attrs: Mapping[str, AttrValue], var: FullTypeDef) -> FullTypeDef:
    if var.args:
        raise InvalidArgumentError(
            f"Unexpected Var type, expected args_size 0, found {len(var.args)}"
        )
    types, is_list = _types_of(attrs, var.s)
    if is_list and len(types) != 1:
        raise UnimplementedError(f"lists or other than one type element: attr '{var.s}'")
    return FullTypeDef(type_id=map_dtype_to_tensor(types[0]))


def _substitute_for_each(attrs: Mapping[str, AttrValue], for_each: FullTypeDef) -> FullTypeDef:
    if len(for_each.args) != 3:
        raise InvalidArgumentError(
            f"illegal FOR_EACH type, expected 3 args, got {len(for_each.args)}"
        )
    container, template, var = for_each.args
    types, is_list = _types_of(attrs, var.s)
    if is_list and not types:
        raise UnimplementedError(f"unsupported list attribute type: attr '{var.s}'")
    bindings = [{**attrs, var.s: AttrValue(type=dtype)} for dtype in types]
    args = [_substitute(binding, template) for binding in bindings]
    return FullTypeDef(type_id=container.type_id, args=args)


def _types_of(attrs: Mapping[str, AttrValue], name: str) -> tuple[list[int], bool]:
    """The types that an attr holds, and whether they are a list."""
    if name not in attrs:
        raise InvalidArgumentError(f"could not find an attribute for key '{name}'")
    value = attrs[name]
    kind = value.WhichOneof("value")
    if kind not in ("type", "list"):
        raise UnimplementedError(f"unsupported attribute type {kind} for name '{name}'")
    return (list(value.list.type), True) if kind == "list" else ([value.type], False)
