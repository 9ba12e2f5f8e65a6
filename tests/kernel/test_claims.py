"""Claims of a kernel are tested by computing again in the ways that they allow."""

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.kernel import (
    AsyncOpKernel,
    KernelContract,
    OpKernel,
    OpKernelContext,
    Step,
    TensorRef,
)
from opkernel.kernel.verification import broken_claims
from opkernel.types import DataType, as_dtype

ELEMENTWISE = KernelContract(elementwise=True)
TAKES_OUT = KernelContract(takes_out=True)
FORWARDS = KernelContract(forwards_inputs=True)
X = np.array([[1, 2, 4], [8, 16, 32]], np.float32)


def found(kernel, contract, *inputs, dtype=None, **declared):
    """The claims that one computation shows to be broken."""
    dtype = dtype or as_dtype(np.asarray(inputs[0]).dtype).string
    names = [f"x{index}: {dtype}" for index in range(len(inputs))]
    given = {"inputs": names, "outputs": [f"y: {dtype}"], **declared}
    made = make_kernel(kernel, contract=contract, **given)
    outputs = OpKernelContext(made, inputs, Step()).run()
    return [*broken_claims(made, inputs, outputs)]


def off_by(error, whole=X.size):
    """A function that errs by so much where it is not given the whole."""
    return lambda x: x + x.dtype.type(error if x.size < whole else 0)


ROUNDING = {np.float16: 2e-2, np.float32: 1e-4, np.float64: 1e-8}


@pytest.mark.parametrize("dtype", [*ROUNDING, np.complex64, np.complex128])
def test_parts_may_differ_by_rounding_alone(dtype):
    kinds = {np.complex64: np.float32, np.complex128: np.float64}
    rounding = ROUNDING[kinds.get(dtype, dtype)]
    ones = np.zeros((2, 3), dtype)
    assert found(off_by(rounding / 2), ELEMENTWISE, ones) == []
    assert found(off_by(rounding * 3), ELEMENTWISE, ones) == [
        "claims to be elementwise, and gives other values for parts of the inputs"
    ]


def test_rounding_is_relative_to_large_values():
    large = np.full((2, 3), 1e6, np.float32)
    assert found(off_by(50), ELEMENTWISE, large) == []
    assert found(off_by(300), ELEMENTWISE, large)


def test_floats_of_a_byte_may_differ_by_a_half():
    dtype = DataType.DT_FLOAT8_E5M2.numpy_dtype
    values = np.ones((2, 3), dtype)
    assert found(off_by(0.25), ELEMENTWISE, values) == []
    assert found(off_by(3), ELEMENTWISE, values)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_whole_numbers_are_the_same(dtype):
    def other(x):
        return x + x.dtype.type(1 if x.size < X.size else 0)

    assert found(other, ELEMENTWISE, np.zeros((2, 3), dtype))
    assert found(lambda x: x + x.dtype.type(0), ELEMENTWISE, np.zeros((2, 3), dtype)) == []


def test_strings_are_the_same():
    def upper(x):
        values = [text.upper() for text in x.flat]
        return np.array(values, object).reshape(x.shape)

    texts = np.array([[b"a", b"b"], [b"c", b"d"]], object)
    assert found(upper, ELEMENTWISE, texts, dtype="string") == []
    assert found(
        lambda x: upper(x) if x.size == 4 else x.copy(), ELEMENTWISE, texts, dtype="string"
    )


def test_what_is_no_number_agrees_with_itself():
    values = np.array([np.nan, np.inf, -np.inf, np.nan, 1, -1], np.float32)
    assert found(lambda x: x + 0, ELEMENTWISE, values) == []
    assert found(lambda x: x + 0 if x.size == 6 else np.zeros_like(x), ELEMENTWISE, values)


def test_another_type_for_parts_is_another_value():
    def widens(x):
        return x.astype(np.float64) if x.size < X.size else x + 0

    assert found(widens, ELEMENTWISE, X)


@pytest.mark.parametrize("shape", [(), (1, 1), (0,), (3, 0)])
def test_of_an_element_there_are_no_parts(shape):
    def refuses_others(x):
        if x.shape != shape:
            raise ValueError("another shape")
        return x + 1

    assert found(refuses_others, ELEMENTWISE, np.ones(shape, np.float32)) == []


def test_two_elements_have_parts():
    assert found(off_by(1, whole=2), ELEMENTWISE, np.ones(2, np.float32))


def test_an_elementwise_kernel_broadcasts():
    def of_the_first(a, b):
        return a * b.sum(dtype=a.dtype)

    row = np.ones(3, np.float32)
    (what,) = found(of_the_first, ELEMENTWISE, row, X)
    assert what == "claims to be elementwise, and gives the shape [3] for (2, 3)"
    assert found(lambda a, b: a * b, ELEMENTWISE, row, X) == []


def test_of_one_shape_only_inputs_of_one_shape_are_tried():
    claims = KernelContract(elementwise=True, same_shapes=True)

    def refuses_others(a, b):
        return a * b.sum(dtype=a.dtype) if a.shape != b.shape else a * b

    assert found(refuses_others, claims, X, np.ones(3, np.float32)) == []
    assert found(refuses_others, claims, X, X) == []
    assert found(lambda a, b: a * b.sum(dtype=a.dtype), claims, X, X)


def test_what_is_raised_for_parts_is_told():
    def of_matrices(x):
        if x.ndim != 2:
            raise ValueError("matrices only")
        return x + 1

    assert found(of_matrices, ELEMENTWISE, X) == [
        "claims to be elementwise, and raises ValueError (matrices only) for parts of the inputs"
    ]


class TestOut:
    def test_a_kernel_that_fills_any_place_keeps_its_claim(self):
        assert found(lambda a, b, *, out=None: np.add(a, b, out=out), TAKES_OUT, X, X + 1) == []

    @pytest.mark.parametrize(
        ("faulty", "where"),
        [(lambda out, a, b: out is not a and out is not b, "in new memory"),
         (lambda out, a, b: out is a, "in the place of input 0"),
         (lambda out, a, b: out is b, "in the place of input 1")],
    )  # fmt: skip
    def test_each_place_is_tried(self, faulty, where):
        def kernel(a, b, *, out=None):
            error = 1 if out is not None and faulty(out, a, b) else 0
            return np.add(a, b + np.float32(error), out=out)

        expected = f"claims takes_out, and gives other values {where}"
        assert found(kernel, TAKES_OUT, X, X + 1) == [expected]

    def test_the_place_is_returned(self):
        def kernel(a, *, out=None):
            np.add(a, 1, out=out)
            return a + 1

        assert "claims takes_out, and does not return it in new memory" in found(
            kernel, TAKES_OUT, X
        )

    def test_what_is_raised_is_told(self):
        def kernel(a, *, out=None):
            if out is not None:
                raise KeyError("out")
            return a + 1

        (first, second) = found(kernel, TAKES_OUT, X)
        assert first == "claims takes_out, and raises KeyError ('out') in new memory"
        assert second.endswith("in the place of input 0")

    def test_inputs_of_another_form_are_no_places(self):
        def kernel(a, b, *, out=None):
            assert out is not b
            return np.add(a, b, out=out)

        assert found(kernel, TAKES_OUT, X, X[0]) == []

    def test_numbers_have_no_place(self):
        def kernel(a, *, out=None):
            assert out is None
            return a + 1

        assert found(kernel, TAKES_OUT, np.float32(1)) == []
        assert found(lambda a, *, out=None: np.array(kernel(a)), TAKES_OUT, np.float32(1)) == []

    def test_lists_are_given_as_lists(self):
        def more(xs, *, out=None):
            (x,) = xs
            return np.add(x, 1, out=out)

        declared = {"inputs": ["xs: N * float"], "attrs": ["N: int = 1"]}
        assert found(more, TAKES_OUT, X, **declared) == []


class Forwards(OpKernel):
    """Adds one in place; reads its input once more if `again`."""

    again = False

    def compute(self, ctx):
        y, _ = ctx.forward_input_or_allocate_output([0], 0, np.shape(ctx.input(0)))
        np.add(ctx.input(0), 1, out=y)
        if self.again:
            np.add(ctx.input(0), 1, out=y)


class Again(Forwards):
    again = True


class Raises(Forwards):
    def compute(self, ctx):
        y, index = ctx.forward_input_or_allocate_output([0], 0, np.shape(ctx.input(0)))
        if index == 0:
            raise RuntimeError("in place")
        np.add(ctx.input(0), 1, out=y)


class Starts(AsyncOpKernel):
    def compute_async(self, ctx, done):
        y, _ = ctx.forward_input_or_allocate_output([0], 0, np.shape(ctx.input(0)))
        np.add(ctx.input(0), 1, out=y)
        np.add(ctx.input(0), 1, out=y)
        done()


def test_a_class_is_computed_again_where_it_may_take_over_an_input():
    assert found(Forwards, FORWARDS, X) == []
    assert found(Again, FORWARDS, X) == [
        "claims forwards_inputs, and gives other values where it takes over an input"
    ]
    assert found(Raises, FORWARDS, X) == [
        "claims forwards_inputs, and raises RuntimeError (in place) where it takes over an input"
    ]
    assert found(Again, KernelContract(), X) == []
    assert found(Starts, FORWARDS, X) == []


def test_an_output_that_is_left_out_once_is_left_out_again():
    class Leaves(OpKernel):
        def compute(self, ctx):
            if not calls:
                ctx.set_output(0, ctx.input(0) + 1)
            calls.append(1)

    calls: list[int] = []
    kernel = make_kernel(Leaves, contract=FORWARDS, inputs=["x: float"], outputs=["y: float"])
    assert [*broken_claims(kernel, [X], [X + 1])] == []
    assert len([*broken_claims(kernel, [X], [X + 1])]) == 1
    assert [*broken_claims(kernel, [X], [None])] == []


@pytest.mark.parametrize("declared", [{"is_stateful": True}, {"inputs": ["x0: Ref(float)"]}])
def test_what_may_give_another_result_is_not_computed_again(declared):
    class Counts(OpKernel):
        def compute(self, ctx):
            calls.append(1)
            ctx.set_output(0, np.float32(len(calls)))

    calls: list[int] = []
    value = TensorRef(X) if "inputs" in declared else X
    assert found(Counts, FORWARDS, value, dtype="float", **declared) == []
    assert calls == [1]
