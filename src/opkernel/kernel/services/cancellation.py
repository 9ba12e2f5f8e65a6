"""CancellationManager: calls registered callbacks when a result is no longer wanted.

Source: TensorFlow core/framework/cancellation.{h,cc} (tsl/framework).
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Self

from opkernel.errors import CancelledError, DeadlineExceededError, OpError
from opkernel.interrupts import Closing
from opkernel.logs import logger

CancellationToken = int
"""Names a callback to the manager that gave the token."""

INVALID_TOKEN: CancellationToken = -1
"""A token that no manager gives."""


class CancellationManager(Closing):
    """Calls back, once, when the step that it stands for is cancelled; used from any thread.

    Callbacks run on the thread that cancels, in any order, and under no lock. They must not wait
    for a thread that deregisters a callback here.

    A manager with a parent is cancelled with it. The parent does not keep it alive: whoever
    registers callbacks keeps the manager too. As a context manager it closes at the end of the
    block.

    Args:
        parent: The manager whose cancellation cancels this one; it may be cancelled already.
    """

    def __init__(self, parent: CancellationManager | None = None) -> None:
        self._lock = threading.RLock()  # a collection may close a manager
        self._tokens = itertools.count()
        self._callbacks: dict[CancellationToken, Callable[[], object]] = {}
        self._children: weakref.WeakSet[CancellationManager] = weakref.WeakSet()
        self._is_cancelled = False
        self._cancelling_thread: int | None = None
        self._running = threading.Lock()  # held while callbacks run
        self._status: OpError | None = None
        self._parent = parent
        if parent is not None and not parent._register_child(self):
            self._is_cancelled = True
            self._status = parent.status

    @property
    def is_cancelled(self) -> bool:
        """Whether cancellation is over: all callbacks have run."""
        return self._is_cancelled

    @property
    def is_cancelling(self) -> bool:
        """Whether callbacks are running now."""
        return self._cancelling_thread is not None

    @property
    def status(self) -> OpError | None:
        """The reason that was given for the cancellation, if there was one."""
        return self._status

    def get_cancellation_token(self) -> CancellationToken:
        """A token to register one callback with; each token is higher than the earlier ones."""
        return next(self._tokens)

    def register_callback(self, token: CancellationToken, callback: Callable[[], object]) -> bool:
        """Have `callback` called at cancellation.

        Returns:
            False if cancellation has begun: the callback is not registered and will not be called.
        """
        with self._lock:
            if not self._has_begun:
                self._callbacks[token] = callback
            return not self._has_begun

    def register_callback_with_error_logging(
        self, token: CancellationToken, callback: Callable[[], object], callback_name: str
    ) -> bool:
        """Register a callback; an error that is the reason to cancel is logged with its name."""

        def call_back() -> None:
            if self._status is not None:
                logger(__name__).error(
                    'Cancellation callback "%s" is triggered due to a %s error: %s',
                    callback_name,
                    self._status.code.name,
                    self._status.message,
                )
            callback()

        return self.register_callback(token, call_back)

    def deregister_callback(self, token: CancellationToken) -> bool:
        """Forget a callback.

        Returns:
            True if it will not be called. False if it may have been; another thread's cancellation
            is over by then, so that the objects that the callback uses may be dropped. From a callback
            the answer comes at once.
        """
        if self.try_deregister_callback(token):
            return True
        if self._cancelling_thread != threading.get_ident():
            with self._running:  # wait for their end
                pass
        return False

    def try_deregister_callback(self, token: CancellationToken) -> bool:
        """Forget a callback, without waiting.

        Returns:
            True if it will not be called; False if cancellation has begun.
        """
        with self._lock:
            if self._has_begun:
                return False
            self._callbacks.pop(token, None)
            return True

    def start_cancel(self, status: OpError | None = None) -> None:
        """Run all callbacks and cancel the children; only the first call does anything.

        Args:
            status: The reason, which managers below this one are told too.

        Raises:
            Exception: the error of the first callback that raised; all the others have run.
        """
        if self._has_begun:
            return
        with self._running:
            with self._lock:
                if self._is_cancelled:
                    return
                children, this_thread = list(self._children), threading.get_ident()
                callbacks, self._callbacks = self._callbacks, {}
                self._status, self._cancelling_thread = status, this_thread
            try:
                of_children = [partial(child.start_cancel, status) for child in children]
                call_all([*callbacks.values(), *of_children])
            finally:
                self._is_cancelled = True  # first, so that it has begun at any time
                self._cancelling_thread = None
        self._detach()

    def close(self) -> None:
        """Leave the parent, and call the callbacks that are still registered."""
        self._detach()
        if self._callbacks or self._children:
            self.start_cancel()

    @property
    def _has_begun(self) -> bool:
        return self._is_cancelled or self._cancelling_thread is not None

    def _register_child(self, child: CancellationManager) -> bool:
        with self._lock:
            if not self._has_begun:
                self._children.add(child)
            return not self._has_begun

    def _detach(self) -> None:
        if self._parent is not None:
            with self._parent._lock:
                self._parent._children.discard(self)


def register_cancellation_callback(
    manager: CancellationManager | None, callback: Callable[[], object]
) -> Callable[[], None]:
    """Have `callback` called when `manager`, if there is one, is cancelled.

    Returns:
        The function to call when the callback is not needed any more.

    Raises:
        CancelledError: it is cancelled already.
    """
    if manager is None:
        return lambda: None
    token = manager.get_cancellation_token()
    if not manager.register_callback(token, callback):
        raise CancelledError("Operation was cancelled")

    def deregister() -> None:
        manager.deregister_callback(token)

    return deregister


class Deadline:
    """Cancels a manager when time is up, with DEADLINE_EXCEEDED as the reason.

    As a context manager it is void from the end of the block on.

    Args:
        manager: The manager to cancel.
        seconds: The time from now.
    """

    def __init__(self, manager: CancellationManager, seconds: float) -> None:
        self._manager = manager
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Forget the deadline."""
        self._timer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def _expire(self) -> None:
        self._manager.start_cancel(
            DeadlineExceededError(f"Timed out: it took more than {self._seconds} s")
        )


def call_all(functions: Iterable[Callable[[], object]]) -> None:
    """Call all callbacks, even after one has raised; then raise the first error."""
    first: BaseException | None = None
    left = iter(functions)
    is_over = False
    while not is_over:
        try:
            for function in left:
                function()
            is_over = True
        except BaseException as error:  # raised below; an interrupt may come between two functions
            first = first or error
    if first is not None:
        raise first
