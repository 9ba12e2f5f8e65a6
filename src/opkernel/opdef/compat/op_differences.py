"""The differences of two definitions of an op, in words, whether they break anything or not; and when two are the same.

Two declarations are the same by content, attrs in any order. Defaults and allowed values are compared by their meaning
(`are_attr_values_equal`), everything else as it stands, documentation too. Hashes are 64-bit, the same in every process,
and not TensorFlow's numbers.

Source: TensorFlow core/framework/op_def_util.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.opdef.core.validate import are_attr_values_equal, attr_value_hash
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.opdef.text.summary import OP_FLAGS, summarize_args, summarize_attr_value
from opkernel.proto import AttrValue, OpDef


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


def op_differences(old: OpDef, new: OpDef) -> Iterator[str]:
    """The changes from one definition to the next; documentation does not count."""
    yield from _attr_differences(old, new)
    for what, before, now in (
        ("inputs", old.input_arg, new.input_arg),
        ("outputs", old.output_arg, new.output_arg),
    ):
        earlier, later = summarize_args(before), summarize_args(now)
        if earlier != later:
            yield f"{what} ({earlier}) -> ({later})"
    for flag in OP_FLAGS:
        if getattr(old, flag) != getattr(new, flag):
            yield f"{flag} {'set' if getattr(new, flag) else 'cleared'}"
    if old.deprecation.version != new.deprecation.version:
        yield f"deprecated from GraphDef version {new.deprecation.version} on"


def _attr_differences(old: OpDef, new: OpDef) -> Iterator[str]:
    before = {attr.name: attr for attr in old.attr}
    now = {attr.name: attr for attr in new.attr}
    for name in before:
        if name not in now:
            yield f"{name}: removed"
    for name, attr in now.items():
        if name in before:
            for difference in _differences_of_attr(before[name], attr):
                yield f"{name}: {difference}"
        else:
            yield f"{name}: {attr.type} added, {_default(attr)}"
    if before.keys() == now.keys() and list(before) != list(now):
        yield "attrs in another order"


def _differences_of_attr(old: OpDef.AttrDef, new: OpDef.AttrDef) -> Iterator[str]:
    if old.type != new.type:
        yield f"{old.type} -> {new.type}"
    has_default = old.HasField("default_value"), new.HasField("default_value")
    if has_default != (False, False) and not (
        has_default == (True, True) and are_attr_values_equal(old.default_value, new.default_value)
    ):
        yield f"{_default(old)} -> {_default(new)}"
    minimum = [attr.minimum if attr.has_minimum else None for attr in (old, new)]
    if minimum[0] != minimum[1]:
        yield f"minimum {minimum[0]} -> {minimum[1]}"
    if old.HasField("allowed_values") or new.HasField("allowed_values"):
        yield from _allowed_differences(old, new)


def _allowed_differences(old: OpDef.AttrDef, new: OpDef.AttrDef) -> Iterator[str]:
    if not new.HasField("allowed_values"):
        yield "allows any value"
    elif not old.HasField("allowed_values"):
        yield f"allows only {summarize_attr_value(new.allowed_values)}"
    else:
        before, now = _listed(old.allowed_values), _listed(new.allowed_values)
        signs = [f"+{value}" for value in now if value not in before]
        signs += [f"-{value}" for value in before if value not in now]
        if signs:
            yield " ".join(signs)
        elif before != now:
            yield "allowed values in another order"


def _listed(values: AttrValue) -> list[str]:
    types = [dtype_text(number) for number in values.list.type]
    return types + [repr(text.decode(errors="backslashreplace")) for text in values.list.s]


def _default(attr: OpDef.AttrDef) -> str:
    has_one = attr.HasField("default_value")
    return f"default {summarize_attr_value(attr.default_value)}" if has_one else "no default"
