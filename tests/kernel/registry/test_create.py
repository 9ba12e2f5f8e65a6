"""Kernels of nodes on devices, as TensorFlow's op_kernel_test has them."""

import functools
from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.device.budget import Budget
from opkernel.device.local_device import LocalDevice
from opkernel.errors import (
    DataLossError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.kernel import (
    AllocatorAttributes,
    FunctionKernel,
    KernelContract,
    KernelRegistry,
    OpKernel,
    OpKernelContext,
    Step,
    create_op_kernel,
    register_kernel,
    under_budget,
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


def test_an_op_that_is_not_registered_names_the_node(ops: Ops) -> None:
    with pytest.raises(NotFoundError, match=r"'Absent'(.|\n)*\tIn \{\{node n\}\}"):
        create_op_kernel(
            CPU, NodeDef(name="n", op="Absent"), op_registry=ops.ops, registry=ops.kernels
        )


@pytest.mark.parametrize(
    ("value", "fits"),
    [(2**31 - 1, True), (-(2**31), True), (2**31, False), (-(2**31) - 1, False)],
)
def test_an_int32_is_one_of_32_bits(ops: Ops, value: int, fits: bool) -> None:
    class Reads(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            for name, kind in (("one", "int32"), ("many", "list(int32)")):
                found.append(construction.get_attr(name, kind))

    found: list[Any] = []
    ops.declare("Test2", attrs=[f"one: int = {value}", f"many: list(int) = [1, {value}]"])
    ops.register(Reads, "Test2")
    if fits:
        ops.create(op="Test2", inputs=0)
        assert found == [value, [1, value]]
    else:
        with pytest.raises(InvalidArgumentError, match="out of range for an int32"):
            ops.create(op="Test2", inputs=0)


def test_an_attr_that_the_op_lacks_is_read_as_what_it_holds(ops: Ops) -> None:
    """As `_class` and others that graphs put beside an op's own."""

    class Reads(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            found.append(construction.get_attr("_more"))
            with pytest.raises(NotFoundError, match="No attr named 'mor'"):
                construction.get_attr("mor")

    found: list[Any] = []
    ops.register(Reads)
    node = NodeDef(name="n", op="Test1", input=["a", "b"])
    node.attr["_more"].i = 3
    create_op_kernel(CPU, node, op_registry=ops.ops, registry=ops.kernels)
    assert found == [3]


def test_a_construction_allocates_on_its_device(ops: Ops) -> None:
    class Looks(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            kept = construction.allocate_persistent(float32, [2, 3])
            assert kept.access_tensor(construction).shape == (2, 3)
            on_host = AllocatorAttributes(on_host=True)
            found.append(
                [construction.allocate_on_host(attr) for attr in (AllocatorAttributes(), on_host)]
            )

    found: list[Any] = []
    ops.register(Looks)
    ops.register(Looks, device="GPU")
    ops.create()
    ops.create(GPU)
    assert found == [[True, True], [False, True]]


def test_the_device_is_told_which_memory_is_wanted() -> None:
    class Device(LocalDevice):
        def get_allocator(self, attr: AllocatorAttributes) -> Any:
            asked.append(attr)
            return super().get_allocator(attr)

    class Asks(OpKernel):
        def __init__(self, construction: Any) -> None:
            super().__init__(construction)
            construction.get_allocator()
            construction.get_allocator(on_host)
            construction.allocate_temp(float32, [2])
            construction.allocate_temp(float32, [2], on_host)

        def compute(self, ctx: Any) -> None:
            ctx.get_allocator()
            ctx.get_allocator(on_host)
            ctx.allocate_output(0, [2])
            ctx.allocate_temp(float32, [2], on_host)

    asked: list[Any] = []
    on_host, anywhere = AllocatorAttributes(on_host=True), AllocatorAttributes()
    kernel = make_kernel(Asks, outputs=["y: float"], device=Device("CPU", np))
    assert asked == [anywhere, on_host, anywhere, on_host]
    asked.clear()
    OpKernelContext(kernel, [], Step()).run()
    assert asked == [anywhere, on_host, anywhere, on_host]


class TestForms:
    """Nodes that are alike are looked at once; nodes that differ are told apart."""

    def registered(self, ops: Ops) -> None:
        ops.declare(
            "Test2", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float, int32}", "k: int = 1"]
        )
        ops.register(lambda x, *, k: x + np.float32(k), "Test2", types={"T": float32})
        ops.register(lambda x, *, k: x - k, "Test2", types={"T": int32})

    def made(self, ops: Ops, dtype: DataType, k: int, name: str = "n", **options: Any) -> Any:
        node = NodeDef(name=name, op="Test2", input=["x"])
        node.attr["T"].type = dtype
        node.attr["k"].i = k
        kernel = create_op_kernel(CPU, node, op_registry=ops.ops, registry=ops.kernels, **options)
        assert kernel.name == name
        (output,) = OpKernelContext(kernel, [np.array(10, dtype.numpy_dtype)], Step()).run()
        return output.item()

    def test_by_types_and_values(self, ops: Ops) -> None:
        self.registered(ops)
        for _ in range(2):
            assert self.made(ops, float32, 1) == 11
            assert self.made(ops, float32, 2, "m") == 12
            assert self.made(ops, int32, 2) == 8

    def test_by_a_signature_that_the_graph_knows(self, ops: Ops) -> None:
        self.registered(ops)
        for name in ("n", "m"):
            assert self.made(ops, float32, 1, name, signature="of floats") == 11
            assert self.made(ops, int32, 1, name, signature="of ints") == 9

    def test_by_the_number_of_inputs(self, ops: Ops) -> None:
        self.registered(ops)
        assert self.made(ops, float32, 1) == 11
        node = NodeDef(name="n", op="Test2", input=["x", "y"])
        node.attr["T"].type = float32
        node.attr["k"].i = 1
        with pytest.raises(InvalidArgumentError, match="expected inputs 'float' do not match 2"):
            create_op_kernel(CPU, node, op_registry=ops.ops, registry=ops.kernels)
        del node.input[:]
        node.input.extend(["x", "^control"])
        create_op_kernel(CPU, node, op_registry=ops.ops, registry=ops.kernels)

    def test_an_op_that_is_declared_anew_has_new_forms(self, ops: Ops) -> None:
        self.registered(ops)
        assert self.made(ops, float32, 1, signature="same") == 11
        other = Ops()
        other.kernels = ops.kernels
        other.declare(
            "Test2", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float}", "k: float = 1.0"]
        )
        for options in ({}, {"signature": "same"}):
            with pytest.raises(InvalidArgumentError, match="'k'"):
                self.made(other, float32, 1, **options)


class TestGuards:
    """What is put around a kernel: mostly nothing."""

    def kernel(self, contract: KernelContract) -> Any:
        def kernel(x: Any) -> Any:
            return x + np.float32(1)

        made = make_kernel(kernel, inputs=["x: float"], outputs=["y: float"], contract=contract)
        assert isinstance(made, FunctionKernel)
        return made, kernel

    def test_a_kernel_that_claims_its_outputs_is_called_directly(self) -> None:
        made, kernel = self.kernel(KernelContract(outputs_as_declared=True))
        assert made.function is made.unchecked is kernel

    def test_any_other_is_checked(self) -> None:
        made, kernel = self.kernel(KernelContract())
        assert made.function is not kernel
        assert made.unchecked is kernel

    def test_memory_that_is_limited_is_looked_at(self) -> None:
        claims = KernelContract(outputs_as_declared=True)
        for budget, is_bound in ((Budget(1000), True), (Budget(deadline=1e12), False)):
            with under_budget(budget):
                made, kernel = self.kernel(claims)
            assert (made.function is not kernel) is is_bound

    def test_a_late_kernel_is_not_made(self) -> None:
        with (
            under_budget(Budget(deadline=0.0)),
            pytest.raises(DeadlineExceededError, match="while making the kernel of 'n'"),
        ):
            self.kernel(KernelContract())

    def test_the_environment_has_claims_verified(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("opkernel.kernel.registry.create._CHECKS_CONTRACTS", True)
        made, kernel = self.kernel(KernelContract(outputs_as_declared=True))
        assert made.function is not kernel
        assert made.contract == KernelContract()
