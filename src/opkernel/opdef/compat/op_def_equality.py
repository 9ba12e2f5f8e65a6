"""When two declarations are the same: OpDefs and AttrDefs by content, attrs in any order.

Defaults and allowed values are compared by their meaning (`are_attr_values_equal`), everything
else as it stands, documentation too. Hashes are 64-bit, the same in every process, and not
TensorFlow's numbers.

Source: TensorFlow core/framework/op_def_util.cc.
"""

from collections.abc import Iterable

from opkernel.opdef.core.attr_value_check import are_attr_values_equal, attr_value_hash
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.proto import OpDef


def attr_def_equal(a: OpDef.AttrDef, b: OpDef.AttrDef) -> bool:
    """Whether two AttrDefs are the same in every field (AttrDefEqual).

    A minimum counts only where there is one.
    """
    return (
        _plain_fields(a) == _plain_fields(b)
        and are_attr_values_equal(a.default_value, b.default_value)
        and are_attr_values_equal(a.allowed_values, b.allowed_values)
    )


def attr_def_hash(attr: OpDef.AttrDef) -> int:
    """A hash that equal AttrDefs share."""
    values = attr_value_hash(attr.default_value), attr_value_hash(attr.allowed_values)
    return _hash_of(_plain_fields(attr), *values)


def _plain_fields(attr: OpDef.AttrDef) -> tuple[object, ...]:
    minimum = attr.minimum if attr.has_minimum else None
    return attr.name, attr.type, attr.description, minimum


def repeated_attr_def_equal(a: Iterable[OpDef.AttrDef], b: Iterable[OpDef.AttrDef]) -> bool:
    """Whether two lists hold equal AttrDefs, in any order (RepeatedAttrDefEqual).

    As in TensorFlow, of several AttrDefs of one name in `a` the last counts; in `b` a name that
    comes twice makes the lists differ.
    """
    left = {attr.name: attr for attr in a}
    for attr in b:
        other = left.pop(attr.name, None)
        if other is None or not attr_def_equal(other, attr):
            return False
    return not left


def repeated_attr_def_hash(attrs: Iterable[OpDef.AttrDef]) -> int:
    """A hash that equal lists of AttrDefs with distinct names share, in any order."""
    return _hash_of(*sorted((attr.name, attr_def_hash(attr)) for attr in attrs))


def op_def_equal(a: OpDef, b: OpDef) -> bool:
    """Whether two ops are declared alike (OpDefEqual).

    The order of inputs and outputs matters, the order of attrs and of control outputs does not.
    """
    return (
        repeated_attr_def_equal(a.attr, b.attr)
        and sorted(a.control_output) == sorted(b.control_output)
        and _bytes_of_rest(a) == _bytes_of_rest(b)
    )


def op_def_hash(op_def: OpDef) -> int:
    """A hash that equal OpDefs share."""
    attrs = repeated_attr_def_hash(op_def.attr)
    return _hash_of(attrs, sorted(op_def.control_output), _bytes_of_rest(op_def))


def _bytes_of_rest(op_def: OpDef) -> bytes:
    """Everything but attrs and control outputs."""
    rest = OpDef()
    rest.CopyFrom(op_def)
    rest.ClearField("attr")
    rest.ClearField("control_output")
    return rest.SerializeToString(deterministic=True)


def _hash_of(*parts: object) -> int:
    return fingerprint64(repr(parts).encode("utf-8", "surrogatepass"))
