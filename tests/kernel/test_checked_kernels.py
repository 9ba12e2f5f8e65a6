"""Kernels without claims: their inputs are read-only, their outputs are checked, and errors are told apart."""

from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import KernelContract, OpKernel, OpKernelContext, Step, TensorRef
from opkernel.kernel.verification import fault_of, kernel_deed, raised_by_kernel, read_only
from opkernel.opdef import unchanged_shape

ONE: dict[str, Any] = {
    "inputs": ["x: float"],
    "outputs": ["y: float"],
    "shape_fn": unchanged_shape,
}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(kernel, *inputs, **declared):
    made = make_kernel(kernel, **{**ONE, **declared})
    return OpKernelContext(made, inputs, Step()).run()


class TestReadOnly:
    def test_an_array_is_looked_at_and_not_copied(self):
        view = read_only(X)
        assert not view.flags.writeable
        assert np.shares_memory(view, X)
        assert X.flags.writeable

    @pytest.mark.parametrize("value", [None, 3, np.float32(2), [X], TensorRef(X)])
    def test_other_values_are_as_they_are(self, value):
        assert read_only(value) is value

    def test_what_is_read_only_is_as_it_is(self):
        view = read_only(X)
        assert read_only(view) is view


def test_a_class_that_forwards_gets_its_inputs_themselves():
    class Looks(OpKernel):
        def compute(self, ctx):
            seen.append(ctx.input(0).flags.writeable)
            ctx.set_output(0, ctx.input(0) + 1)

    class Forwards(Looks):
        forwards_inputs = True

    seen: list[bool] = []
    for kernel in (Looks, Forwards):
        run(kernel, X.copy())
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: x.astype(np.float64), "output 0 must be float, the kernel set float64"),
        (lambda x: x[0] + 1, r"the shape \[3\], where the shape function says \[2,3\]"),
        (lambda x: x[None] + 1, r"the shape \[1, 2, 3\], where the shape function says \[2,3\]"),
        (lambda x: x[...], "gives memory of input 0 as output 0"),
        (lambda x: None, "output 0 must be float, the kernel set None"),
    ],
)
def test_each_call_is_checked_also_after_right_ones(function, what):
    def kernel(x):
        return x + 1 if is_right else function(x)

    made = make_kernel(kernel, **ONE)
    for is_right in (True, True, False, True):
        ctx = OpKernelContext(made, [X], Step())
        if is_right:
            np.testing.assert_array_equal(ctx.run()[0], X + 1)
        else:
            with pytest.raises(InternalError, match=what):
                ctx.run()


def test_shapes_that_values_decide_are_asked_for_at_each_call():
    def shape_fn(c):
        c.set_output(0, c.make_shape_from_shape_tensor(0))

    declared = {"inputs": ["x: int32"], "shape_fn": shape_fn}
    made = make_kernel(lambda x: np.ones(min(int(x[0]), 5), np.float32), **{**ONE, **declared})
    for size in (3, 5, 4):
        (output,) = OpKernelContext(made, [np.array([size], np.int32)], Step()).run()
        assert output.shape == (size,)
    with pytest.raises(
        InternalError, match=r"the shape \[5\], where the shape function says \[6\]"
    ):
        OpKernelContext(made, [np.array([6], np.int32)], Step()).run()


def test_a_shape_function_is_asked_once_for_each_shape():
    def shape_fn(c):
        asked.append(str(c.input(0)))
        unchanged_shape(c)

    asked: list[str] = []
    made = make_kernel(lambda x: x + 1, **{**ONE, "shape_fn": shape_fn})
    for size in (2, 3, 2, 3, 4):
        OpKernelContext(made, [np.ones(size, np.float32)], Step()).run()
    assert asked == ["[2]", "[3]", "[4]"]


def test_of_many_shapes_each_is_checked():
    made = make_kernel(lambda x: x + 1 if x.size != 99 else x[:3] + 1, **ONE)
    for size in range(150):
        ctx = OpKernelContext(made, [np.ones(size, np.float32)], Step())
        if size == 99:
            with pytest.raises(InternalError, match=r"shape \[3\]"):
                ctx.run()
        else:
            assert ctx.run()[0].shape == (size,)


@pytest.mark.parametrize("error", [InvalidArgumentError("no"), KeyError("no")])
def test_inputs_that_the_shape_function_refuses_are_the_kernel_s(error):
    def shape_fn(c):
        raise error

    assert run(lambda x: x + 1, X, shape_fn=shape_fn)[0].shape == (2, 3)
    with pytest.raises(InternalError, match="must be float, the kernel set float64"):
        run(lambda x: x.astype(np.float64), X, shape_fn=shape_fn)


def test_a_class_may_leave_an_output_unset_and_a_function_may_not():
    class Leaves(OpKernel):
        def compute(self, ctx):
            ctx.set_output(0, ctx.input(0) + 1)

    def shape_fn(c):
        c.set_output(0, c.input(0))
        c.set_output(1, c.input(0))

    two = {**ONE, "outputs": ["y: float", "z: float"], "shape_fn": shape_fn}
    ctx = OpKernelContext(make_kernel(Leaves, **two), [X], Step())
    ctx.kernel.compute(ctx)
    assert ctx.outputs[1] is None
    with pytest.raises(InternalError, match="output 1 must be float, the kernel set None"):
        run(lambda x: (x + 1, None), X, **two)


def test_what_a_class_sets_past_the_methods_is_checked_too():
    class Sets(OpKernel):
        def compute(self, ctx):
            ctx.outputs[:] = [ctx.input(0) + 1, ctx.input(0) + 2]

    with pytest.raises(InternalError, match="1 outputs expected, the kernel gave 2"):
        run(Sets, X)


def test_a_class_that_records_an_error_has_its_outputs_left_alone():
    class Fails(OpKernel):
        def compute(self, ctx):
            ctx.outputs[0] = "nothing"
            ctx.set_status(InvalidArgumentError("on purpose"))

    with pytest.raises(InvalidArgumentError, match="on purpose"):
        run(Fails, X)


def test_a_class_that_claims_pairs_is_held_to_them():
    class View(OpKernel):
        def compute(self, ctx):
            ctx.set_output(0, ctx.input(0)[...])

    for may_alias, is_right in ((None, True), (True, True), (False, False), (frozenset(), False)):
        contract = KernelContract(may_alias=may_alias)
        if is_right:
            run(View, X, contract=contract)
        else:
            with pytest.raises(InternalError, match="memory of input 0 as output 0"):
                run(View, X, contract=contract)


def raised(kernel, *inputs, **declared):
    with pytest.raises(Exception) as caught:  # noqa: PT011  # any
        run(kernel, *inputs, **declared)
    return caught.value


def fails(error):
    def kernel(x):
        raise error

    return kernel


@pytest.mark.parametrize(
    ("kernel", "fault"),
    [
        (lambda x: x.astype(np.float64), "output 0 must be float, the kernel set float64"),
        (lambda x: np.add(x, 1, out=x), "writes to an input"),
        (fails(InternalError("of its own")), None),
        (fails(ValueError("assignment of something")), None),
        (fails(InvalidArgumentError("the input")), None),
    ],
)
def test_faults_of_a_kernel_are_told_from_its_errors(kernel, fault):
    found = fault_of(raised(kernel, X))
    assert (found is None) is (fault is None)
    assert fault is None or fault in str(found)


def test_the_error_of_an_asynchronous_kernel_is_the_one_that_it_raised():
    async def fails_late(x):
        raise KeyError("late")

    error = raised(fails_late, X)
    assert isinstance(error, InternalError)
    assert isinstance(raised_by_kernel(error), KeyError)
    plain = KeyError("plain")
    assert raised_by_kernel(plain) is plain
    assert raised_by_kernel(InternalError("alone")).args == InternalError("alone").args


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("the kernel writes to an input", "the kernel f writes to an input"),
        ("writes to an input", "the kernel f writes to an input"),
        ("output 0 must be float", "the kernel f: output 0 must be float"),
        ("2 outputs expected", "the kernel f: 2 outputs expected"),
    ],
)
def test_a_fault_as_a_sentence(what, sentence):
    assert kernel_deed("f", what) == sentence
