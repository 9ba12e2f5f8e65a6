"""Stand-ins take the place of kernels that their device computes; all else is the kernel's own."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.device.local_device import LocalDevice
from opkernel.kernel import AsyncOpKernel, KernelContract, OpKernel, OpKernelContext, Step
from opkernel.kernel.stand_in import StandIn, stand_in_for

ONE: dict[str, Any] = {"inputs": ["x: float"], "outputs": ["y: float"]}
X = np.array([1, 2], np.float32)


class Doubling(LocalDevice):
    """Computes all kernels on twice the inputs, and notes which."""

    def __init__(self) -> None:
        super().__init__("CPU", np)
        self.computed: list[Any] = []

    def compute(self, op_kernel: Any, ctx: Any) -> None:
        self.computed.append((op_kernel, ctx.op_kernel))
        ctx.inputs = [2 * value for value in ctx.inputs]
        super().compute(op_kernel, ctx)

    def compute_async(self, op_kernel: Any, ctx: Any, done: Callable[[], None]) -> None:
        self.computed.append((op_kernel, ctx.op_kernel))
        ctx.inputs = [2 * value for value in ctx.inputs]
        super().compute_async(op_kernel, ctx, done)


class Adds(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, ctx.input(0) + 1)


class AddsLater(AsyncOpKernel):
    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def work() -> None:
            Adds.compute(self, ctx)  # type: ignore[arg-type]  # which needs nothing of itself
            done()

        threading.Thread(target=work).start()


@pytest.mark.parametrize("kernel", [Adds, AddsLater, lambda x: x + 1])
def test_the_device_computes_the_kernel(kernel: Any) -> None:
    device = Doubling()
    made = make_kernel(kernel, device=device, **ONE)
    assert isinstance(made, StandIn)
    ctx = OpKernelContext(made, [X], Step())
    assert ctx.run()[0].tolist() == [3, 5]
    assert device.computed == [(made.kernel, made.kernel)]
    assert (made.as_async() is None) is (kernel is not AddsLater)
    own: Any = made.as_async()
    assert own in (None, made)


def test_other_devices_have_their_kernels_called_directly() -> None:
    assert not isinstance(make_kernel(Adds, **ONE), StandIn)


@pytest.mark.parametrize("kernel", [Adds, AddsLater])
def test_the_facts_are_the_kernels_own(kernel: Any) -> None:
    made = make_kernel(kernel, **ONE)
    made.provider = "mine"
    stand_in = stand_in_for(made)
    ctx = OpKernelContext(made, [X], Step())
    for fact in ("name", "type_string", "provider", "device", "input_types", "is_expensive"):
        assert getattr(stand_in, fact) == getattr(made, fact)
    assert stand_in.trace_string(ctx, verbose=True) == "n:Test#shape=(float[2])#"
    assert stand_in.trace_string(ctx) == "n:Test"
    assert stand_in.node_traceback is None
    stand_in.node_traceback = find = lambda: ["model.py:3"]
    assert made.node_traceback is stand_in.node_traceback is find


def test_a_stand_in_claims_nothing_of_functions() -> None:
    claims = KernelContract(
        outputs_as_declared=True,
        elementwise=True,
        same_shapes=True,
        takes_out=True,
        expensive=False,
    )
    made = make_kernel(lambda x, *, out=None: x + 1, contract=claims, **ONE)
    stand_in = stand_in_for(made)
    assert stand_in.contract == KernelContract(outputs_as_declared=True, expensive=False)
    assert made.contract == claims
    assert not stand_in.is_expensive


def test_a_stand_in_is_its_own() -> None:
    stand_in = stand_in_for(make_kernel(Adds, **ONE))
    assert stand_in_for(stand_in) is stand_in


def test_the_tensor_of_a_constant_is_passed_on_unless_it_is_to_be_computed() -> None:
    class Constant(Adds):
        @property
        def const_tensor(self) -> Any:
            return X

    stand_in = stand_in_for(make_kernel(Constant, **ONE))
    assert stand_in.const_tensor is X
    stand_in.passes_constant_on = False
    assert stand_in.const_tensor is None
