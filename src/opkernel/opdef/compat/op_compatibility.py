"""Whether a changed op still takes the graphs that were made for it before.

Each rule is written once, as a generator of the `OpChange`s that break it. The functions with
TensorFlow's names raise for the first one, tools list them all.

Source: TensorFlow core/framework/op_def_util.cc.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.node_def import MAX_LIST_TENSORS
from opkernel.opdef.core.validate import are_attr_values_equal
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.opdef.text.summary import summarize_attr_value, summarize_op_def
from opkernel.proto import AttrValue, OpDef

Attrs = Mapping[str, OpDef.AttrDef]


class CompatibilityRule(enum.Enum):
    """Ways in which a change of an op may break users; the value is the name in reports."""

    OP_REMOVED = "op-removed"
    ATTR_REMOVED = "attr-removed"
    ATTR_TYPE_CHANGED = "attr-type-changed"
    ATTR_VALUES_STRICTER = "attr-values-stricter"
    ATTR_MINIMUM_HIGHER = "attr-minimum-higher"
    ATTR_WITHOUT_DEFAULT = "attr-without-default"
    INPUT_SIGNATURE = "input-signature"
    INPUT_TO_REF = "input-to-ref"
    OUTPUT_SIGNATURE = "output-signature"
    OUTPUT_FROM_REF = "output-from-ref"
    DEFAULT_REMOVED = "default-removed"
    DEFAULT_CHANGED = "default-changed"
    ADDED_DEFAULT_CHANGED = "added-default-changed"
    DEPRECATED = "deprecated"
    INPUT_RENAMED = "input-renamed"

    @property
    def breaks_graphs(self) -> bool:
        """Whether TensorFlow refuses the change; the others are told for the sake of callers."""
        return self not in (CompatibilityRule.DEPRECATED, CompatibilityRule.INPUT_RENAMED)


_Rule = CompatibilityRule


class OpChange(NamedTuple):
    """A change of an op that breaks a rule.

    Attributes:
        rule: The rule.
        fact: The change, with the old and the new value.
        old: The op before.
        new: The op now; None where it was removed.
        part: The name of the attr, or the index of the input or output, that it is about; "" for
            the op as a whole.
    """

    rule: CompatibilityRule
    fact: str
    old: OpDef
    new: OpDef | None
    part: str = ""

    @property
    def op(self) -> str:
        """The name of the op."""
        return self.old.name


def op_def_compatible(old: OpDef, new: OpDef) -> None:
    """Check that `new` takes every graph that was made for `old` (OpDefCompatible).

    Defaults of attrs that both have are not looked at, nor are flags, deprecation and
    documentation. Both are to be valid OpDefs.

    Raises:
        InvalidArgumentError: it does not; the message names the change, and shows both ops.
    """
    for change in incompatible_changes(old, new):
        raise InvalidArgumentError(
            f"Incompatible Op change: {change.fact}; old: {summarize_op_def(old)}; "
            f"new: {summarize_op_def(new)}"
        )


def op_def_attr_defaults_unchanged(old: OpDef, new: OpDef) -> None:
    """Check that no default of an attr was removed or changed; one may be added.

    Raises:
        InvalidArgumentError: one was (OpDefAttrDefaultsUnchanged).
    """
    for change in changed_attr_defaults(old, new):
        raise InvalidArgumentError(change.fact)


def op_def_added_defaults_unchanged(old: OpDef, penultimate: OpDef, new: OpDef) -> None:
    """Check the defaults of attrs that came after `old` and up to `penultimate`.

    Graphs older than such an attr are given its default, so the default must not change.

    Raises:
        InvalidArgumentError: one was changed or is missing (OpDefAddedDefaultsUnchanged).
    """
    for change in changed_added_defaults(old, penultimate, new):
        raise InvalidArgumentError(f"{change.fact} in op: {summarize_op_def(new)}")


def incompatible_changes(old: OpDef, new: OpDef) -> Iterator[OpChange]:
    """The changes that `op_def_compatible` refuses, in TensorFlow's order.

    Signatures are not compared where they name an attr that was added without default.
    """
    if old.name != new.name:
        yield OpChange(_Rule.OP_REMOVED, "Name mismatch", old, new)
        return
    old_attrs, new_attrs = _attrs_by_name(old), _attrs_by_name(new)
    for attr in old.attr:
        yield from _narrowed_attr(old, new, attr, new_attrs.get(attr.name))
    added = [attr for attr in new.attr if attr.name not in old_attrs]
    without_default = [attr.name for attr in added if not attr.HasField("default_value")]
    for name in without_default:
        fact = f"Attr '{name}' added without default"
        yield OpChange(_Rule.ATTR_WITHOUT_DEFAULT, fact, old, new, name)
    args = [*new.input_arg, *new.output_arg]
    named = {n for arg in args for n in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    if named.isdisjoint(without_default):
        yield from _changed_args(old, new, old_attrs, new_attrs, are_outputs=False)
        yield from _changed_args(old, new, old_attrs, new_attrs, are_outputs=True)


def _attrs_by_name(op_def: OpDef) -> Attrs:
    return {attr.name: attr for attr in op_def.attr}


def _narrowed_attr(
    old: OpDef, new: OpDef, before: OpDef.AttrDef, now: OpDef.AttrDef | None
) -> Iterator[OpChange]:
    """How an attr takes less than before."""
    name = before.name
    if now is None:
        yield OpChange(_Rule.ATTR_REMOVED, f"Attr '{name}' removed", old, new, name)
        return
    if before.type != now.type:
        fact = f"Attr '{name}' changed type '{before.type}' -> '{now.type}'"
        yield OpChange(_Rule.ATTR_TYPE_CHANGED, fact, old, new, name)
        return
    if _is_stricter(before, now):
        values = f"from {_allowed_text(before)} to {_allowed_text(now)}"
        fact = f"Attr '{name}' has a stricter set of allowed values; {values}"
        yield OpChange(_Rule.ATTR_VALUES_STRICTER, fact, old, new, name)
    if now.has_minimum and (not before.has_minimum or now.minimum > before.minimum):
        minimum = before.minimum if before.has_minimum else "no minimum"
        fact = f"Attr '{name}' has a higher minimum; from {minimum} to {now.minimum}"
        yield OpChange(_Rule.ATTR_MINIMUM_HIGHER, fact, old, new, name)


def _is_stricter(before: OpDef.AttrDef, now: OpDef.AttrDef) -> bool:
    if not now.HasField("allowed_values"):
        return False
    if not before.HasField("allowed_values"):
        return True
    earlier, later = before.allowed_values.list, now.allowed_values.list
    return not (set(earlier.type) <= set(later.type) and set(earlier.s) <= set(later.s))


def _allowed_text(attr: OpDef.AttrDef) -> str:
    has_some = attr.HasField("allowed_values")
    return summarize_attr_value(attr.allowed_values) if has_some else "no restriction"


def _default_text(attr: OpDef.AttrDef) -> str:
    has_one = attr.HasField("default_value")
    return summarize_attr_value(attr.default_value) if has_one else "no default"


def _changed_args(
    old: OpDef, new: OpDef, old_attrs: Attrs, new_attrs: Attrs, *, are_outputs: bool
) -> Iterator[OpChange]:
    """How the inputs or the outputs differ; outputs by their names, too."""
    what, field = ("Output", "output_arg") if are_outputs else ("Input", "input_arg")
    before, was_ref = _signature(old, getattr(old, field), old_attrs, new_attrs, are_outputs)
    now, is_ref = _signature(new, getattr(new, field), old_attrs, new_attrs, are_outputs)
    if before != now:
        fact = f"{what} signature mismatch '{', '.join(before)}' vs. '{', '.join(now)}'"
        rule = _Rule.OUTPUT_SIGNATURE if are_outputs else _Rule.INPUT_SIGNATURE
        yield OpChange(rule, fact, old, new)
        return
    for i in range(len(now)):
        if are_outputs and was_ref[i] and not is_ref[i]:
            fact = f"Output {i} changed from ref to non-ref"
            yield OpChange(_Rule.OUTPUT_FROM_REF, fact, old, new, str(i))
        elif not are_outputs and is_ref[i] and not was_ref[i]:
            fact = f"Input {i} changed from non-ref to ref"
            yield OpChange(_Rule.INPUT_TO_REF, fact, old, new, str(i))


def _signature(
    op_def: OpDef,
    args: Iterable[OpDef.ArgDef],
    old_attrs: Attrs,
    new_attrs: Attrs,
    with_names: bool,
) -> tuple[list[str], list[bool]]:
    """The args as a graph of the old op sees them; and whether each is a reference.

    An attr that the old op has stands by its name: `N * T`. An added attr has its default in such
    graphs. The default stands in the attr's place, so that the signatures of both ops can be compared.
    """
    parts: list[str] = []
    refs: list[bool] = []
    for arg in args:
        types = [
            f"{arg.name}:{text}" if with_names else text
            for text in _types_text(op_def, arg, old_attrs, new_attrs)
        ]
        parts += types
        refs += [arg.is_ref] * len(types)
    return parts, refs


def _types_text(op_def: OpDef, arg: OpDef.ArgDef, old_attrs: Attrs, new_attrs: Attrs) -> list[str]:
    """The types of an argument, one for each tensor where the number is known."""

    def default_of(name: str) -> AttrValue:
        if name not in new_attrs:
            raise InvalidArgumentError(
                f"Argument '{arg.name}' refers to attr '{name}', which its op lacks: "
                f"{summarize_op_def(op_def)}"
            )
        return new_attrs[name].default_value

    if arg.type_list_attr:
        if arg.type_list_attr in old_attrs:
            return [arg.type_list_attr]
        return [dtype_text(number) for number in default_of(arg.type_list_attr).list.type]
    if arg.type:
        text = dtype_text(arg.type)
    elif arg.type_attr in old_attrs:
        text = arg.type_attr
    else:
        text = dtype_text(default_of(arg.type_attr).type)
    if not arg.number_attr:
        return [text]
    if arg.number_attr in old_attrs:
        return [f"{arg.number_attr} * {text}"]
    number = default_of(arg.number_attr).i
    if number > MAX_LIST_TENSORS:
        raise InvalidArgumentError(
            f"Attr '{arg.number_attr}' of {op_def.name} makes '{arg.name}' {number} tensors long; "
            f"at most {MAX_LIST_TENSORS} are supported"
        )
    return [text] * number


def changed_attr_defaults(old: OpDef, new: OpDef) -> Iterator[OpChange]:
    """The changes that `op_def_attr_defaults_unchanged` refuses."""
    new_attrs = _attrs_by_name(new)
    for before in old.attr:
        now = new_attrs.get(before.name)
        if now is None or not before.HasField("default_value"):
            continue
        values = f"from {_default_text(before)} to {_default_text(now)}"
        if not now.HasField("default_value"):
            fact = f"Attr '{before.name}' has removed its default; {values}"
            yield OpChange(_Rule.DEFAULT_REMOVED, fact, old, new, before.name)
        elif not are_attr_values_equal(before.default_value, now.default_value):
            fact = f"Attr '{before.name}' has changed its default value; {values}"
            yield OpChange(_Rule.DEFAULT_CHANGED, fact, old, new, before.name)


def changed_added_defaults(old: OpDef, penultimate: OpDef, new: OpDef) -> Iterator[OpChange]:
    """The changes that `op_def_added_defaults_unchanged` refuses."""
    old_attrs, new_attrs = _attrs_by_name(old), _attrs_by_name(new)
    for before in penultimate.attr:
        if before.name in old_attrs:
            continue
        now = new_attrs.get(before.name)
        if now is None:
            fact = f"Missing attr '{before.name}'"
        elif not before.HasField("default_value") or not now.HasField("default_value"):
            fact = f"Missing default for attr '{before.name}'"
        elif are_attr_values_equal(before.default_value, now.default_value):
            continue
        else:
            default = _default_text(before)
            fact = f"Can't change default value for attr '{before.name}' from {default}"
        yield OpChange(_Rule.ADDED_DEFAULT_CHANGED, fact, penultimate, new, before.name)


def changes_for_callers(old: OpDef, new: OpDef) -> Iterator[OpChange]:
    """Changes that TensorFlow's check lets pass, and that callers of the op should know."""
    before, now = old.deprecation.version, new.deprecation.version
    if new.HasField("deprecation") and not (old.HasField("deprecation") and before <= now):
        fact = f"deprecated from GraphDef version {now} on"
        yield OpChange(_Rule.DEPRECATED, fact, old, new)
    if len(old.input_arg) != len(new.input_arg):
        return
    for i, (left, right) in enumerate(zip(old.input_arg, new.input_arg, strict=True)):
        if left.name != right.name:
            fact = f"Input {i} renamed from '{left.name}' to '{right.name}'"
            yield OpChange(_Rule.INPUT_RENAMED, fact, old, new, str(i))
