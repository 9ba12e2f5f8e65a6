"""Locks: a MutexLock holds the mutex for as long as somebody has the tensor that it gives.

Source: TensorFlow core/ops/resource_variable_ops.cc, core/kernels/mutex_ops.cc.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any

from opkernel.device.ownership import counts_mean_ownership, others
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    handle_from_input,
    lookup_or_create_resource,
    make_resource_handle,
    register_cancellation_callback,
    tensor_of_handle,
)
from opkernel.opdef import full_type, no_outputs, register_op, scalar_shape
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.data_flow.waiting import (
    Done,
    Line,
    Steps,
    WaitingKernel,
    WaitingResource,
    finish_all,
)
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import InexpensiveKernel, container_of
from opkernel.proto import VariantTensorDataProto
from opkernel.types import Variant, object_scalar

register_op(
    "MutexV2() -> resource: resource",
    attrs=["container: string = ''", "shared_name: string = ''"],
    shape_fn=scalar_shape,
    is_stateful=True,
    doc="A handle to the mutex of that name and container.",
)
register_op(
    "MutexLock(mutex: resource) -> mutex_lock: variant",
    shape_fn=scalar_shape,
    is_stateful=True,
    type_constructor=full_type.nullary(FullTypeId.TFT_MUTEX_LOCK),
    doc="Locks the mutex until nobody has the output any more; waits while it is locked.",
)
register_op(
    "ConsumeMutexLock(mutex_lock: variant)",
    shape_fn=no_outputs,
    is_stateful=True,
    doc="Keeps a lock until the nodes before it are done.",
)


class Mutex(WaitingResource):
    """A lock that kernels wait for, in order."""

    def __init__(self, name: str) -> None:
        self._waiting = Line()
        super().__init__(self._waiting)
        self._name = name
        self._is_locked = False

    def debug_string(self) -> str:
        """The name."""
        return f"Mutex {self._name}"

    def acquire(self, ctx: OpKernelContext, done: Done) -> None:
        """Lock it, and set output 0 to what unlocks it at its end."""

        def deliver(_: None) -> None:
            lock = LockReleaser(self)
            if ctx.session_handle:
                # Frames of an error would keep the lock until they are collected.
                register_cancellation_callback(ctx.cancellation_manager, lock.releasing())
            ctx.set_output(0, object_scalar(lock))

        self.start(self._waiting, ctx, done, self._lock_steps(), deliver, name="Lock acquisition")

    def release(self, *, blocking: bool = True) -> bool:
        """Unlock it; False if that would have to wait, and is not to."""
        if not self._lock.acquire(blocking=blocking):
            return False
        try:
            self._is_locked = False
            self._changed()
            over = self._resume_all()
        finally:
            self._lock.release()
        finish_all(over)
        return True

    def _lock_steps(self) -> Steps:
        while self._is_locked:
            yield
        self._is_locked = True


class LockReleaser(Variant):
    """The result of a MutexLock: unlocks the mutex when it is collected, or its step has failed."""

    __slots__ = ("__weakref__", "_mutex")

    def __init__(self, mutex: Mutex) -> None:
        self._mutex: Mutex | None = mutex

    def to_proto(self) -> VariantTensorDataProto:
        """A lock cannot leave the process.

        Raises:
            UnimplementedError: always.
        """
        raise UnimplementedError("A lock of a mutex cannot be stored")

    def release(self) -> None:
        """Unlock the mutex; the first call does."""
        mutex, self._mutex = self._mutex, None
        # A collection may call this on a thread that is at work on the mutex.
        if mutex is not None and not mutex.release(blocking=False):
            threading.Thread(target=mutex.release).start()

    def releasing(self) -> Callable[[], None]:
        """A function that releases the lock if it is still there, and that does not keep it."""
        reference = weakref.ref(self)

        def release() -> None:
            lock = reference()
            if lock is not None:
                lock.release()

        return release

    def __del__(self) -> None:
        self.release()


@register_kernel("MutexV2", host_memory=["resource"])
class MutexOp(OpKernel):
    """Gives the handle; the mutex is made when it is first locked."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._handle: Any = None

    def compute(self, ctx: OpKernelContext) -> None:
        if self._handle is None:
            info = container_of(self, ctx)
            self._handle = tensor_of_handle(
                make_resource_handle(info.container, info.name, ctx.device, Mutex)
            )
        ctx.set_output(0, self._handle)


@register_kernel("MutexLock")
class MutexLock(WaitingKernel[Mutex]):
    """Locks the mutex."""

    def find(self, ctx: OpKernelContext) -> Mutex:
        handle = handle_from_input(ctx.input(0))
        return lookup_or_create_resource(ctx, handle, Mutex, lambda: Mutex(handle.name))

    def access(self, mutex: Mutex, ctx: OpKernelContext, done: Done) -> None:
        mutex.acquire(ctx, done)


@register_kernel("ConsumeMutexLock")
class ConsumeMutexLock(InexpensiveKernel):
    """Checks that the lock is free otherwise."""

    def compute(self, ctx: OpKernelContext) -> None:
        lock = ctx.input(0)
        require_scalar(lock, "Expected input to be a scalar, saw shape: {}")
        if not isinstance(lock[()], LockReleaser):
            raise InvalidArgumentError(
                "Expected input to contain a SharedLockReleaser object, but saw variant: "
                f"'{lock[()]!r}'"
            )
        holders = others((lock[()],), 0)
        in_session = ctx.session_handle  # eager callers have it by other names, too
        if in_session and holders != 1 and counts_mean_ownership():
            raise InvalidArgumentError(f"Expected use count of lock to be 1, but saw: {holders}")
