"""Pieces of which ops make their shape functions."""

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes import rules
from opkernel.types import PartialTensorShape


@pytest.mark.parametrize(
    ("ranks", "shapes", "fault"),
    [
        ("0", ["[]"], None),
        ("0", ["[1]"], "rank 0 but is rank 1"),
        ("1", ["[4]"], None),
        ("1", ["[]"], "rank 1 but is rank 0"),
        ("?", ["[]"], None),
        ("?", ["[4]"], None),
        ("?", ["[4,1]"], "at most rank 1 but is rank 2"),
        ("+", ["[4,1]"], None),
        ("+", ["[]"], "at least rank 1 but is rank 0"),
        ("h", ["[2]"], None),
        ("h", ["[?]"], None),
        ("h", ["[3]"], "must be 2 but is 3"),
        ("h", ["[2,2]"], "rank 1 but is rank 2"),
        (".", ["[2,2]"], None),
        ("0.1", ["[]", "[2,2]", "[3]"], None),
        ("0.1", ["[]", "[2,2]", "[]"], "rank 1 but is rank 0"),
        ("0", ["[]", "[2,2]"], None),
        ("01h?+.", ["?"] * 6, None),
    ],
)
@pytest.mark.parametrize(
    ("checked", "output"),
    [
        (rules.checked_no_outputs, None),
        (rules.checked_scalar, "[]"),
        (rules.checked_unknown, "?"),
    ],
)
def test_checks_of_inputs_go_before(infer, ranks, shapes, fault, checked, output):
    if fault is None:
        found = infer(checked(ranks), *shapes, outputs=0 if output is None else 1)
        assert found == (output or "")
    else:
        with pytest.raises(InvalidArgumentError, match=fault):
            infer(checked(ranks), *shapes)


@pytest.mark.parametrize(
    ("shape_fn", "shapes", "fault"),
    [
        (rules.unknown_from_scalars(0, 2), ["[]", "[5]", "[]"], None),
        (rules.unknown_from_scalars(0, 2), ["[]", "[5]", "[1]"], "rank 0 but is rank 1"),
        (lambda c: rules.check_ranks(c, 2, 1), ["[]", "[2,2]"], None),
        (lambda c: rules.check_ranks(c, 2, 0), ["[]", "[2,2]"], "rank 2 but is rank 0"),
        (lambda c: rules.check_ranks_at_most(c, 1, 0, 1), ["[]", "[3]"], None),
        (lambda c: rules.check_ranks_at_most(c, 1, 0, 1), ["[]", "[3,1]"], "at most rank 1"),
        (lambda c: rules.check_csv_defaults(c, 1, 4), ["[7]", "[]", "[0]", "[1]", "[9,9]"], None),
        (lambda c: rules.check_csv_defaults(c, 0, 1), ["[2]"], "length-0 or length-1 vector"),
        (lambda c: rules.check_csv_defaults(c, 0, 1), ["[1,1]"], "at most rank 1"),
        (lambda c: rules.check_csv_defaults(c, 0, 1), ["[?]"], None),
    ],
)
def test_inputs_are_refused_one_by_one(infer, shape_fn, shapes, fault):
    if fault is None:
        assert infer(shape_fn, *shapes, outputs=0) == ""
    else:
        with pytest.raises(InvalidArgumentError, match=fault):
            infer(shape_fn, *shapes, outputs=0)


@pytest.mark.parametrize(
    ("shape_fn", "shapes", "output"),
    [
        (rules.outputs_as_inputs(1, 0), ["[1]", "[2]", "[3]"], "in1;in0"),
        (rules.each_output_as_its_input, ["[1]", "[2]", "[3]"], "in0;in1"),
        (rules.scalar_inputs_and_outputs, ["[]", "?"], "[];[]"),
    ],
)
def test_outputs(infer, shape_fn, shapes, output):
    assert infer(shape_fn, *shapes, outputs=2) == output


def test_scalars_in_scalars_out(infer):
    with pytest.raises(InvalidArgumentError, match="rank 0 but is rank 1"):
        infer(rules.scalar_inputs_and_outputs, "[]", "[1]", outputs=2)


def test_the_first_inputs_have_these_ranks(context):
    c = context(["?", "[2,3]", "[5]"])
    first, second = rules.check_input_ranks(c, 1, 2)
    assert (c.rank(first), second) == (1, c.input(1))
    with pytest.raises(InvalidArgumentError, match="rank 3 but is rank 2"):
        rules.check_input_ranks(c, 1, 3)


def test_a_shape_that_an_input_holds(infer):
    constants = {1: np.array([2, 3], np.int32)}
    assert infer(rules.shape_held_by(1), "[7]", "[2]", constants=constants) == "[2,3]"
    assert infer(rules.shape_held_by(1, 2), "[7]", "[2]", constants=constants) == "[2,3]"
    assert infer(rules.shape_held_by(0, 2), "?") == "[?,?]"
    with pytest.raises(InvalidArgumentError, match="rank 1 but is rank 2"):
        infer(rules.shape_held_by(1, 1), "[7]", "[2]", constants=constants)


def test_a_shape_attr_that_has_to_be_defined():
    assert rules.defined_shape(PartialTensorShape([2, 3])).as_list() == [2, 3]
    assert rules.defined_shape(PartialTensorShape(None)).as_list() == []
    with pytest.raises(InvalidArgumentError, match=r"Shape \[2,\?\] is not fully defined"):
        rules.defined_shape(PartialTensorShape([2, None]))
