"""`check_op`: wrong kernels are caught on calls drawn from the op alone, and made small."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import strategies as st

from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    UnimplementedError,
)
from opkernel.kernel import OpKernel, check_allocation
from opkernel.kernel.async_op_kernel import AsyncOpKernel
from opkernel.opdef import scalar_shape, unknown_shape
from opkernel.testing import (
    CheckFailure,
    check_op,
    check_saved_call,
    examine_op,
    save_failure,
)
from opkernel.types import float32


def failure(ops, name="Copy", **options):
    with pytest.raises(CheckFailure) as caught:
        check_op(name, **ops.options, **options)
    return caught.value


def function(ops, kernel, **declared):
    ops.op(**declared)
    ops.kernel()(kernel)
    return failure(ops)


def test_right_kernels_pass(ops):
    ops.op()
    ops.kernel()(lambda x: x + 0)
    ops.kernel(label="other")(lambda x: x * 1)
    report = check_op("Copy", max_examples=30, **ops.options)
    assert (report.kernels, report.ran, report.failure) == (2, 30, None)


def test_a_kernel_that_writes_to_its_input(ops):
    def zero(x):
        if x.size > 1:
            x.reshape(-1)[1:] = 7
        return x.copy()

    found = function(ops, zero)
    assert "zero (CPU) writes to an input: " in found.what
    assert [v.size for v in found.call.inputs] == [2]  # the smallest


def test_a_wrong_type(ops):
    found = function(ops, lambda x: np.asarray(x, np.float64))
    assert "output 0 must be float, the kernel set float64" in found.what
    assert not np.any(found.call.inputs[0])


def test_a_wrong_shape(ops):
    found = function(ops, lambda x: np.array(x[:1] if x.ndim else x))
    assert "gives output 0 the shape [1], where the shape function says [" in found.what
    assert found.call.inputs[0].ndim == 1


def test_a_result_that_is_not_the_same_twice(ops):
    numbers = itertools.count()
    found = function(ops, lambda x: x + np.asarray(next(numbers), x.dtype))
    assert "other values for the same inputs" in found.what


def test_a_failure_that_does_not_come_again_is_reported_all_the_same(ops):
    numbers = itertools.count(1)

    def rarely_wrong(x):
        return x + 0 if next(numbers) % 40 else np.zeros(7, x.dtype)

    found = function(ops, rarely_wrong)
    assert "rarely_wrong (CPU) gives output 0" in found.what


def test_an_asynchronous_kernel_that_is_never_done(ops, monkeypatch):
    monkeypatch.setattr("opkernel.testing.check_kernels._TIMEOUT_S", 0.1)
    kept = []
    ops.op()

    @ops.kernel()
    class Forever(AsyncOpKernel):
        def compute_async(self, ctx, done):
            kept.append(done)

    assert "Forever (CPU) is not done after 0.1 seconds" in failure(ops).what
    ops.op("Waits", is_stateful=True)  # for another device, perhaps
    ops.kernel("Waits")(Forever)
    assert "it waits for others: " in examine_op("Waits", **ops.options).skipped
    ops.op("Talks", is_distributed_communication=True)
    ops.kernel("Talks")(Forever)
    assert "it waits for other devices" in examine_op("Talks", **ops.options).skipped
    for done in kept:
        done()


def test_a_stateful_op_may_give_another_result(ops):
    numbers = itertools.count()
    ops.op(is_stateful=True)
    ops.kernel()(lambda x: x + np.asarray(next(numbers), x.dtype))
    assert check_op("Copy", max_examples=20, **ops.options).ran == 20


def test_kernels_that_disagree(ops):
    ops.op()
    ops.kernel()(lambda x: x + 0)

    @ops.kernel(label="fast", types={"T": float32})
    def fast(x):
        return np.minimum(x, 2)

    found = failure(ops)
    assert "fast (CPU, label 'fast') and" in found.what
    assert "disagree on output 0: 1 of" in found.what


def test_rounding_is_no_disagreement(ops):
    ops.op(attrs=["T: {float}"], shape_fn=scalar_shape)
    ops.kernel()(lambda x: np.sum(x, dtype=np.float32))
    ops.kernel(label="other")(lambda x: np.float32(np.sum(np.float64(x))))
    assert check_op("Copy", **ops.options).ran == 100


def test_an_output_that_is_left_unwritten(ops):
    ops.op()

    @ops.kernel()
    class Forgetful(OpKernel):
        def compute(self, ctx):
            x = ctx.input(0)
            y = ctx.allocate_output(0, x.shape)
            y.reshape(-1)[1:] = x.reshape(-1)[1:]

    found = failure(ops)
    assert "Forgetful (CPU) leaves output 0 unwritten at [" in found.what
    assert found.call.inputs[0].size == 1


def test_memory_beside_an_array(ops):
    ops.op()

    @ops.kernel()
    class Overrun(OpKernel):
        def compute(self, ctx):
            y = ctx.allocate_output(0, ctx.input(0).shape)
            y[...] = ctx.input(0)
            flat = np.lib.stride_tricks.as_strided(y, (y.size + 1,), (y.itemsize,))
            flat[-1] = 0

    assert "writes to the memory behind its array" in failure(ops).what


def test_an_exception_that_is_no_refusal(ops):
    def fails(x):
        if x.ndim == 3:
            raise KeyError("three")
        return x + 0

    found = function(ops, fails)
    assert "raises KeyError: 'three'; a refusal is an OpError" in found.what
    assert found.call.inputs[0].shape in {(0, 0, 0), (1, 1, 1), (2, 2, 2)}


def test_an_output_that_is_not_set(ops):
    ops.op()

    @ops.kernel()
    class Lazy(OpKernel):
        def compute(self, ctx):
            pass

    assert "did not set output 0" in failure(ops).what


def test_an_asynchronous_kernel_is_waited_for(ops):
    ops.op()

    @ops.kernel()
    class Async(AsyncOpKernel):
        def compute_async(self, ctx, done):
            ctx.set_output(0, ctx.input(0) + 0)
            done()

    assert check_op("Copy", max_examples=10, **ops.options).ran == 10


def test_refusals_are_counted_and_are_no_failures(ops):
    def choosy(x):
        if x.ndim != 1:
            raise InvalidArgumentError("vectors only")
        if x.size == 2:
            raise InternalError("a refusal, too: the kernel itself says so")
        return x + 0

    ops.op()
    ops.kernel()(choosy)
    report = check_op("Copy", max_examples=20, **ops.options)
    assert 5 < report.ran <= 20 < report.draws


def test_an_op_whose_kernels_refuse_everything_was_not_tested(ops):
    def never(x):
        raise InvalidArgumentError("no")

    ops.op()
    ops.kernel()(never)
    with pytest.raises(FailedPreconditionError, match="refused all"):
        check_op("Copy", max_examples=5, **ops.options)


def test_an_opaque_kernel_gives_no_memory_of_its_inputs(ops):
    assert 'does not say kind="view"' in function(ops, lambda x: x[...]).what


def test_a_view_may(ops):
    ops.op()
    ops.kernel(kind="view")(lambda x: x[...])
    assert check_op("Copy", max_examples=10, **ops.options).ran == 10


def test_a_buffer_that_is_used_again(ops):
    ops.op()

    @ops.kernel()
    class Reuses(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            self.buffers = []

        def compute(self, ctx):
            for buffer in self.buffers:
                buffer[...] = 5
            self.buffers.append(np.array(ctx.input(0)))
            ctx.set_output(0, self.buffers[-1])

    assert "changes output 0 after it returned it" in failure(ops).what


def test_how_inputs_lie_in_memory_makes_no_difference(ops):
    def naive(x):
        first = np.asarray(x)
        return np.full_like(first, 1 if first.flags.c_contiguous else 2)

    found = function(ops, naive)
    assert "other values where inputs are no contiguous arrays" in found.what


def test_a_node_that_is_changed(ops):
    ops.op(attrs=["T: {float}", "k: int = 1"])

    @ops.kernel()
    class Changes(OpKernel):
        def compute(self, ctx):
            self.node_def.attr["k"].i += 1
            ctx.set_output(0, ctx.input(0) + 0)

    assert "changes the attrs of its node" in failure(ops).what


def test_a_shape_function_that_fails_is_a_failure(ops):
    def careless(c):
        dims = c.input(0).dims
        c.set_output(0, c.vector(dims[0]) if dims is not None else c.unknown_shape())

    found = function(ops, lambda x: x + 0, shape_fn=careless)
    assert "the shape function raises IndexError" in found.what


def test_shapes_that_must_go_together_are_found(ops):
    """Without a hint: three inputs that multiply, and a bias."""

    def shapes(c):
        a, b = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
        c.merge(c.dim(a, 1), c.dim(b, 0))
        bias = c.with_rank(c.input(2), 1)
        width = c.merge(c.dim(b, 1), c.dim(bias, 0))
        c.set_output(0, c.matrix(c.dim(a, 0), width))

    ops.op("Dense", inputs=["a: float", "b: float", "bias: float"], attrs=[], outputs=["y: float"],
           shape_fn=shapes)  # fmt: skip
    ops.kernel("Dense")(lambda a, b, bias: a @ b + bias)
    report = check_op("Dense", **ops.options)
    assert report.ran == report.draws == 100


def test_inputs_and_attrs_can_be_given(ops):
    def take(x, index, *, k):
        if not 0 <= index < 3 or k != 5:
            raise InvalidArgumentError("out of range")
        return np.full(check_allocation(x.shape, float32), index, np.float32)

    ops.op("Take", inputs=["x: float", "index: int32"], attrs=["k: int"], outputs=["y: float"])
    ops.kernel("Take")(take)
    hints = {"index": st.integers(0, 2)}
    report = check_op("Take", inputs=hints, attrs={"k": 5}, max_examples=30, **ops.options)
    assert report.ran == report.draws == 30


def test_a_failure_of_a_given_strategy_shrinks(ops):
    def picky(x, index):
        return np.full(x.shape, 1 if index < 7 else "no number", np.float32)

    ops.op("Take", inputs=["x: float", "index: int32"], attrs=[], outputs=["y: float"])
    ops.kernel("Take")(picky)
    found = failure(ops, "Take", inputs={"index": st.integers(0, 99)})
    assert int(found.call.inputs[1]) == 7


def test_lists_strings_and_references(ops):
    ops.op("Mix", inputs=["xs: N * T", "many: Ts", "s: string", "r: Ref(float)"],
           attrs=["N: int >= 1", "T: {float, bool}", "Ts: list(type)"], outputs=["n: int32"],
           shape_fn=scalar_shape)  # fmt: skip
    ops.kernel("Mix")(lambda xs, many, s, r: np.int32(len(xs) + len(many)))
    assert check_op("Mix", max_examples=30, **ops.options).ran == 30


def test_what_cannot_be_drawn_is_said(ops):
    ops.op("Handle", inputs=["h: resource"], outputs=[], attrs=[], shape_fn=unknown_shape)
    assert "no kernel for CPU" in examine_op("Handle", **ops.options).skipped
    ops.kernel("Handle")(lambda h: None)
    assert "'h', a resource, cannot be drawn" in examine_op("Handle", **ops.options).skipped


def test_the_same_calls_are_drawn_every_time(ops):
    ops.op()
    seen = []

    @ops.kernel()
    def watched(x):
        seen.append(np.shape(x))
        return x + 0

    check_op("Copy", max_examples=20, **ops.options)
    first, seen[:] = list(seen), []
    check_op("Copy", max_examples=20, **ops.options)
    assert seen == first
    assert {len(shape) for shape in first} >= {0, 1, 2}


def test_a_failure_is_saved_and_read_again(ops, tmp_path):
    def wrong(x):
        return x + 0 if x.size < 3 else np.zeros_like(np.asarray(x))[:0]

    found = function(ops, wrong)
    call, case = save_failure(found, tmp_path / "cases", ["my.module"])
    assert 'op: "Copy"' in call.read_text()
    assert "import my.module" in case.read_text()
    assert "# the kernel wrong (CPU) gives output 0 the shape" in case.read_text()
    compile(case.read_text(), str(case), "exec")
    with pytest.raises(CheckFailure) as again:
        check_saved_call(call, **ops.options)
    assert again.value.what == found.what
    assert str(again.value.call) == str(found.call)


def test_hypothesis_is_asked_for_where_it_is_missing(ops, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnimplementedError, match="needs the library hypothesis: pip install"):
        check_op("Copy", **ops.options)


def test_the_room_itself_needs_neither_pytest_nor_hypothesis():
    code = "import opkernel.testing, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pytest", "hypothesis"} & set(done.stdout.split())
