"""What ops declare beyond their OpDefs, and how it is read."""

import subprocess
import sys

import pytest

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.graph.inference.partial_values import RULES
from opkernel.opdef import OpDefBuilder, OpRegistry, OpTraits, global_op_registry, unknown_shape
from opkernel.ops.catalogue import TRAITS_OF_OP


def test_words_tell_the_traits() -> None:
    traits = OpTraits.from_words("pointwise calls=while")
    assert traits == OpTraits(pointwise=True, calls="while")
    assert traits.words() == "pointwise calls=while"
    assert OpTraits.from_words("") == OpTraits()
    assert OpTraits(value_rule=lambda op, index, inputs: None).words() == ""


def test_what_traits_say() -> None:
    assert OpTraits(calls="if").chooses_function
    assert OpTraits(calls="case").chooses_function
    assert not OpTraits(calls="while").chooses_function
    assert not OpTraits().chooses_function
    assert OpTraits(no_kernel="tpu").why_no_kernel == "needs a TPU"
    assert OpTraits().why_no_kernel == ""
    assert repr(OpTraits(even=True, calls="if")) == "OpTraits(even=True, calls='if')"


@pytest.mark.parametrize("trait", ["pointwise", "cheap", "reduces", "reshapes"])
def test_time_follows_from_the_number_of_elements(trait: str) -> None:
    assert OpTraits.from_words(trait).is_linear
    assert OpTraits.from_words(f"{trait} cost=linear").is_linear
    assert not OpTraits.from_words(f"{trait} cost=sort").is_linear
    assert OpTraits(cost="linear").is_linear
    assert not OpTraits(even=True).is_linear
    assert not OpTraits(cost="product").is_linear


@pytest.mark.parametrize("wrong", ["pointwize", "pointwise=yes", "calls", "_fields", "words"])
def test_words_that_are_none_are_refused(wrong: str) -> None:
    with pytest.raises(InvalidArgumentError, match=wrong):
        opkernel.register_op(
            "TraitsOfNoKind", shape_fn=unknown_shape, traits=wrong, registry=OpRegistry()
        )


def test_a_registry_has_those_of_its_own_ops_and_assumes_nothing_of_others() -> None:
    registry = OpRegistry()
    opkernel.register_op("Mine", shape_fn=unknown_shape, traits="pointwise", registry=registry)
    registry.register(OpDefBuilder("Built").set_traits(OpTraits(even=True)))
    assert registry.traits("Mine") == OpTraits(pointwise=True)
    assert registry.traits("Built") == OpTraits(even=True)
    assert registry.traits("Abs") == OpTraits()
    assert global_op_registry().traits("NoSuchOpAtAll") == OpTraits()


def test_those_of_the_catalogue_are_read_without_importing_an_op() -> None:
    code = (
        "import sys; from opkernel.opdef import global_op_registry as r;"
        "assert r().traits('MatMul').cannot_fail and r().traits('RandomShuffle').any_order;"
        "assert not r().traits('SegmentSum').words();"
        "print([m for m in sys.modules if m.startswith(('opkernel.ops.math', 'opkernel.ops.nn'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("op", ["Abs", "While", "SymbolicGradient", "RandomUniform", "Shape"])
def test_registered_ops_have_those_that_the_catalogue_tells(op: str) -> None:
    registration = global_op_registry().look_up(op)
    assert registration.traits.words() == TRAITS_OF_OP[op]


def test_rules_that_ops_name_exist() -> None:
    named = {OpTraits.from_words(words).value_rule for words in TRAITS_OF_OP.values()}
    assert named - {""} == RULES.keys()
