"""Generators as resources: variables of int64 that hold a counter of two numbers and a key.

Source: TensorFlow core/kernels/stateful_random_ops.cc, stateful_random_ops_cpu_gpu.h.
"""

from collections.abc import Iterator
from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.interrupts import contextmanager
from opkernel.kernel import OpKernelContext, handle_from_input, lookup_resource
from opkernel.ops.input_checks import require_vector
from opkernel.ops.philox import Philox
from opkernel.ops.random.filling import BLOCKS_PER_OUTPUT
from opkernel.ops.random.inputs import THREEFRY, check_philox, of_key
from opkernel.ops.variables.var import Var, writing
from opkernel.types import DataType

_STATE_SIZE = 3


def advanced_generator(ctx: OpKernelContext, algorithm: int, count: int) -> Philox:
    """The place of the generator at input 0; afterwards it is behind the blocks of so many numbers.

    Raises:
        NotFoundError: the variable does not exist.
        InvalidArgumentError: it holds no state, or the algorithm is unknown.
        UnimplementedError: the algorithm is ThreeFry.
    """
    with _state(ctx) as state:
        return _advanced(state, algorithm, count)


def tagged_generator(ctx: OpKernelContext, count: int) -> Philox:
    """As `advanced_generator`, where the variable has the algorithm before the state."""
    with _state(ctx) as state:
        if not state.size:
            raise InvalidArgumentError("Size of tensor must be at least 1")
        return _advanced(state[1:], int(state[0]), count)


@contextmanager
def _state(ctx: OpKernelContext) -> Iterator[Any]:
    """The array of the variable, to be written to while its lock is held."""
    with lookup_resource(ctx, handle_from_input(ctx.input(0)), Var) as variable:
        if variable.dtype != DataType.DT_INT64:
            raise InvalidArgumentError(
                f"dtype of RNG state variable must be int64, not {variable.dtype.string}"
            )
        with writing(variable.tensor_ref) as state:
            require_vector(
                state, f"RNG state must have one and only one dimension, not {state.ndim}"
            )
            yield state


def check_generator(algorithm: int, size: int) -> None:
    """Refuse other algorithms than Philox, and states that are too small for it.

    Raises:
        InvalidArgumentError: the algorithm is unknown, or the state is too small.
        UnimplementedError: the algorithm is ThreeFry.
    """
    if algorithm == THREEFRY:
        raise UnimplementedError("Non-XLA devices don't support the ThreeFry algorithm.")
    check_philox(algorithm)
    if size < _STATE_SIZE:
        raise InvalidArgumentError(
            f"For the Philox algorithm, the size of state must be at least {_STATE_SIZE}; "
            f"got {size}"
        )


def _advanced(state: Any, algorithm: int, count: int) -> Philox:
    check_generator(algorithm, state.size)
    low, high, key = (int(number) for number in state[:_STATE_SIZE])
    place = of_key([low, high], key)
    after = place.skip(count * BLOCKS_PER_OUTPUT % (1 << 64)).counter
    state[:2] = [_signed(after), _signed(after >> 64)]
    return place


def _signed(word: int) -> int:
    """The lower 64 bits as an int64."""
    word %= 1 << 64
    return word - (word >> 63 << 64)
