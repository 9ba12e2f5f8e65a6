"""Who computes the kernels of a session: by priority, by choice, by what a provider supports."""

import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel import (
    KernelProvider,
    choose_providers,
    default_providers,
    global_kernel_registry,
    register_kernel,
    register_provider,
    registered_providers,
    unregister_provider,
)
from opkernel.opdef import register_op, unchanged_shape
from opkernel.runtime import CPU, SessionConfig, execute
from opkernel.state.lasting_values import note_lasting
from opkernel.types import float32, int32

OP = register_op(
    "ProvidedInTests",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: {float, double, int32}"],
    shape_fn=unchanged_shape,
)


@register_kernel(OP, device="CPU")
def by_reference(x: Any) -> Any:
    return x + x.dtype.type(1)


class Provider(KernelProvider):
    """Gives its number for floats, of known rank if `rank` is set."""

    def __init__(self, name: str, priority: int, number: float) -> None:
        super().__init__(name, priority)
        self.rank: int | None = None
        self.is_here = True
        self.shapes: list[str] = []
        register_kernel(OP, device="CPU", types={"T": [float32]}, registry=self.kernels)(
            lambda x: np.full(x.shape, number, x.dtype)
        )

    def is_available(self) -> bool:
        return self.is_here

    def supports(self, node: Any, shapes: Any) -> bool:
        assert node.op_def.name == OP.name
        assert node.input_types == (float32,)
        self.shapes += map(str, shapes)
        return self.rank is None or shapes[0].rank == self.rank


@pytest.fixture
def provider() -> Iterator[Any]:
    """Registers providers of these names, priorities and numbers."""
    made = []

    def make(name: str, priority: int, number: float) -> Provider:
        one = Provider(name, priority, number)
        register_provider(one)
        made.append(name)
        return one

    yield make
    for name in made:
        unregister_provider(name)


def value(dtype: Any = float32, shape: Any = (2,), **options: Any) -> float:
    """What the op gives for zeros in a session."""
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(dtype, shape)
        y = graph.create_op(OP.name, [x]).outputs[0]
    with opkernel.Session(graph, **options) as session:
        return float(session.run(y, {x: np.zeros(2, dtype.numpy_dtype)})[0])


def test_the_highest_priority_is_asked_first(provider: Any) -> None:
    assert value() == 1
    provider("low", 3, 30)
    assert value() == 30
    provider("high", 20, 200)
    assert value() == 200
    names = [one.name for one in registered_providers() if one.name != "loops"]
    assert names == ["high", "blas", "low", "numpy"]


def test_what_a_provider_has_no_kernel_for_others_compute(provider: Any) -> None:
    provider("high", 20, 200)
    assert value(int32) == 1
    assert value(int32, providers=["high"]) == 1


def test_the_user_chooses(provider: Any) -> None:
    provider("low", 3, 30)
    provider("high", 20, 200)
    assert value(providers=["numpy"]) == 1
    assert value(providers=["low"]) == 30
    assert value(providers=["low", "high"]) == 30
    assert value(providers=["numpy", "high"]) == 1
    assert value(config=SessionConfig(providers=["low"])) == 30
    assert value(config=SessionConfig(providers=["low"]), providers=["high"]) == 200


def test_what_a_provider_does_not_support_the_next_computes(provider: Any) -> None:
    provider("low", 3, 30)
    high = provider("high", 20, 200)
    high.rank = 1
    assert value(shape=[None]) == 200
    assert value(shape=None) == 30
    assert high.shapes == ["[?]", "<unknown>"]


def test_an_eager_call_knows_no_shapes(provider: Any) -> None:
    one = provider("high", 20, 200)
    assert execute(OP.name, {"x": np.zeros(3, np.float32)}, {})[0] == 200
    assert one.shapes == ["<unknown>"]


def test_what_is_registered_later_computes_the_next_step(provider: Any) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        y = graph.create_op(OP.name, [opkernel.constant(np.zeros(2, np.float32))]).outputs[0]
    with opkernel.Session(graph, optimize=False) as session:
        assert session.run(y)[0] == 1
        provider("high", 20, 200)
        assert session.run(y)[0] == 200
        assert execute(OP.name, {"x": np.zeros(3, np.float32)}, {})[0] == 200
    provider("higher", 30, 300)
    assert execute(OP.name, {"x": np.zeros(3, np.float32)}, {})[0] == 300


def test_functions_of_a_session_are_computed_by_its_providers(provider: Any) -> None:
    provider("high", 20, 200)

    @opkernel.function(input_signature=[opkernel.TensorSpec([2], float32)])
    def twice(x: Any) -> Any:
        return opkernel.raw_ops.AddV2(x=execute_in_graph(x), y=x)

    def execute_in_graph(x: Any) -> Any:
        return x.graph.create_op(OP.name, [x]).outputs[0]

    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(float32, [2])
        y = twice(x)
    for optimize in (True, False):
        for names, expected in ((["numpy"], 1), (["high"], 200)):
            with opkernel.Session(graph, providers=names, optimize=optimize) as session:
                assert session.run(y, {x: np.zeros(2, np.float32)})[0] == expected


def test_names_that_nobody_has(provider: Any) -> None:
    provider("high", 20, 200).is_here = False
    with pytest.raises(NotFoundError, match=r"no kernel provider 'hihg'; there are high \(not"):
        opkernel.Session(opkernel.Graph(), providers=["hihg"])
    with pytest.raises(InvalidArgumentError, match="'high' is not available here; there are"):
        opkernel.Session(opkernel.Graph(), providers=["numpy", "high"])
    wrong: Any
    for wrong in ([], "numpy"):
        with pytest.raises(InvalidArgumentError, match="must be a list of names"):
            choose_providers(wrong)
    assert "high" not in [one.name for one in default_providers()]


def test_a_name_is_taken_once(provider: Any) -> None:
    taken = provider("high", 20, 200)
    again = KernelProvider("high")
    assert register_provider(again) is again  # by the module that has registered it before
    again.owner = "elsewhere"
    with pytest.raises(AlreadyExistsError, match="'high'"):
        register_provider(taken)
    again.owner = __name__
    with pytest.raises(NotFoundError):
        unregister_provider("numpy")


def test_a_reference_kernel_with_a_priority_stays(provider: Any) -> None:
    op = register_op(
        "StaysInTests", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    one = provider("high", 20, 200)
    one.supports = lambda node, shapes: True
    register_kernel(op, device="CPU", registry=one.kernels)(lambda x: np.full_like(x, 200))
    for priority, expected in ((0, 200), (1, 1)):
        register_kernel(op, device="CPU", priority=priority)(lambda x: x + np.float32(1))
        assert execute(op.name, {"x": np.zeros(3, np.float32)}, {})[0] == expected
        for registration in global_kernel_registry().registrations_for(op.name):
            global_kernel_registry().unregister(registration)


def test_registered_providers_stand_in_the_order_in_which_they_are_asked(provider: Any) -> None:
    for name, priority in (("b", 5), ("a", 5), ("below", -1)):
        provider(name, priority, 1)
    names = [one.name for one in registered_providers() if one.name not in ("blas", "loops")]
    assert names == ["a", "b", "numpy", "below"]
    asked = [one.name for one in default_providers() if one.name not in ("blas", "loops")]
    assert asked == ["a", "b", "numpy"]
    assert [one.name for one in choose_providers(["below", "b", "numpy", "a"])] == [
        *("below", "b", "numpy"),
    ]
    assert [one.name for one in choose_providers(["b", "b"])] == ["b", "numpy"]


class Prepares(KernelProvider):
    """Prepares inputs as their negatives, and notes what it was asked for."""

    def __init__(self) -> None:
        super().__init__("prepares")
        self.asked: list[Any] = []

    def prepare(self, input: Any, value: Any, version: int) -> Any:
        self.asked.append((input, version))
        return -value


def test_an_input_that_stays_is_prepared_once() -> None:
    one, weights = Prepares(), np.ones(3, np.float32)
    assert one.prepared("w", weights) is None  # nobody says that it stays
    note_lasting(weights)
    first = one.prepared("w", weights)
    assert first.tolist() == [-1, -1, -1]
    assert one.prepared("w", weights) is first
    assert one.prepared("bias", weights) is not first
    assert one.asked == [("w", 0), ("bias", 0)]
    assert Prepares().prepared("w", weights) is not first


def test_a_provider_that_prepares_nothing_says_so() -> None:
    weights = np.ones(3, np.float32)
    note_lasting(weights)
    with pytest.raises(NotImplementedError, match="Provider 'plain' prepares nothing"):
        KernelProvider("plain").prepared("w", weights)


def run(code: str, providers: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path), "OPKERNEL_PROVIDERS": providers},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


EVERYWHERE = """
import numpy as np
import opkernel
from opkernel.kernel import KernelProvider, register_kernel, register_provider
from opkernel.types import float32

provider = register_provider(KernelProvider("wrong", 50))
register_kernel("MatMul", device="CPU", types={"T": [float32]}, registry=provider.kernels, factory=True)(
    lambda: lambda a, b: np.full((1, 1), 7, np.float32)
)
one = np.ones((1, 1), np.float32)
traced = opkernel.function(lambda a: opkernel.raw_ops.MatMul(a=a, b=a))
graph = opkernel.Graph()
with graph.as_default():
    y = opkernel.raw_ops.MatMul(a=opkernel.constant(one), b=opkernel.constant(one))
session = opkernel.Session(graph, optimize=False)
print(opkernel.raw_ops.MatMul(a=one, b=one), traced(one), session.run(y))
"""


def test_the_environment_chooses_everywhere() -> None:
    assert run(EVERYWHERE, "").split() == ["[[7.]]"] * 3
    assert run(EVERYWHERE, "numpy").split() == ["[[1.]]"] * 3
    assert run(EVERYWHERE, "blas,wrong").split() == ["[[1.]]"] * 3
    assert "no kernel provider 'nimpy'; there are" in run(EVERYWHERE, "nimpy")


def test_the_reference_computes_all_that_blas_does() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 20, 20, 64)).astype(np.float32)
    graph = opkernel.Graph()
    with graph.as_default():
        fed = opkernel.placeholder(float32, x.shape)
        filters = opkernel.constant(rng.normal(size=(3, 3, 64, 64)).astype(np.float32))
        attrs = {"strides": [1] * 4, "padding": "SAME"}
        y = graph.create_op("Conv2D", [fed, filters], attrs=attrs).outputs[0]
        bias = opkernel.constant(np.arange(64, dtype=np.float32))
        y = opkernel.raw_ops.Relu(features=opkernel.raw_ops.BiasAdd(value=y, bias=bias))
        y = opkernel.raw_ops.Mean(input=y, axis=[1, 2])
        weights = opkernel.constant(rng.normal(size=(64, 512)).astype(np.float32))
        y = opkernel.raw_ops.MatMul(a=y, b=weights)
        (gradient,) = opkernel.gradients(y, [fed])
    found = []
    for names in (["numpy"], ["blas"]):
        with opkernel.Session(graph, providers=names) as session:
            found.append(session.run([y, gradient], {fed: x}))
    for by_numpy, by_blas in zip(*found, strict=True):
        np.testing.assert_allclose(by_blas, by_numpy, rtol=1e-4, atol=1e-3)


def test_nodes_of_other_namespaces_are_left_to_the_reference(provider: Any) -> None:
    provider("high", 20, 200)
    from opkernel.kernel import create_op_kernel
    from opkernel.proto import NodeDef
    from opkernel.runtime import LocalDevice

    node = NodeDef(name="n", op=OP.name, input=["x"])
    node.attr["T"].type = float32
    assert create_op_kernel(CPU, node).provider == "high"
    assert create_op_kernel(LocalDevice("CPU", ModuleType("namespace")), node).provider == "numpy"


def test_a_failing_kernel_names_its_node(provider: Any) -> None:
    one = KernelProvider("failing", 50)

    def fail(x: Any) -> Any:
        raise InvalidArgumentError("not this one")

    register_kernel(OP, device="CPU", registry=one.kernels)(fail)
    register_provider(one)
    try:
        with pytest.raises(OpError, match=r"ProvidedInTests: not this one \(node "):
            value()
    finally:
        unregister_provider("failing")


def test_no_kernels_are_left() -> None:
    assert value() == 1
    assert len(global_kernel_registry().registrations_for(OP.name)) == 1
