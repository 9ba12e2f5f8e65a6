"""Kernels of nodes on devices, as TensorFlow's op_kernel_test has them."""

import functools
from typing import Any

import numpy as np
import pytest

from opkernel.device.local_device import LocalDevice
from opkernel.errors import DataLossError, InternalError, InvalidArgumentError, NotFoundError
from opkernel.kernel import (
    KernelRegistry,
    OpKernel,
    OpKernelContext,
    Step,
    create_op_kernel,
    register_kernel,
)
from opkernel.opdef import OpRegistry, add_defaults_to_node_def, register_op, unknown_shape
from opkernel.proto import NodeDef
from opkernel.runtime import CPU
from opkernel.types import DataType, PartialTensorShape, float32, int32

GPU = LocalDevice("GPU", np)


class Ops:
    """Registries of their own, with an op `Test1` as TensorFlow's test has it."""

    def __init__(self) -> None:
        self.ops = OpRegistry()
        self.kernels = KernelRegistry()
        self.declare("Test1", inputs=["a: float", "b: int32"], outputs=["o: uint8"])

    def declare(self, name: str, **declaration: Any) -> None:
        register_op(name, shape_fn=unknown_shape, registry=self.ops, **declaration)

    def register(self, kernel: Any, op: str = "Test1", device: str = "CPU", **options: Any) -> None:
        register_kernel(op, device=device, registry=self.kernels, op_registry=self.ops, **options)(
            kernel
        )

    def create(self, device: Any = CPU, op: str = "Test1", inputs: int = 2) -> OpKernel:
        node = NodeDef(name="n", op=op, input=[f"in{i}" for i in range(inputs)])
        add_defaults_to_node_def(node, self.ops.look_up_op_def(op))
        return create_op_kernel(device, node, op_registry=self.ops, registry=self.kernels)


@pytest.fixture
def ops() -> Ops:
    return Ops()


class OnCpu(OpKernel):
    """The kernel of one device."""


class OnGpu(OpKernel):
    """That of another."""


def test_each_device_type_has_its_class(ops: Ops) -> None:
    ops.register(OnCpu)
    ops.register(OnGpu, device="GPU")
    assert type(ops.create(CPU)) is OnCpu
    assert type(ops.create(GPU)) is OnGpu
    with pytest.raises(NotFoundError, match="No registered 'Test1' OpKernel for TPU devices"):
        ops.create(LocalDevice("TPU", np))


@pytest.mark.parametrize("inputs", [1, 3])
def test_too_few_and_too_many_inputs(ops: Ops, inputs: int) -> None:
    ops.register(OnCpu)
    with pytest.raises(
        InvalidArgumentError, match=f"'float, int32' do not match {inputs} inputs specified"
    ):
        ops.create(inputs=inputs)


def test_match_signature(ops: Ops) -> None:
    class Asks(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            construction.match_signature([float32, int32], [DataType.DT_UINT8])
            construction.match_signature([float32, int32], [int32])

    ops.register(Asks)
    with pytest.raises(
        InvalidArgumentError,
        match="have: float, int32->uint8 expected: float, int32->int32",
    ):
        ops.create()


@pytest.mark.parametrize(
    ("attr", "value"),
    [
        ("string = 'x'", "x"),
        ("list(string) = ['a', 'b']", ["a", "b"]),
        ("int = 35", 35),
        ("list(int) = [1, -2]", [1, -2]),
        ("float = 1.5", 1.5),
        ("list(float) = [0.5]", [0.5]),
        ("bool = true", True),
        ("list(bool) = [true, false]", [True, False]),
        ("type = DT_INT32", int32),
        ("list(type) = [DT_INT32, DT_FLOAT]", [int32, float32]),
        ("shape = {dim: {size: 3}}", PartialTensorShape([3])),
        ("list(shape) = [{unknown_rank: true}]", [PartialTensorShape(None)]),
    ],
)
def test_attrs_of_every_type(ops: Ops, attr: str, value: object) -> None:
    seen: list[Any] = []

    class Reads(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            kind = attr.partition(" = ")[0]
            seen.extend([construction.get_attr("a"), construction.get_attr("a", kind)])
            other = "float" if kind != "float" else "int"
            with pytest.raises(InvalidArgumentError, match="AttrValue"):
                construction.get_attr("a", other)

    ops.declare("Test2", attrs=[f"a: {attr}"])
    ops.register(Reads, "Test2")
    ops.create(op="Test2", inputs=0)
    assert seen == [value, value]


def test_integers_of_32_bits(ops: Ops) -> None:
    class Reads(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            assert construction.get_attr("small", "int32") == 7
            assert construction.get_attr("small_ones", "list(int32)") == [1, -(2**31)]
            assert construction.get_attr("large", "int") == 2**33
            construction.get_attr("large", "int32")

    ops.declare(
        "Test2",
        attrs=[
            "small: int = 7",
            f"small_ones: list(int) = [1, {-(2**31)}]",
            f"large: int = {2**33}",
        ],
    )
    ops.register(Reads, "Test2")
    with pytest.raises(
        InvalidArgumentError, match="Attr large has value 8589934592 out of range for an int32"
    ):
        ops.create(op="Test2", inputs=0)


class TestWhatMakesNoKernel:
    def test_a_constructor_that_does_not_call_that_of_op_kernel(self, ops: Ops) -> None:
        class Forgets(OpKernel):
            def __init__(self, construction: Any) -> None:
                """Does not call `super().__init__`."""

        ops.register(Forgets)
        with pytest.raises(InternalError, match=r"Forgets made Forgets, and no kernel.*'n'"):
            ops.create()

    def test_a_factory_that_returns_something_else(self, ops: Ops) -> None:
        class Factory:
            def create(self, construction: Any) -> None:
                """Makes nothing."""

        ops.register(Factory())
        with pytest.raises(InternalError, match="Factory made NoneType, and no kernel"):
            ops.create()


def test_the_cause_of_an_error_is_kept(ops: Ops) -> None:
    class Reads(OpKernel):
        def __init__(self, construction: Any) -> None:
            try:
                raise KeyError("key")
            except KeyError as error:
                raise DataLossError("the file is damaged") from error

    ops.register(Reads)
    with pytest.raises(DataLossError) as caught:
        ops.create()
    assert isinstance(caught.value.__cause__, KeyError)


class TestCallables:
    """Functions are checked, and get their attrs, however they are wrapped."""

    @pytest.fixture(autouse=True)
    def scale(self, ops: Ops) -> None:
        ops.declare("Scale", inputs=["x: float"], outputs=["y: float"], attrs=["by: int = 3"])

    def run(self, ops: Ops, kernel: Any, **options: Any) -> Any:
        ops.register(kernel, "Scale", **options)
        made = ops.create(op="Scale", inputs=1)
        return OpKernelContext(made, [np.float32(2)], Step()).run()[0]

    def test_a_method(self, ops: Ops) -> None:
        class Scaler:
            plus = np.float32(1)

            def scale(self, x: Any, *, by: int) -> Any:
                return np.float32(x * by) + self.plus

            def wrong(self, x: Any, y: Any) -> None:
                """Takes too much."""

        assert self.run(ops, Scaler().scale) == 7
        with pytest.raises(InvalidArgumentError, match=r"wrong\(x, y\) does not fit"):
            ops.register(Scaler().wrong, "Scale")

    def test_a_decorated_function(self, ops: Ops) -> None:
        def twice(function: Any) -> Any:
            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return 2 * function(*args, **kwargs)

            return wrapper

        @twice
        def scale(x: Any, *, by: int) -> Any:
            return np.float32(x * by)

        @twice
        def wrong(x: Any, *, to: int) -> None:
            """Wants what the op does not have."""

        assert self.run(ops, scale) == 12
        with pytest.raises(InvalidArgumentError, match="the op has no attr 'to'"):
            ops.register(wrong, "Scale")

    def test_coroutines_however_they_are_made(self, ops: Ops) -> None:
        async def scale(x: Any, *, by: int) -> Any:
            return np.float32(x * by)

        def maker(*, by: int) -> Any:
            return functools.partial(scale, by=by + 1)

        class Callable:
            async def __call__(self, x: Any) -> Any:
                return np.float32(x + 1)

        class Coroutine(OpKernel):
            async def compute(self, ctx: OpKernelContext) -> None:
                ctx.set_output(0, np.float32(ctx.input(0) - 1))

        class Factory:
            def create(self, construction: Any) -> OpKernel:
                return Coroutine(construction)

        assert self.run(ops, scale) == 6
        assert self.run(ops, maker, factory=True, priority=1) == 8
        assert self.run(ops, Callable(), priority=2) == 3
        assert self.run(ops, Factory(), priority=3) == 1
