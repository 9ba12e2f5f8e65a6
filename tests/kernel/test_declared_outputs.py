"""Whether outputs are as an op declares them, and what of an input's memory they may be."""

import functools

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.errors import InternalError
from opkernel.kernel import KernelContract, OpKernel, TensorRef
from opkernel.kernel.context.declared_outputs import (
    check_memory,
    check_output,
    check_outputs,
    check_shape,
    flat_outputs,
    is_as_declared,
    kind_of,
)

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
X, Y = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
LISTS = {"outputs": ["y: float", "zs: N * int32"], "attrs": ["N: int = 2"]}
INT = np.ones(2, np.int32)


@pytest.mark.parametrize(
    ("outputs", "what"),
    [
        ([X, INT, INT], None),
        ([np.float32(1), np.int32(2), np.int32(3)], None),
        ([None, INT, None], None),  # not set
        ([X, INT], "3 outputs expected, the kernel gave 2"),
        ([X, INT, INT, INT], "3 outputs expected, the kernel gave 4"),
        ([INT, INT, INT], "output 0 must be float, the kernel set int32"),
        ([X, INT, X], "output 2 must be int32, the kernel set float32"),
        ([X, 7, INT], "output 1 must be int32, the kernel set a int"),
        ([X, INT, [1, 2]], "output 2 must be int32, the kernel set a list"),
    ],
)
def test_outputs_have_their_number_and_types(outputs, what):
    kernel = make_kernel(OpKernel, **LISTS)
    if what is None:
        check_outputs(kernel, outputs)
    else:
        with pytest.raises(InternalError) as raised:
            check_outputs(kernel, outputs)
        assert raised.value.message == what


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (TensorRef(X), None),
        (TensorRef(), None),
        (TensorRef(INT), "a reference to int32"),
        (X, "one array"),
        (None, "None"),
    ],
)
def test_an_output_of_a_reference_type_is_a_reference(value, what):
    kernel = make_kernel(OpKernel, outputs=["y: Ref(float)"])
    if what is None:
        check_output(kernel, 0, value)
    else:
        with pytest.raises(InternalError) as raised:
            check_output(kernel, 0, value)
        assert raised.value.message == f"output 0 must be float_ref, the kernel set {what}"


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "None"), (X, "one array"), (np.float32(1), "one array"), ([X], "a list"), (1, "a int")],
)
def test_kinds_of_values_in_words(value, kind):
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (None, None),
        ((2, 3), None),
        ([2, 3], None),
        ((None, 3), None),
        ((2, -1), None),
        ((2, 4), "[2,4]"),
        ((0, 3), "[0,3]"),
        ((2,), "[2]"),
        ((2, 3, 1), "[2,3,1]"),
        ((None, None, None), "[?,?,?]"),
        ((-1, 4), "[?,4]"),
        ((0, None), "[0,?]"),
    ],
)
def test_outputs_have_the_shape_that_the_shape_function_allows(shape, told):
    value = np.zeros((2, 3))
    if told is None:
        check_shape(1, value, shape)
        return
    with pytest.raises(InternalError) as raised:
        check_shape(1, value, shape, ", told no values,")
    assert raised.value.message == (
        "the kernel gives output 1 the shape [2, 3], "
        f"where the shape function, told no values, says {told}"
    )


class TestFlatOutputs:
    @pytest.mark.parametrize(
        ("declared", "result", "flat"),
        [
            ({"outputs": ["y: float"]}, X, [X]),
            ({"outputs": []}, None, []),
            (LISTS, (X, [INT, INT]), [X, INT, INT]),
            (LISTS, [X, (INT, INT)], [X, INT, INT]),
            ({**LISTS, "outputs": ["zs: N * int32"]}, [INT, INT], [INT, INT]),
        ],
    )
    def test_lists_become_one(self, declared, result, flat):
        found = flat_outputs(make_kernel(OpKernel, **declared), result)
        assert [id(one) for one in found] == [id(one) for one in flat]

    @pytest.mark.parametrize(
        ("result", "what"),
        [
            (X, "2 outputs expected, the kernel gave one array"),
            (None, "2 outputs expected, the kernel gave None"),
            ({"y": X, "zs": [INT, INT]}, "2 outputs expected, the kernel gave a dict"),
            ((X,), "2 outputs expected, the kernel gave 1"),
            ((X, [INT, INT], INT), "2 outputs expected, the kernel gave 3"),
            ((X, INT), "2 outputs expected, the kernel gave one array"),
            ((X, [INT]), "2 outputs expected, the kernel gave 1"),
            ((X, [INT, INT, INT]), "2 outputs expected, the kernel gave 3"),
        ],
    )
    def test_rows_of_an_array_are_no_outputs(self, result, what):
        with pytest.raises(InternalError) as raised:
            flat_outputs(make_kernel(OpKernel, **LISTS), result)
        assert raised.value.message == what


@pytest.mark.parametrize(
    ("function", "inputs", "output", "is_sure"),
    [
        (np.add, (F32, F32), F32, True),
        (np.add, (F32, F64), F64, True),
        (np.add, (F32, F64), F32, False),
        (np.isfinite, (F32,), np.dtype(bool), True),
        (np.isfinite, (F32,), F32, False),
        (np.add, (F32,), F32, False),  # it takes two
        (np.divmod, (F32, F32), F32, False),  # it gives two
        (np.add, (np.dtype(object),) * 2, np.dtype(object), False),
        (np.bitwise_and, (F32, F32), F32, False),  # it takes no floats
        (lambda x: x, (F32,), F32, False),
    ],
)
def test_numpy_says_what_its_functions_give(function, inputs, output, is_sure):
    assert is_as_declared(function, inputs, output) is is_sure


NEW = KernelContract()


def faults(function, inputs, outputs, claims=NEW, declared=None):
    """What is wrong with the memory of outputs."""
    names = [f"x{index}: float" for index in range(len(inputs))]
    given = {"inputs": names, "outputs": [f"y{index}: float" for index in range(len(outputs))]}
    node = make_kernel(OpKernel, **(declared or given)).properties
    try:
        check_memory(node, claims, function, inputs, outputs)
    except InternalError as error:
        return error.message.partition(";")[0]
    return ""


def a_function(x):
    return x


class TestMemory:
    def test_outputs_are_new_memory(self):
        assert faults(a_function, [X], [X + 1]) == ""
        assert faults(a_function, [X, Y], [X + 1, Y[2:]]) == (
            "the kernel gives memory of input 1 as output 1"
        )
        assert faults(a_function, [X, Y], [X[:1], Y]) == (
            "the kernel gives memory of input 0 as output 0"
        )

    def test_an_input_as_it_is_may_be_handed_on_by_who_claims_nothing(self):
        assert faults(a_function, [X], [X]) == ""
        claimed = KernelContract(outputs_as_declared=True)
        assert faults(a_function, [X], [X], claimed) == (
            "the kernel gives memory of input 0 as output 0"
        )

    @pytest.mark.parametrize(
        ("may_alias", "output", "fault"),
        [
            (True, "x0", ""),
            (True, "x1", ""),
            (frozenset({("y0", "x0")}), "x0", ""),
            (frozenset({("y0", "x0")}), "x1", "the kernel gives memory of input 1 as output 0"),
            (frozenset({("x0", "y0")}), "x0", "the kernel gives memory of input 0 as output 0"),
            (False, "x0", "the kernel gives memory of input 0 as output 0"),
        ],
    )
    def test_pairs_that_are_claimed_may_share(self, may_alias, output, fault):
        view = {"x0": X, "x1": Y}[output][1:]
        claims = KernelContract(may_alias=may_alias)
        assert faults(a_function, [X, Y], [view], claims) == fault
        assert faults(None, [X, Y], [view], claims) == fault

    def test_a_class_that_claims_nothing_may_set_anything(self):
        assert faults(None, [X], [X[1:]]) == ""

    def test_what_has_no_elements_or_is_no_array_shares_nothing(self):
        empty = X[:0]
        assert faults(a_function, [X, empty], [empty[:], X[3:3]]) == ""
        assert faults(a_function, [X], [X[0]]) == ""

    def test_each_tensor_of_a_list_is_looked_at(self):
        declared = {
            "inputs": ["x: float"],
            "outputs": ["ys: N * float"],
            "attrs": ["N: int = 3"],
        }
        assert faults(a_function, [X], [X + 1, X + 2, X[1:]], declared=declared) == (
            "the kernel gives memory of input 0 as output 2"
        )


KEPT = np.arange(8, dtype=np.float32)
IN_A_LIST = [{"deep": (KEPT,)}]


def of_globals(x):
    return KEPT[1:]


def of_containers(x):
    return IN_A_LIST[0]["deep"][0]


def of_defaults(x, kept=KEPT):
    return kept


def closing_over(kept):
    return lambda x: kept


def closing_over_list(kept):
    return lambda x: kept[0]


class Holder:
    def __init__(self):
        self.kept = KEPT

    def method(self, x):
        return self.kept

    def __call__(self, x):
        return self.kept


def with_attribute(x):
    return with_attribute.kept  # type: ignore[attr-defined]


with_attribute.kept = KEPT  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "function",
    [
        of_globals,
        of_containers,
        of_defaults,
        closing_over(KEPT),
        closing_over_list([KEPT]),
        functools.partial(lambda kept, x: kept, KEPT),
        functools.partial(lambda x, *, kept: kept["a"], kept={"a": KEPT}),
        Holder().method,
        Holder(),
        with_attribute,
    ],
)
def test_an_array_that_a_function_keeps_is_not_new(function):
    output = function(X)
    assert faults(function, [X], [output]) == "the kernel gives an array that it keeps as output 0"
    assert faults(function, [X], [output[2:]]).endswith("it keeps as output 0")
    assert faults(function, [X], [output.copy()]) == ""
    assert faults(function, [X], [output], KernelContract(may_alias=True)) == ""
    assert faults(function, [X], [output], KernelContract(may_alias=frozenset())) == ""
