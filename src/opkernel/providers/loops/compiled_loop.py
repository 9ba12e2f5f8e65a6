"""Functions in plain Python over arrays, which Numba compiles beside the steps.

A `Loop` has three forms, which give the same: the function itself, its compiled form, and a function of NumPy that takes
its place until the compiled form is ready. Compiling begins once the other has taken so long that it pays. It
goes on in a thread, and is kept on disk for the next process (`opkernel.files.cache_folder`).

State: each Loop keeps its compiled forms; `_parts` has functions that loops may call and that Numba was not told of yet,
each with a function of Numba that gives what loops call in its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial, update_wrapper
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from opkernel.files import cache_folder
from opkernel.interrupts import contextmanager
from opkernel.libraries import is_installed, library
from opkernel.logs import logger

if TYPE_CHECKING:
    from concurrent.futures import Future

Form = Literal["compiled", "plain", "numpy"]
"""The compiled form, waited for; the function as it stands; the function of NumPy."""

_Kind = tuple[object, ...]
"""What one compiled form is for: of each argument its type, of arrays their rank and layout too."""
_Function = TypeVar("_Function", bound=Callable[..., Any])

_PAYS_S = 0.05
"""Importing Numba and compiling takes 0.5 to 2 s, of which steps see a part: worth it after so much time without."""

_form: ContextVar[Form | None] = ContextVar("form_of_loops", default=None)
_parts: list[tuple[Callable[..., Any], Callable[[ModuleType], Callable[..., Any]]]] = []
_compiling = threading.RLock()


class Loop:
    """A function in plain Python over arrays, which Numba compiles.

    Its arguments are arrays and scalars, of NumPy or of Python; an array that it fills is one of them. It may use
    what Numba takes in nopython mode, and functions marked with `part_of_loops`. The compiled form runs without the
    interpreter's lock, so that `shard` runs parts side by side.

    Args:
        function: The loop.
        otherwise: A function of the same arguments and results, which runs until the compiled form is ready; `function`
            itself if None.
        source: The file of functions that it calls, if that is another one than its own.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[..., Any],
        otherwise: Callable[..., Any] | None = None,
        source: str | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self._source = source
        self.otherwise = function if otherwise is None else otherwise
        self._compiled: dict[_Kind, Callable[..., Any]] = {}
        self._asked: dict[_Kind, Future[None]] = {}
        self._lock = threading.Lock()
        self._seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        form = _form.get()
        if form is None or form == "compiled":
            kind = tuple([_kind(argument) for argument in arguments])
            compiled = self._compiled.get(kind)
            if compiled is None and form == "compiled":
                compiled = self._made(kind)
            return self._meanwhile(kind, arguments) if compiled is None else compiled(*arguments)
        return (self.function if form == "plain" else self.otherwise)(*arguments)

    def _meanwhile(self, kind: _Kind, arguments: Sequence[Any]) -> Any:
        """The result without the compiled form, which is begun where it will pay."""
        start = time.perf_counter()
        result = self.otherwise(*arguments)
        self._seconds += time.perf_counter() - start
        if self._seconds > _PAYS_S and kind not in self._asked and is_installed("numba"):
            from opkernel.runtime.engines.late_work import in_background  # little work ends here

            with self._lock:
                if kind not in self._asked:
                    self._asked[kind] = in_background(partial(self._try, kind))
        return result

    def _try(self, kind: _Kind) -> None:
        try:
            self._made(kind)
        except Exception as error:  # steps go on as before
            logger("opkernel.loops").warning("%s stays uncompiled: %s", self.__name__, error)

    def _made(self, kind: _Kind) -> Callable[..., Any]:
        """The compiled form for arguments of a kind.

        Raises:
            UnimplementedError: Numba is not installed.
        """
        numba = library("numba", f"Compiling {self.__name__}")
        with _compiling, _filters_kept(numba):
            if kind not in self._compiled:
                dispatcher = _dispatcher(numba, self.function, self._source)
                signature = tuple([_numba_type(numba, one) for one in kind])
                dispatcher.compile(signature)
                self._compiled[kind] = dispatcher.get_overload(signature)
            return self._compiled[kind]


@overload
def loop(function: Callable[..., Any]) -> Loop: ...


@overload
def loop(
    *, otherwise: Callable[..., Any], source: str | None = None
) -> Callable[[Callable[..., Any]], Loop]: ...


def loop(
    function: Callable[..., Any] | None = None,
    *,
    otherwise: Callable[..., Any] | None = None,
    source: str | None = None,
) -> Loop | Callable[[Callable[..., Any]], Loop]:
    """Make a Loop of a function; see `Loop`."""
    if function is None:
        return partial(Loop, otherwise=otherwise, source=source)
    return Loop(function)


def part_of_loops(
    function: _Function, *, in_place_of: Callable[..., Any] | None = None
) -> _Function:
    """Mark a function that loops call, or that they call in the place of another, of NumPy for example."""
    _parts.append((function if in_place_of is None else in_place_of, lambda numba: function))
    return function


def instruction_in_loops(
    make: Callable[[ModuleType], Callable[..., Any]],
) -> Callable[[_Function], _Function]:
    """Mark a function in whose place loops call an instruction that Python has no word for.

    Args:
        make: Given Numba, makes the function that loops call, which calls an intrinsic.
    """

    def marked(function: _Function) -> _Function:
        _parts.append((function, make))
        return function

    return marked


@contextmanager
def loops_run(form: Form) -> Iterator[None]:
    """A scope in which loops run in one of their forms; for tests, which compare them.

    Raises:
        UnimplementedError: a loop is to run compiled, and Numba is not installed.
    """
    token = _form.set(form)
    try:
        yield
    finally:
        _form.reset(token)


def _kind(argument: Any) -> object:
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return argument.dtype.char, argument.ndim, flags.c_contiguous and flags.aligned
    return type(argument)


def _numba_type(numba: ModuleType, kind: Any) -> Any:
    if isinstance(kind, type):
        return numba.typeof(kind(0))
    char, rank, is_plain = kind
    layout = "C" if is_plain else "A"
    return numba.types.Array(numba.from_dtype(np.dtype(char)), rank, layout, aligned=bool(is_plain))


def _dispatcher(numba: ModuleType, function: Callable[..., Any], source: str | None) -> Any:
    """What compiles a function, and what it calls; compiled forms of other processes are found on disk."""
    while _parts:
        function_called, make = _parts.pop()
        _teach(numba, function_called, make(numba))
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    folder = cache_folder("loops")
    if folder is not None:
        if source is not None:
            import hashlib  # most processes compile no loop

            stamp = hashlib.blake2b(Path(source).read_bytes(), digest_size=8)
            folder = str(Path(folder) / stamp.hexdigest())
        own, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            dispatcher.enable_caching()
        except RuntimeError:  # a function without a file, of a notebook for example
            pass
        finally:
            numba.config.CACHE_DIR = own
    return dispatcher


@contextmanager
def _filters_kept(numba: ModuleType) -> Iterator[None]:
    """Have Numba leave `warnings.filters` alone: other threads of the process read and replace them meanwhile."""
    fixer = numba.core.errors.WarningsFixer
    own, fixer.catch_warnings = fixer.catch_warnings, lambda *_, **__: nullcontext()
    try:
        yield
    finally:
        fixer.catch_warnings = own


def _teach(numba: ModuleType, function: Callable[..., Any], in_loops: Callable[..., Any]) -> None:
    """Have Numba compile `in_loops` where a loop calls a function."""
    numba.extending.overload(function, strict=False, jit_options={"forceinline": True})(
        lambda *_, **__: in_loops
    )
