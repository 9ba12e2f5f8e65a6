"""Kernels made for a node and computed by hand: construction, context, function kernels."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from opkernel.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from opkernel.kernel import (
    AllocatorAttributes,
    KernelRegistry,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    Step,
    allocation_limit,
    create_op_kernel,
    from_attrs,
    register_kernel,
)
from opkernel.opdef import NodeDefBuilder, OpRegistry, register_op, unknown_shape
from opkernel.proto import NodeDef
from opkernel.runtime import CPU
from opkernel.types import float32, int32


class Ops:
    """An op with a list argument on both sides, and registries of its own."""

    def __init__(self) -> None:
        self.ops = OpRegistry()
        self.kernels = KernelRegistry()
        register_op(
            "Scale",
            inputs=["factor: float", "values: N * float"],
            outputs=["scaled: N * float", "count: int32"],
            attrs=["N: int >= 1", "offset: float = 0.5"],
            shape_fn=unknown_shape,
            registry=self.ops,
        )

    def register(self, kernel: Any, **options: Any) -> None:
        register_kernel(
            "Scale", device="CPU", registry=self.kernels, op_registry=self.ops, **options
        )(kernel)

    def node(self) -> NodeDef:
        builder = NodeDefBuilder("n", "Scale", self.ops).input("f", 0, float32)
        return builder.input_list([("a", 0, float32), ("b", 0, float32)]).finalize()

    def make(self, kernel: Any, **options: Any) -> OpKernel:
        self.register(kernel, **options)
        return create_op_kernel(CPU, self.node(), op_registry=self.ops, registry=self.kernels)

    def run(self, kernel: Any, **options: Any) -> list[Any]:
        made = self.make(kernel, **options)
        inputs = [np.float32(2), np.array([1, 2], np.float32), np.array([3], np.float32)]
        return OpKernelContext(made, inputs, Step()).run()


@pytest.fixture
def ops() -> Ops:
    return Ops()


class Scale(OpKernel):
    """The op as a class."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.offset = construction.get_attr("offset")

    def compute(self, ctx: OpKernelContext) -> None:
        values = ctx.input_list("values")
        ctx.set_output_list("scaled", [ctx.input("factor") * v + self.offset for v in values])
        ctx.allocate_output("count", []).fill(len(values))


def scale(factor: Any, values: list[Any], *, offset: float) -> tuple[list[Any], Any]:
    return [factor * value + offset for value in values], np.int32(len(values))


def scale_maker(*, offset: float, xp: Any) -> Any:
    return lambda factor, values: (
        [xp.add(factor * value, xp.float32(offset)) for value in values],
        xp.int32(len(values)),
    )


def doubled(offset: float, unit: float = 0.5) -> float:
    """What `scale_from_records` takes for its offset; `unit` is no attr of the op."""
    return offset / unit


@from_attrs(shift=doubled)
def scale_from_records(
    factor: Any, values: list[Any], *, shift: float, offset: float
) -> tuple[list[Any], Any]:
    return scale(factor, values, offset=shift - offset)


class Scales:
    @from_attrs(shift=doubled, twice=partial(doubled, unit=1.0))
    def maker(self, *, shift: float, twice: float, xp: Any) -> Any:
        return scale_maker(offset=shift - twice, xp=xp)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        (Scale, {}),
        (scale, {}),
        (scale_maker, {"factory": True}),
        (scale_from_records, {}),
        (Scales().maker, {"factory": True}),
    ],
)
def test_classes_functions_and_makers_compute_the_same(
    ops: Ops, kernel: Any, options: dict[str, Any]
) -> None:
    first, second, count = ops.run(kernel, **options)
    np.testing.assert_array_equal(first, np.array([2.5, 4.5], np.float32))
    np.testing.assert_array_equal(second, np.array([6.5], np.float32))
    assert count == 2


def test_a_kernel_knows_its_node(ops: Ops) -> None:
    kernel = ops.make(Scale)
    assert (kernel.name, kernel.type_string) == ("n", "Scale")
    assert kernel.input_types == (float32,) * 3
    assert kernel.output_types == (float32, float32, int32)
    assert kernel.input_range("values") == (1, 3)
    assert kernel.output_range("count") == (2, 3)
    with pytest.raises(InvalidArgumentError, match=r"unknown output name 'x'.*node 'n'"):
        kernel.output_range("x")


def test_an_error_of_a_constructor_names_the_node(ops: Ops) -> None:
    class Wrong(OpKernel):
        def __init__(self, construction: OpKernelConstruction) -> None:
            construction.requires(True, "is not raised")
            construction.match_signature([float32], [])

    with pytest.raises(InvalidArgumentError) as raised:
        ops.make(Wrong)
    assert str(raised.value) == (
        "Scale: Signature mismatch, have: float, float, float->float, float, int32 "
        "expected: float-> (node 'n')"
    )
    assert (raised.value.node, raised.value.op) == ("n", "Scale")


def test_another_exception_of_a_constructor_becomes_one_of_ours(ops: Ops) -> None:
    def wrong(*, offset: float) -> Any:
        raise ValueError(f"no kernel for {offset}")

    with pytest.raises(InvalidArgumentError, match=r"ValueError: no kernel for 0.5 \(node 'n'\)"):
        ops.make(wrong, factory=True)


def test_a_constructor_sees_types_and_takes_memory(ops: Ops) -> None:
    class Looks(OpKernel):
        def __init__(self, construction: OpKernelConstruction) -> None:
            super().__init__(construction)
            assert (construction.input_type(2), construction.output_type(2)) == (float32, int32)
            assert (construction.num_inputs, construction.num_outputs) == (3, 3)
            for attr in (None, AllocatorAttributes(on_host=True)):
                assert construction.allocate_temp(int32, [2, 3], attr).shape == (2, 3)
            allocator = construction.get_allocator(AllocatorAttributes(on_host=True))
            temp = construction.allocate_temp(int32, [2], AllocatorAttributes(on_host=True))
            assert allocator.requested_size(temp) == 8

    ops.make(Looks)


def test_an_attr_that_the_node_lacks(ops: Ops) -> None:
    class Wrong(OpKernel):
        def __init__(self, construction: OpKernelConstruction) -> None:
            assert construction.has_attr("offset")
            construction.get_attr("nothing")

    with pytest.raises(NotFoundError, match="No attr named 'nothing'"):
        ops.make(Wrong)


def context(ops: Ops, kernel: Any = Scale) -> OpKernelContext:
    inputs = [np.float32(2), np.array([1, 2], np.float32), np.array([3], np.float32)]
    return OpKernelContext(ops.make(kernel), inputs, Step())


class TestContext:
    def test_arguments_by_index_and_name(self, ops: Ops) -> None:
        ctx = context(ops)
        assert (ctx.num_inputs, ctx.num_outputs) == (3, 3)
        assert ctx.input("factor") == ctx.input(0) == 2
        assert ctx.input_dtype(1) is float32
        assert ctx.expected_output_dtype("count") is int32
        with pytest.raises(InvalidArgumentError, match="'values' is a list of 2 tensors"):
            ctx.input("values")

    def test_outputs_have_the_declared_type_and_number(self, ops: Ops) -> None:
        ctx = context(ops)
        ctx.set_output("count", 3)
        assert ctx.outputs[2].dtype == np.int32
        with pytest.raises(InternalError, match="output 2 must be int32, the kernel set float64"):
            ctx.set_output("count", np.float64(3))
        with pytest.raises(InternalError, match="'scaled' takes 2 tensors, got 1"):
            ctx.set_output_list("scaled", [np.float32(1)])

    def test_an_output_that_is_not_set(self, ops: Ops) -> None:
        class Idle(OpKernel):
            def compute(self, ctx: OpKernelContext) -> None:
                pass

        with pytest.raises(InternalError, match="did not set output 0"):
            ops.run(Idle)

    def test_the_first_recorded_error_counts(self, ops: Ops) -> None:
        class Recording(OpKernel):
            def compute(self, ctx: OpKernelContext) -> None:
                ctx.set_status(DataLossError("first"))
                ctx.set_status(NotFoundError("second"))
                assert ctx.status is not None

        with pytest.raises(DataLossError, match="first"):
            ops.run(Recording)

    def test_allocation_keeps_to_the_limit(self, ops: Ops) -> None:
        ctx = context(ops)
        assert ctx.allocate_temp(int32, [2, 3]).shape == (2, 3)
        with allocation_limit(1000), pytest.raises(ResourceExhaustedError, match="OOM"):
            ctx.allocate_output("count", [1000])
        with pytest.raises(InvalidArgumentError, match="more than 2\\*\\*63 - 1 elements"):
            ctx.allocate_temp(int32, [0, 2**62, 4])


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda factor: factor, "must take 2 positional parameters"),
        (lambda *inputs: inputs, "must take 2 positional parameters"),
        (lambda factor, values, *, speed: values, "the op has no attr 'speed'"),
        (np.negative, "must take 2 positional parameters"),
        (from_attrs(speed=lambda knots: knots)(scale_from_records), "the op has no attr 'knots'"),
    ],
)
def test_a_function_that_does_not_fit_the_op_is_refused(ops: Ops, function: Any, why: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"Scale\(factor, values.*{why}"):
        ops.register(function)


def test_a_function_for_an_op_that_comes_later_is_checked_when_its_kernel_is_made(
    ops: Ops,
) -> None:
    kernels = KernelRegistry()
    early = register_kernel("Scale", device="CPU", registry=kernels, op_registry=OpRegistry())
    early(lambda factor: factor)
    with pytest.raises(InvalidArgumentError, match="must take 2 positional parameters"):
        create_op_kernel(CPU, ops.node(), op_registry=ops.ops, registry=kernels)


def test_a_synchronous_class_with_compute_async_is_told_the_class_that_it_wants(ops: Ops) -> None:
    class Scale(OpKernel):
        def compute_async(self, ctx: OpKernelContext, done: Any) -> None:
            done()

    with pytest.raises(
        NotImplementedError, match=r"Scale does not override compute; .* an AsyncOpKernel"
    ):
        ops.run(Scale)
