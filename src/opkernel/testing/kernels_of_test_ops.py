"""Kernels of the ops that TensorFlow's own tests in Python use: `tensorflow_test_kernels`.

No import registers them: models have none of these ops. Their OpDefs are always known.

Source: TensorFlow python/framework/test_ops.cc.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.interrupts import contextmanager
from opkernel.kernel import (
    KernelRegistration,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    create_resource,
    global_kernel_registry,
    handle_from_input,
    lookup_resource,
    make_resource_handle,
    register_kernel,
    tensor_of_handle,
)
from opkernel.types import DataType

_NAP_S = 0.02
"""A kernel that sleeps looks so often whether its step has ended."""


class StubResource(ResourceBase):
    """A resource without content."""


def _label(label: str) -> Callable[[], Any]:
    """A kernel that gives its label."""
    return lambda: string_tensor((), [b"My label is: " + label.encode()])


def _required_label(label: str) -> Callable[[Any], Any]:
    """A kernel with an input that gives its label."""
    return lambda _: string_tensor((), [b"My label is: " + label.encode()])


class _GraphDefVersion(OpKernel):
    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._version = construction.graph_def_version

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.array(self._version, np.int32))


class _StubResourceHandle(OpKernel):
    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._container: str = construction.get_attr("container")
        self._name: str = construction.get_attr("shared_name")

    def compute(self, ctx: OpKernelContext) -> None:
        container = self._container or "localhost"
        handle = make_resource_handle(container, self._name, ctx.device, StubResource)
        ctx.set_output(0, tensor_of_handle(handle))


class _ResourceCreate(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        create_resource(ctx, handle_from_input(ctx.input(0)), StubResource())


class _ResourceUsing(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        lookup_resource(ctx, handle_from_input(ctx.input(0)), StubResource).unref()


class _ResourceInitialized(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        try:
            lookup_resource(ctx, handle_from_input(ctx.input(0)), StubResource).unref()
            exists = True
        except (InvalidArgumentError, NotFoundError):
            exists = False
        ctx.set_output(0, np.array(exists))


class _Sleep(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        seconds = ctx.input(0)
        if seconds.ndim:
            raise InvalidArgumentError(
                f"Expected argument 0 to be a scalar. Received {list(seconds.shape)}"
            )
        end = time.monotonic() + int(seconds)
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _NAP_S))
            ctx.step.check()
        for index in range(len(self.output_types)):
            ctx.set_output(index, ctx.input(1))


class _GetDeadline(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        if ctx.deadline is None:
            raise InvalidArgumentError("The deadline has not been set")
        at = time.time() + ctx.deadline - time.monotonic()
        ctx.set_output(0, np.array(int(at * 1e6), np.int64))


class _DevicePlacement(OpKernel):
    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, string_tensor((), [ctx.device.name.encode()]))


class _ConstructionFails(OpKernel):
    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        raise InvalidArgumentError("Failure during construction.")

    def compute(self, ctx: OpKernelContext) -> None:
        """There is no kernel to compute with."""


class _Declared(NamedTuple):
    op: str
    kernel: Any
    label: str = ""
    types: dict[str, Any] | None = None


_KERNELS = (
    _Declared("KernelLabel", _label("default")),
    _Declared("KernelLabel", _label("overload_1"), "overload_1"),
    _Declared("KernelLabel", _label("overload_2"), "overload_2"),
    _Declared("KernelLabelRequired", _required_label("overload_1"), "overload_1"),
    _Declared("KernelLabelRequired", _required_label("overload_2"), "overload_2"),
    _Declared("GraphDefVersion", _GraphDefVersion),
    _Declared("Old", lambda: None),
    _Declared("StubResourceHandleOp", _StubResourceHandle),
    _Declared("ResourceInitializedOp", _ResourceInitialized),
    _Declared("ResourceCreateOp", _ResourceCreate),
    _Declared("ResourceUsingOp", _ResourceUsing),
    _Declared("TestAttr", lambda: np.float32(1), types={"T": DataType.DT_FLOAT}),
    _Declared("SleepOp", _Sleep),
    _Declared("SleepIdentityOp", _Sleep),
    _Declared("GetDeadline", _GetDeadline),
    _Declared("IsTensorFloat32Enabled", lambda: np.bool_(True)),  # as it is if nobody changes it
    _Declared("DevicePlacementOp", _DevicePlacement),
    _Declared("ConstructionFails", _ConstructionFails),
)

_lock = threading.Lock()
_blocks = 0
_registered: list[KernelRegistration] = []


@contextmanager
def tensorflow_test_kernels() -> Iterator[None]:
    """Within the block, the ops of TensorFlow's own tests have kernels.

        with opkernel.testing.tensorflow_test_kernels():
            assert opkernel.raw_ops.KernelLabel() == b"My label is: default"

    The ops are those of TensorFlow's `test_ops` that have kernels: KernelLabel and KernelLabelRequired with their
    labels, GraphDefVersion, Old, StubResourceHandleOp, ResourceCreateOp, ResourceUsingOp, ResourceInitializedOp,
    TestAttr, SleepOp, SleepIdentityOp, GetDeadline, IsTensorFloat32Enabled, DevicePlacementOp and ConstructionFails.
    Blocks may stand in one another.
    """
    global _blocks
    with _lock:
        _blocks += 1
        if _blocks == 1:
            _register()
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            while not _blocks and _registered:
                global_kernel_registry().unregister(_registered.pop())


def _register() -> None:
    registry = global_kernel_registry()
    for op, kernel, label, types in _KERNELS:
        known = {*registry.registrations_for(op)}
        register_kernel(op, device="CPU", label=label, types=types)(kernel)
        _registered.extend(one for one in registry.registrations_for(op) if one not in known)
