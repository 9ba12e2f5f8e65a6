"""Kernels under a budget: what is too large is refused before it is computed, and what is held counts."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.device.budget import Budget
from opkernel.errors import (
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from opkernel.kernel import (
    AsyncOpKernel,
    FunctionKernel,
    KernelContract,
    OpKernel,
    OpKernelContext,
    Step,
    TensorRef,
    bounded,
    forward_input,
    under_budget,
)
from opkernel.opdef import unchanged_shape
from opkernel.types import float32

F32 = np.dtype(np.float32)
ENOUGH = 1 << 30
DECLARED = KernelContract(outputs_as_declared=True)


def ten_times(c):
    """Ten rows of the input's elements."""
    shape = c.input(0)
    c.set_output(0, c.make_shape([10, c.dim(shape, 0)]))


def repeated(x):
    calls.append(len(x))
    return np.stack([x] * 10)


class Repeated(OpKernel):
    def compute(self, ctx):
        ctx.set_output(0, repeated(ctx.input(0)))


class RepeatedLater(AsyncOpKernel):
    def compute_async(self, ctx, done):
        def work():
            ctx.set_output(0, repeated(ctx.input(0)))
            done()

        threading.Thread(target=work).start()


async def repeated_later(x):
    return repeated(x)


KERNELS = {
    "function": repeated,
    "class": Repeated,
    "asynchronous class": RepeatedLater,
    "coroutine": repeated_later,
}
calls: list[int] = []


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


def made(kernel: Any, **options: Any) -> OpKernel:
    """The kernel as it is made where memory is limited."""
    declared = {"inputs": ["x: float"], "outputs": ["y: float"], "shape_fn": ten_times}
    with under_budget(Budget(ENOUGH)):
        return make_kernel(kernel, **{**declared, **options})


def run(kernel: OpKernel, *inputs: Any) -> Any:
    (output,) = OpKernelContext(kernel, inputs, Step()).run()
    return output


def floats(*shape: int) -> Any:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("contract", [KernelContract(), DECLARED])
@pytest.mark.parametrize("kind", KERNELS)
class TestEveryKind:
    def test_what_is_too_large_is_refused_before_it_is_computed(self, kind, contract):
        kernel = made(KERNELS[kind], contract=contract)
        for _ in range(2):
            with under_budget(Budget(3999)), pytest.raises(ResourceExhaustedError) as raised:
                run(kernel, floats(100))
            assert raised.value.message.startswith(
                "OOM when allocating tensor with shape[10, 100] and type float: 4000 bytes"
            )
        assert not calls

    def test_what_fits_is_computed_and_counts_until_it_is_gone(self, kind, contract):
        kernel = made(KERNELS[kind], contract=contract)
        with under_budget(Budget(4000)) as budget:
            output = run(kernel, floats(100))
            assert output.shape == (10, 100)
            with pytest.raises(ResourceExhaustedError, match="the 4000 in use"):
                budget.check_memory(1, "more")
            del output
            budget.check_memory(4000, "all")

    def test_sizes_are_those_of_each_call(self, kind, contract):
        kernel = made(KERNELS[kind], contract=contract)
        with under_budget(Budget(4000)):
            for size in (1, 100, 50):
                assert run(kernel, floats(size)).size == 10 * size
            with pytest.raises(ResourceExhaustedError):
                run(kernel, floats(101))
        assert calls == [1, 100, 50]

    def test_without_a_budget_anything_is_computed(self, kind, contract):
        assert run(made(KERNELS[kind], contract=contract), floats(2000)).shape == (10, 2000)

    def test_late_kernels_are_not_begun(self, kind, contract):
        kernel = made(KERNELS[kind], contract=contract)
        late = Budget(ENOUGH, deadline=time.monotonic() - 1)
        with (
            under_budget(late),
            pytest.raises(DeadlineExceededError, match="Timed out while running 'n'"),
        ):
            run(kernel, floats(3))
        assert not calls

    def test_work_in_advance_is_spent(self, kind, contract):
        kernel = made(KERNELS[kind], contract=contract)
        with under_budget(Budget(ENOUGH, work=1 << 15)):
            run(kernel, floats(1))  # the work of a call is 1 << 14
            with pytest.raises(ResourceExhaustedError, match="more than the budget for work"):
                run(kernel, floats(1))
        assert calls == [1]


def test_a_budget_may_limit_work_and_not_memory():
    kernel = made(repeated)
    with under_budget(Budget(work=1 << 13)), pytest.raises(ResourceExhaustedError, match="work"):
        run(kernel, floats(1))


@pytest.mark.parametrize("kind", KERNELS)
def test_a_kernel_without_claims_is_checked_all_the_same(kind):
    kernel = made(KERNELS[kind], shape_fn=unchanged_shape)
    with (
        under_budget(Budget(ENOUGH)),
        pytest.raises(InternalError, match=r"shape \[10, 3\], where the shape function says \[3\]"),
    ):
        run(kernel, floats(3))
    assert calls == [3]


def test_an_error_of_an_asynchronous_kernel_is_its_own():
    class Fails(AsyncOpKernel):
        def compute_async(self, ctx, done):
            ctx.set_status(InternalError("on purpose"))
            done()

    with under_budget(Budget(ENOUGH)), pytest.raises(InternalError, match="on purpose"):
        run(made(Fails), floats(3))


def test_what_a_kernel_made_beyond_its_shape_function_is_refused_when_it_is_there():
    """Its shape function knows nothing, and it does not ask before it allocates."""
    kernel = made(repeated, shape_fn=lambda c: None)
    with under_budget(Budget(3999)), pytest.raises(ResourceExhaustedError, match="4000 bytes"):
        run(kernel, floats(100))
    assert calls == [100]


@pytest.mark.parametrize("kind", KERNELS)
def test_inputs_that_a_shape_function_refuses_are_the_kernel_s(kind):
    def refuses(c):
        raise InvalidArgumentError("by the shape function")

    kernel = made(KERNELS[kind], shape_fn=refuses, contract=DECLARED)
    with under_budget(Budget(4000)):
        assert run(kernel, floats(100)).shape == (10, 100)


@pytest.mark.parametrize("sizes", [[1 << 40, 1 << 40], [1] * 300])
def test_a_shape_that_is_none_is_the_kernel_s_to_refuse(sizes):
    def refuses(x):
        raise InvalidArgumentError("by the kernel")

    kernel = made(refuses, shape_fn=lambda c: c.set_output(0, c.make_shape(sizes)))
    with under_budget(Budget(1)), pytest.raises(InvalidArgumentError, match="by the kernel"):
        run(kernel, floats(1))


def test_an_output_of_no_elements_needs_no_memory():
    def refuses(c):
        raise InvalidArgumentError("by the shape function")

    for shape_fn in (refuses, unchanged_shape):
        kernel = made(lambda x: x.copy(), shape_fn=shape_fn)
        with under_budget(Budget(0)):
            assert run(kernel, floats(0)).size == 0


def test_sizes_that_values_decide_are_found_at_each_call():
    def shape_fn(c):
        c.set_output(0, c.make_shape_from_shape_tensor(0))

    def filled(sizes):
        calls.append(int(sizes[0]))
        return np.ones(tuple(sizes), np.float32)

    kernel = made(filled, inputs=["sizes: int32"], shape_fn=shape_fn)
    with under_budget(Budget(400)):
        for size in (1, 100, 50):
            assert run(kernel, np.array([size], np.int32)).shape == (size,)
        with pytest.raises(ResourceExhaustedError, match=r"shape\[101\]"):
            run(kernel, np.array([101], np.int32))
    assert calls == [1, 100, 50]


def test_the_largest_of_several_outputs_is_named_and_all_are_counted():
    def shape_fn(c):
        for index, size in enumerate((3, 5, 5, 4)):
            c.set_output(index, c.make_shape([size]))

    kernel = made(
        lambda x: (floats(3), np.ones(5, np.float64), floats(5), floats(4)),
        outputs=["a: float", "b: double", "c: float", "d: float"],
        shape_fn=shape_fn,
    )
    with under_budget(Budget(88)):
        assert len(OpKernelContext(kernel, [floats(1)], Step()).run()) == 4
    with under_budget(Budget(87)), pytest.raises(ResourceExhaustedError) as raised:
        OpKernelContext(kernel, [floats(1)], Step()).run()
    assert "tensor with shape[5] and type double: 88 bytes" in raised.value.message


@pytest.mark.parametrize("sizes", [None, [None], [3, None]])
def test_an_output_of_unknown_size_hides_no_other(sizes):
    def shape_fn(c):
        if sizes is not None:
            c.set_output(0, c.make_shape([-1 if size is None else size for size in sizes]))
        c.set_output(1, c.make_shape([100]))

    def two(x):
        calls.append(1)
        return np.ones((3, 1), np.float32) if sizes != [None] else floats(3), floats(100)

    kernel = made(two, outputs=["y: float", "z: float"], shape_fn=shape_fn)
    with under_budget(Budget(399)), pytest.raises(ResourceExhaustedError, match=r"shape\[100\]"):
        OpKernelContext(kernel, [floats(1)], Step()).run()
    assert not calls
    with under_budget(Budget(412)):
        assert len(OpKernelContext(kernel, [floats(1)], Step()).run()) == 2


@pytest.mark.parametrize(
    ("contract", "counts"),
    [
        (KernelContract(), True),
        (KernelContract(may_alias=True), False),
        (KernelContract(may_alias=frozenset({("y", "x")})), False),
        (KernelContract(may_alias=frozenset({("z", "x")})), True),
    ],
)
def test_views_take_no_memory(contract, counts):
    kernel = made(
        lambda x: x[...] if not counts else x.copy(), contract=contract, shape_fn=unchanged_shape
    )
    with under_budget(Budget(399 if counts else 0)):
        if counts:
            with pytest.raises(ResourceExhaustedError):
                run(kernel, floats(100))
        else:
            assert run(kernel, floats(100)).shape == (100,)


@pytest.mark.parametrize(
    ("traits", "value", "counts"),
    [
        ("reshapes", floats(10, 10), False),
        ("reshapes", floats(10, 10).T, True),
        ("mostly_copies", floats(10, 10), True),
    ],
)
def test_of_views_that_are_mostly_copies_the_memory_is_asked_for(traits, value, counts):
    def shape_fn(c):
        c.set_output(0, c.make_shape([100]))

    def flat(x):
        calls.append(x.size)
        return x.reshape(-1)

    contract = KernelContract(may_alias=True)
    kernel = made(flat, contract=contract, shape_fn=shape_fn, traits=traits)
    with under_budget(Budget(399 if counts else 0)):
        if counts:
            with pytest.raises(ResourceExhaustedError, match=r"shape\[100\]"):
                run(kernel, value)
        else:
            assert run(kernel, value).shape == (100,)
    assert len(calls) == (not counts)


def test_a_kernel_that_passes_its_input_on_stays_as_it_is():
    kernel = made(forward_input, contract=DECLARED, shape_fn=unchanged_shape)
    assert isinstance(kernel, FunctionKernel)
    assert kernel.function is forward_input


def test_a_variable_counts_once_however_often_it_is_passed_on():
    class Refers(OpKernel):
        def compute(self, ctx):
            ctx.set_output_ref(0, ctx.input_ref(0))

    ref = TensorRef(floats(100))
    kernel = made(
        Refers, inputs=["x: Ref(float)"], outputs=["y: Ref(float)"], shape_fn=unchanged_shape
    )
    with under_budget(Budget(400)):
        for _ in range(3):
            assert run(kernel, ref) is ref


def test_a_reference_to_new_memory_counts():
    class Assigns(OpKernel):
        def compute(self, ctx):
            ctx.set_output_ref(0, TensorRef(floats(100)))

    kernel = made(Assigns, outputs=["y: Ref(float)"], shape_fn=lambda c: None)
    with under_budget(Budget(400)) as budget:
        ref = run(kernel, floats(1))
        with pytest.raises(ResourceExhaustedError, match="the 400 in use"):
            budget.check_memory(1, "more")
        del ref
        budget.check_memory(400, "all")


class Constant(OpKernel):
    """Always gives one tensor, which it keeps."""

    def __init__(self, construction):
        super().__init__(construction)
        self.tensor = floats(100)

    @property
    def const_tensor(self):
        return self.tensor

    def compute(self, ctx):
        ctx.set_output(0, self.tensor)


@pytest.mark.parametrize(("limit", "fits"), [(400, True), (399, False)])
def test_the_tensor_that_a_kernel_keeps_counts_as_long_as_the_kernel(limit, fits):
    def make():
        return make_kernel(Constant, outputs=["y: float"], contract=KernelContract(may_alias=True))

    with under_budget(Budget(limit)) as budget:
        if not fits:
            with pytest.raises(ResourceExhaustedError):
                make()
            return
        kernel = make()
        with pytest.raises(ResourceExhaustedError, match="the 400 in use"):
            budget.check_memory(1, "more")
        assert run(kernel).size == 100  # which counts already
        del kernel
        budget.check_memory(400, "all")


def test_a_kernel_that_is_made_in_a_step_outlives_the_step_s_budget():
    with under_budget(Budget(400)) as lasting:
        with under_budget(Budget(400, outer=lasting, is_of_step=True)):
            kernel = make_kernel(Constant, outputs=["y: float"])
        with pytest.raises(ResourceExhaustedError, match="the 400 in use"):
            lasting.check_memory(1, "more")
        del kernel
        lasting.check_memory(400, "all")


class TestStrings:
    """Their bytes count, once each, unless they are an input's."""

    def counted(self, function, *inputs):
        """What the output of a kernel of two tensors of strings counts for."""
        kernel = made(
            function,
            inputs=["a: string", "b: string"],
            outputs=["y: string"],
            shape_fn=lambda c: None,
        )
        values = [np.array(value, object) for value in inputs]
        with under_budget(Budget(ENOUGH)) as budget:
            output = run(kernel, *values)
            with pytest.raises(ResourceExhaustedError) as raised:
                budget.check_memory(ENOUGH, "more")
            del output
        return int(raised.value.message.partition("the ")[2].partition(" in use")[0])

    def test_strings_count_with_their_content(self):
        one = self.counted(lambda a, b: np.array([b"a" * 1000], object), [b""], [b""])
        assert 1008 <= one <= 1100

    def test_a_string_counts_once(self):
        text = b"a" * 1000
        assert self.counted(lambda a, b: np.array([text] * 10, object), [b""], [b""]) <= 1200

    @pytest.mark.parametrize("which", [0, 1])
    def test_strings_of_the_inputs_count_nothing_again(self, which):
        texts = [bytes([i]) * 1000 for i in range(65, 69)]
        inputs = [[b"x"], [b"x"]]
        inputs[which] = texts
        found = self.counted(
            lambda a, b: np.array([*reversed((a, b)[which]), b"new" * 1000], object), *inputs
        )
        assert 3040 <= found <= 3200


def test_large_elementwise_kernels_go_in_pieces_where_time_is_limited(monkeypatch):
    monkeypatch.setattr(bounded, "_PIECE", 10)
    claims = KernelContract(outputs_as_declared=True, elementwise=True)

    def negative(x):
        calls.append(x.size)
        return -x

    kernel = made(negative, contract=claims, shape_fn=unchanged_shape)
    value = np.arange(35, dtype=np.float32)
    in_time = time.monotonic() + 1e6
    for budget, parts in (
        (Budget(ENOUGH), [35]),
        (Budget(ENOUGH, deadline=in_time), [10, 10, 10, 5]),
    ):
        calls.clear()
        with under_budget(budget):
            np.testing.assert_array_equal(run(kernel, value), -value)
        assert calls == parts


def test_other_kernels_do_not_go_in_pieces(monkeypatch):
    monkeypatch.setattr(bounded, "_PIECE", 10)
    kernel = made(repeated, contract=DECLARED)
    with under_budget(Budget(ENOUGH, deadline=time.monotonic() + 1e6)):
        run(kernel, floats(35))
    assert calls == [35]


def test_no_executor_avoids_the_function():
    """Plans compute what claims to be element-wise by parts, in memory of their own."""
    claims = KernelContract(
        outputs_as_declared=True, elementwise=True, same_shapes=True, takes_out=True
    )
    kernel = made(lambda x, *, out=None: -x, contract=claims, shape_fn=unchanged_shape)
    assert kernel.contract == KernelContract(outputs_as_declared=True)
    assert run(kernel, floats(2)).dtype == float32.numpy_dtype
