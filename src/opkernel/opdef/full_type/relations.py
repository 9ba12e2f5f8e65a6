"""How full types stand to each other, and how they read.

Source: TensorFlow core/framework/full_type_util.cc.
"""

from itertools import zip_longest

from opkernel.opdef.full_type.type_id import FullTypeId
from opkernel.proto import FullTypeDef

__all__ = [
    "full_type_string",
    "get_arg_default_any",
    "get_arg_default_unset",
    "is_equal",
    "is_host_memory_type",
    "is_subtype",
    "type_id_name",
]

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
