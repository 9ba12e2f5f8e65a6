"""Cluster: a function that an engine compiles, with a program for each signature of its arguments.

State: `_programs` has the programs by signature, `_failed` the errors of signatures that the engine could not compile,
`_timed_out` how often it had no time to compile one.
`_lasting` are the arrays of the last run that nobody writes to, with their keys; the same arrays need no second look.
`_last` is the last signature with its program: steps mostly repeat.

Source: TensorFlow compiler/jit/device_compiler.h, xla_launch_util.h.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any

import numpy as np

from opkernel.errors import DeadlineExceededError, OpError, ResourceExhaustedError, as_op_error
from opkernel.graph import FunctionBody, Tensor
from opkernel.records import dataclass
from opkernel.runtime.engines.batches import BatchSizes, PaddedBatch, PaddedProgram
from opkernel.runtime.engines.engine import ClusterArgument, CompiledCluster
from opkernel.types import DataType, as_dtype

_Shape = tuple[int, ...]
_Key = tuple[Hashable, tuple[_Shape, ...]]
"""The values that are known at compile time, and the shapes of the other arguments."""

_MANY, _LEAST_RUNS = 10, 50
"""A cluster with more programs, and fewer runs for each, is compiled no more (DeviceCompilationProfiler)."""
_MOST_TRIALS = 3
"""What took longer than steps may so often is compiled no more."""
_MAX_KEPT = 64
"""So many programs of a function are kept."""


@dataclass(frozen=True)
class Uninitialized:
    """What stands for the value of a variable that has none."""

    dtype: DataType
    shape: None = None


class EngineCluster:
    """A function that an engine compiles. Safe under threads.

    Args:
        compile: Compiles it for certain arguments.
        inputs: Its arguments: first those that are known at compile time, then other tensors, then resources.
        num_constants: How many arguments are known at compile time.
        num_lasting: How many of these, the first, are arrays that nobody ever writes to.
        body: The function. Where given, one program serves batches of several sizes.
    """

    def __init__(
        self,
        compile: Callable[[Sequence[ClusterArgument]], CompiledCluster],
        inputs: Sequence[Tensor],
        num_constants: int,
        num_lasting: int = 0,
        body: FunctionBody | None = None,
    ) -> None:
        self._compile, self.num_constants = compile, num_constants
        self._num_lasting = num_lasting
        has_resources = any(tensor.dtype == DataType.DT_RESOURCE for tensor in inputs)
        self._batches = None if has_resources or body is None else BatchSizes(body)
        self._inputs = [(tensor.op.name, tensor.dtype) for tensor in inputs]
        self._programs: dict[_Key, CompiledCluster] = {}
        self._failed: dict[_Key, OpError] = {}
        self._timed_out = Counter[_Key]()
        self._lasting: tuple[tuple[Any, ...], tuple[Hashable, ...]] = ((), ())
        self._last: tuple[Any, Any, CompiledCluster | None] = (None, None, None)
        self._lock = threading.Lock()
        self._runs, self._is_megamorphic = 0, False

    def program(self, inputs: Sequence[Any]) -> CompiledCluster:
        """The program for some arguments, compiled if there is none.

        Args:
            inputs: An array for each argument; for a variable its value, `Uninitialized` where it has none.

        Raises:
            OpError: the engine cannot compile it.
        """
        key, program = self._find(inputs)
        if program is None:
            with self._lock:
                program = self._programs.get(key) or self._compiled(key, inputs)
            self._last = (*key, program)
        return program

    @property
    def is_megamorphic(self) -> bool:
        """Whether compiling does not pay: there are many signatures, and few runs of each."""
        count = len(self._programs)
        if not self._is_megamorphic and count > _MANY and self._runs < _LEAST_RUNS * count:
            self._is_megamorphic = True
        return self._is_megamorphic

    def compiled(self, inputs: Sequence[Any]) -> CompiledCluster | None:
        """The program for the arguments of a step, if there is one; the step counts as a run."""
        self._runs += 1
        last = self._last
        if self.num_constants or last[2] is None or last[1] != tuple([x.shape for x in inputs]):
            return self._find(inputs)[1]
        return last[2]  # as `_find` would find, which takes longer

    def _find(self, inputs: Sequence[Any]) -> tuple[_Key, CompiledCluster | None]:
        """The signature of some arguments, and its program if there is one."""
        key = constants, shapes = self._looked_at(inputs)
        last = self._last
        if last[2] is not None and last[1] == shapes and _same(last[0], constants):
            return key, last[2]
        program = self._programs.get(key)
        if program is not None:
            self._last = (*key, program)
        return key, program

    def drop(self, inputs: Sequence[Any], error: OpError) -> None:
        """Forget the program for some arguments, as if the engine could not compile it."""
        key = self._looked_at(inputs)
        # Without the lock, which is held for as long as something is compiled.
        self._failed[key] = error
        self._programs.pop(key, None)
        self._last = (None, None, None)

    def _looked_at(self, inputs: Sequence[Any]) -> _Key:
        """The values of the known arguments, and the shapes of the others."""
        count, lasting = self.num_constants, self._num_lasting
        shapes = tuple([one.shape for one in inputs[count:]])
        if not count:
            return (), shapes
        keys = self._keys_of_lasting(tuple(inputs[:lasting])) if lasting else ()
        if count > lasting:  # these may be written to, and be other values in the same arrays
            return (keys, *map(_key_of, inputs[lasting:count])), shapes
        return keys, shapes

    def _keys_of_lasting(self, given: tuple[Any, ...]) -> tuple[Hashable, ...]:
        arrays, keys = self._lasting
        if len(arrays) != len(given) or not all(map(is_, given, arrays)):
            known = dict(zip(map(id, arrays), keys, strict=True))
            found = tuple([known[id(one)] if id(one) in known else _key_of(one) for one in given])
            keys = keys if found == keys else found
            self._lasting = given, keys
        return keys

    def _compiled(self, key: _Key, inputs: Sequence[Any]) -> CompiledCluster:
        """A program for a signature that has none: for a larger batch where that serves, otherwise its own."""
        if key in self._failed:
            raise self._failed[key]
        batch = self._larger_batch(key, inputs)
        if batch is None:
            return self._new_program(key, inputs)
        more = batch.padded(inputs)
        whole = self._looked_at(more)
        if whole in self._failed:
            raise self._failed[whole]
        program = self._programs.get(whole) or self._new_program(whole, more)
        padded = self._programs[key] = PaddedProgram(program, batch)
        return padded

    def _new_program(self, key: _Key, inputs: Sequence[Any]) -> CompiledCluster:
        try:
            program = self._compile(self._arguments(inputs))
        except Exception as error:
            failure = as_op_error(error)
            self._note(key, failure)
            raise failure from (error.__cause__ if failure is error else error)
        if len(self._programs) >= _MAX_KEPT:
            self._programs.clear()
        self._programs[key] = program
        return program

    def _note(self, key: _Key, failure: OpError) -> None:
        """Try no more to compile what failed, or was out of time for some steps."""
        if isinstance(failure, DeadlineExceededError):
            self._timed_out[key] += 1
            if self._timed_out[key] < _MOST_TRIALS:
                return
            failure = ResourceExhaustedError(f"Compiling takes too long: {failure.message}")
        self._failed[key] = failure

    def _larger_batch(self, key: _Key, inputs: Sequence[Any]) -> PaddedBatch | None:
        """The batch to pad to, where another size has come before and rows do not depend on each other."""
        constants, shapes = key
        known = [others for values, others in self._programs if values == constants]
        if self._batches is None or not known:
            return None
        fixed = tuple([one.shape for one in inputs[: self.num_constants]])
        return self._batches.larger(fixed + shapes, [fixed + others for others in known])

    def _arguments(self, inputs: Sequence[Any]) -> list[ClusterArgument]:
        lasting = self._num_lasting
        given = [
            np.array(one) if lasting <= i < self.num_constants else one  # others may write to it
            for i, one in enumerate(inputs)
        ]
        return [
            _argument(index < self.num_constants, name, dtype, value)
            for index, ((name, dtype), value) in enumerate(zip(self._inputs, given, strict=True))
        ]


def _argument(is_known: bool, name: str, dtype: DataType, value: Any) -> ClusterArgument:
    if dtype == DataType.DT_RESOURCE:
        if isinstance(value, Uninitialized):
            return ClusterArgument.variable(value.dtype, name=name, is_initialized=False)
        return ClusterArgument.variable(as_dtype(value.dtype), value.shape, name)
    if is_known:
        return ClusterArgument.of_constant(value, name)
    return ClusterArgument.parameter(dtype, np.shape(value), name)


def _same(one: Hashable, other: Hashable) -> bool:
    return one is other or one == other


def _key_of(value: Any) -> Hashable:
    return value.shape, value.dtype.str, value.tobytes()
