"""The differences of two definitions of an op, in words, whether they break anything or not."""

from collections.abc import Iterator

from opkernel.opdef.core.attr_value_check import are_attr_values_equal
from opkernel.opdef.text.attr_value_text import dtype_text, summarize_attr_value
from opkernel.opdef.text.summary import OP_FLAGS, summarize_args
from opkernel.proto import AttrValue, OpDef


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
    for name in before.keys() - now.keys():
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
