"""The changes that TensorFlow's own op_compatibility_test.cc accepts and refuses, and more."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    NodeDefBuilder,
    OpDefBuilder,
    OpListOpRegistry,
    add_defaults_to_node_def,
    fake_input,
    op_def_added_defaults_unchanged,
    op_def_attr_defaults_unchanged,
    op_def_compatible,
    validate_node_def,
    validate_op_def,
)
from opkernel.opdef.compat.op_compatibility import (
    changed_attr_defaults,
    changes_for_callers,
    incompatible_changes,
)
from opkernel.proto import OpDef, OpList
from opkernel.types import DataType


def op(spec, name="Op"):
    """An op from `a: T -> b: T; T: type; N: int = 1`: inputs, outputs, then attrs."""
    signature, *attrs = spec.split(";")
    inputs, outputs = signature.split("->")
    builder = OpDefBuilder(name)
    for text in filter(None, map(str.strip, inputs.split(","))):
        builder.input(text)
    for text in filter(None, map(str.strip, outputs.split(","))):
        builder.output(text)
    for text in attrs:
        builder.attr(text.strip())
    op_def = builder.finalize().op_def
    validate_op_def(op_def)
    return op_def


ACCEPTED = {
    "same": ("a: T, b: N * T, c: L -> d: string; T: type; N: int; L: list(type)",) * 2,
    "attr with a default": ("-> d: string", "-> d: string; a: int = 42"),
    "fewer restrictions": (
        "-> d: string; a: {'A', 'B'}",
        "-> d: string; a: {'A', 'B', 'C'}",
    ),
    "no restriction": ("-> d: string; a: {'A', 'B'}", "-> d: string; a: string"),
    "attrs in another order": (
        "-> d: string; b: bool; a: int",
        "-> d: string; a: int; b: bool",
    ),
    "polymorphic": ("a: int32 -> d: int32", "a: T -> d: T; T: type = DT_INT32"),
    "list of one": ("a: int32 -> d: string", "a: N * int32 -> d: string; N: int = 1"),
    "polymorphic list of one": (
        "a: int32 -> d: string",
        "a: N * T -> d: string; N: int = 1; T: type = DT_INT32",
    ),
    "list of any one": (
        "a: int32 -> d: string",
        "a: L -> d: string; L: list(type) = [DT_INT32]",
    ),
    "polymorphic into list": (
        "a: T -> d: string; T: type",
        "a: N * T -> d: string; N: int = 1; T: type",
    ),
    "list of two": (
        "a: int32, b: int32 -> d: string",
        "a: N * int32 -> d: string; N: int = 2",
    ),
    "list of any two": (
        "a: int32, b: float -> d: string",
        "a: L -> d: string; L: list(type) = [DT_INT32, DT_FLOAT]",
    ),
    "inputs renamed": ("a: int32 -> d: string", "b: int32 -> d: string"),
    "no ints added": ("-> d: string", "a: N * int32 -> d: string; N: int >= 0 = 0"),
    "empty list added": (
        "-> d: string",
        "a: L -> d: string; L: list(type) >= 0 = []",
    ),
    "none of an attr's type added": (
        "a: T -> d: string; T: type",
        "a: T, b: N * T -> d: string; T: type; N: int >= 0 = 0",
    ),
    "shorter list": (
        "a: L -> d: string; L: list(type) >= 2",
        "a: L -> d: string; L: list(type) >= 1",
    ),
    "shorter list of ints": (
        "a: N * int32 -> d: string; N: int >= 2",
        "a: N * int32 -> d: string; N: int >= 1",
    ),
    "no minimum": ("-> d: string; n: int >= 3", "-> d: string; n: int"),
    "input no longer a ref": ("a: Ref(int32) -> d: string", "a: int32 -> d: string"),
    "output a ref": ("-> d: int32", "-> d: Ref(int32)"),
    "another default": ("-> d: string; a: int = 1", "-> d: string; a: int = 2"),
}

REFUSED = {
    "attr removed": ("-> ; a: int", "->", "Attr 'a' removed"),
    "attr without default": ("->", "-> ; a: int", "Attr 'a' added without default"),
    "input added": ("->", "a: int32 ->", "Input signature mismatch '' vs. 'int32'"),
    "ints added": ("->", "a: N * int32 ->; N: int = 1", "Input signature mismatch '' vs. 'int32'"),
    "ints of an attr added": (
        "->",
        "a: N * T ->; N: int = 1; T: type = DT_INT32",
        "Input signature mismatch '' vs. 'int32'",
    ),
    "list added": (
        "->",
        "a: L ->; L: list(type) = [DT_INT32]",
        "Input signature mismatch '' vs. 'int32'",
    ),
    "type changed": ("a: int32 ->", "a: float ->", "Input signature mismatch 'int32' vs. 'float'"),
    "order changed": (
        "a: int32, b: float ->",
        "b: float, a: int32 ->",
        "Input signature mismatch 'int32, float' vs. 'float, int32'",
    ),
    "input removed": ("a: float ->", "->", "Input signature mismatch 'float' vs. ''"),
    "attr's type changed": (
        "-> ; a: int",
        "-> ; a: float",
        "Attr 'a' changed type 'int' -> 'float'",
    ),
    "attr no list": (
        "-> ; a: list(int)",
        "-> ; a: int",
        "Attr 'a' changed type 'list(int)' -> 'int'",
    ),
    "restricted": (
        "-> ; a: type",
        "-> ; a: {float, int32}",
        "Attr 'a' has a stricter set of allowed values; from no restriction to [DT_FLOAT, DT_INT32]",
    ),
    "more restricted": (
        "-> ; a: {'A', 'B'}",
        "-> ; a: {'A'}",
        'Attr \'a\' has a stricter set of allowed values; from ["A", "B"] to ["A"]',
    ),
    "minimum added": (
        "-> ; n: int",
        "-> ; n: int >= 3",
        "Attr 'n' has a higher minimum; from no minimum to 3",
    ),
    "minimum raised": (
        "-> ; n: int >= 1",
        "-> ; n: int >= 2",
        "Attr 'n' has a higher minimum; from 1 to 2",
    ),
    "input a ref": ("a: int32 ->", "a: Ref(int32) ->", "Input 0 changed from non-ref to ref"),
    "output no ref": (
        "-> x: int32, d: Ref(int32)",
        "-> x: int32, d: int32",
        "Output 1 changed from ref to non-ref",
    ),
    "output renamed": (
        "-> old: int32",
        "-> new: int32",
        "Output signature mismatch 'old:int32' vs. 'new:int32'",
    ),
    "outputs renamed": (
        "-> old: N * int32; N: int",
        "-> new: N * int32; N: int",
        "Output signature mismatch 'old:N * int32' vs. 'new:N * int32'",
    ),
    "output list renamed": (
        "-> old: T; T: list(type)",
        "-> new: T; T: list(type)",
        "Output signature mismatch 'old:T' vs. 'new:T'",
    ),
    "default of another type": (
        "a: int32 ->",
        "a: T ->; T: type = DT_FLOAT",
        "Input signature mismatch 'int32' vs. 'float'",
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_changes(name):
    old, new = map(op, ACCEPTED[name])
    op_def_compatible(old, new)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_changes(name):
    before, now, fact = REFUSED[name]
    with pytest.raises(InvalidArgumentError) as caught:
        op_def_compatible(op(before), op(now))
    assert str(caught.value).startswith(f"Incompatible Op change: {fact}; old: Op<name=Op; ")
    assert "; new: Op<name=Op; " in str(caught.value)


VALUES = {"type": DataType.DT_INT32, "int": 3, "string": "A", "bool": True}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_node_of_the_old_op_is_valid_for_the_new_one(name):
    old, new = map(op, ACCEPTED[name])
    builder = NodeDefBuilder("n", "Op", OpListOpRegistry(OpList(op=[old])))
    inferred = set()
    for arg in old.input_arg:
        inferred |= {arg.type_attr, arg.number_attr, arg.type_list_attr}
        if arg.type_list_attr:
            builder.input(fake_input([DataType.DT_INT32, DataType.DT_FLOAT]))
        else:
            dtype = DataType.DT_INT32 if arg.type_attr else None
            builder.input(fake_input(3, dtype) if arg.number_attr else fake_input(dtype))
    for attr in old.attr:
        if attr.name not in inferred:
            builder.attr(attr.name, VALUES[attr.type])
    node = builder.finalize()
    validate_node_def(node, old)
    add_defaults_to_node_def(node, new)
    validate_node_def(node, new)


def test_names_must_agree():
    with pytest.raises(InvalidArgumentError, match="Incompatible Op change: Name mismatch; old: "):
        op_def_compatible(op("->", "A"), op("->", "B"))


def test_flags_and_documentation_do_not_count():
    old = OpDefBuilder("Op").finalize().op_def
    builder = OpDefBuilder("Op").set_is_stateful().set_is_commutative().set_is_aggregate()
    op_def_compatible(old, builder.deprecated(3, "gone").doc("Does it.").finalize().op_def)


def test_every_change_is_listed():
    old = op("a: int32 -> x: T; T: {float, half}; n: int = 1; gone: int")
    new = op("a: float -> y: T; T: {float}; n: int >= 2 = 3")
    assert [(c.rule.value, c.part) for c in incompatible_changes(old, new)] == [
        ("attr-values-stricter", "T"),
        ("attr-minimum-higher", "n"),
        ("attr-removed", "gone"),
        ("input-signature", ""),
        ("output-signature", ""),
    ]
    assert [(c.rule.value, c.part) for c in changed_attr_defaults(old, new)] == [
        ("default-changed", "n")
    ]


def test_a_signature_that_needs_a_missing_default_is_not_compared():
    changes = list(incompatible_changes(op("a: int32 -> x: int32"), op("a: T -> x: T; T: type")))
    assert [change.rule.value for change in changes] == ["attr-without-default"]


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ("-> ; a: int", "-> ; a: int = 1", None),  # a new default is safe
        ("-> ; a: int = 1", "-> ; a: int = 1", None),
        ("-> ; a: int = 1", "-> ; b: int", None),  # op_def_compatible's business
        (
            "-> ; a: int = 91",
            "-> ; a: int",
            "Attr 'a' has removed its default; from 91 to no default",
        ),
        (
            "-> ; a: int = 1",
            "-> ; a: int = 2",
            "Attr 'a' has changed its default value; from 1 to 2",
        ),
        (
            "-> ; a: list(int) = []",
            "-> ; a: list(int) = [1]",
            "Attr 'a' has changed its default value; from [] to [1]",
        ),
    ],
)
def test_defaults(before, now, message):
    if message is None:
        op_def_attr_defaults_unchanged(op(before), op(now))
        return
    with pytest.raises(InvalidArgumentError, match=f"^{re.escape(message)}$"):
        op_def_attr_defaults_unchanged(op(before), op(now))


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ("-> ; a: int = 1", "-> ; a: int = 1; b: int = 5", None),
        (
            "-> ; a: int = 1",
            "-> ; a: int = 2",
            "Can't change default value for attr 'a' from 1 in op: Op<name=Op; ",
        ),
        ("-> ; a: int = 1", "->", "Missing attr 'a' in op: Op<name=Op; "),
        ("-> ; a: int = 1", "-> ; a: int", "Missing default for attr 'a' in op: Op<name=Op; "),
        ("-> ; a: int", "-> ; a: int = 1", "Missing default for attr 'a' in op: Op<name=Op; "),
    ],
)
def test_defaults_of_added_attrs(before, now, message):
    if message is None:
        op_def_added_defaults_unchanged(op("->"), op(before), op(now))
        return
    with pytest.raises(InvalidArgumentError) as caught:
        op_def_added_defaults_unchanged(op("->"), op(before), op(now))
    assert str(caught.value).startswith(message)


def test_attrs_that_the_first_version_had_may_change_their_default():
    first, penultimate, now = op("-> ; a: int"), op("-> ; a: int = 1"), op("-> ; a: int = 2")
    op_def_added_defaults_unchanged(first, penultimate, now)


def test_defaults_are_compared_by_what_they_mean():
    old, new = op("-> ; t: tensor = {dtype: DT_INT32 tensor_shape {} int_val: 1}"), OpDef()
    new.CopyFrom(old)
    new.attr[0].default_value.tensor.ClearField("int_val")
    new.attr[0].default_value.tensor.tensor_content = b"\1\0\0\0"
    assert new != old
    op_def_attr_defaults_unchanged(old, new)


def test_an_op_that_lacks_the_attr_of_an_argument_is_refused():
    broken = OpDef(name="Op")
    broken.input_arg.add(name="x", type_attr="T")
    with pytest.raises(InvalidArgumentError, match="'x' refers to attr 'T', which its op lacks"):
        op_def_compatible(OpDef(name="Op"), broken)


def test_a_default_does_not_make_a_signature_of_any_length():
    with pytest.raises(InvalidArgumentError, match="Attr 'N' of Op makes 'a' 9000000000 tensors"):
        op_def_compatible(op("->"), op("a: N * int32 ->; N: int = 9000000000"))


def test_what_callers_should_know():
    old = op("a: int32, b: int32 ->")
    new = op("a: int32, c: int32 ->")
    new.deprecation.version = 9
    assert [(c.rule.value, c.fact) for c in changes_for_callers(old, new)] == [
        ("deprecated", "deprecated from GraphDef version 9 on"),
        ("input-renamed", "Input 1 renamed from 'b' to 'c'"),
    ]
    assert not any(c.rule.breaks_graphs for c in changes_for_callers(old, new))


TYPES = st.sampled_from(["T", "float", "N * T", "N * int32", "L", "Ref(T)"])
ATTRS = ("T: {float, int32} = DT_FLOAT", "N: int >= 1 = 2", "L: list(type) = [DT_BOOL]")


@st.composite
def ops(draw):
    inputs = [f"i{n}: {draw(TYPES)}" for n in range(draw(st.integers(0, 3)))]
    outputs = [f"o{n}: {draw(TYPES)}" for n in range(draw(st.integers(0, 3)))]
    attrs = draw(st.permutations(ATTRS))
    return op(f"{', '.join(inputs)} -> {', '.join(outputs)}; {'; '.join(attrs)}")


@given(ops())
def test_an_op_is_compatible_with_itself(op_def):
    op_def_compatible(op_def, op_def)
    op_def_attr_defaults_unchanged(op_def, op_def)


@given(ops(), st.integers(-5, 5))
def test_an_attr_with_a_default_may_be_added(op_def, default):
    new = OpDef()
    new.CopyFrom(op_def)
    new.attr.add(name="extra", type="int").default_value.i = default
    op_def_compatible(op_def, new)
    with pytest.raises(InvalidArgumentError, match="Attr 'extra' removed"):
        op_def_compatible(new, op_def)


@given(ops(), ops(), ops())
def test_compatible_changes_add_up(first, second, third):
    def accepts(old, new):
        return not list(incompatible_changes(old, new))

    if accepts(first, second) and accepts(second, third):
        assert accepts(first, third)
