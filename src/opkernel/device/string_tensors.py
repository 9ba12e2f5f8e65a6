"""The one place where kernels make tensors of strings: their bytes are charged to the budget as they are made.

The size of a tensor of strings does not follow from its shape. So the strings of a tensor are taken one by one, and
the budget is asked each time that so many bytes more were made. What is being made counts as memory in use, also for
other tensors of the same kernel. A string that is put together from parts is charged before it is.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.made_bytes import ASK_AFTER, MadeBytes, making_bytes
from opkernel.device.work_clock import in_time, string_work

_OF_STRING = 41
"""The bytes of a string beside its content: its object, and its place in the tensor."""


def string_tensor(shape: tuple[int, ...], strings: Iterable[bytes]) -> Any:
    """The tensor of the strings, in order; they count as memory of the step from here on.

    Args:
        shape: Its shape, rank 0 included.
        strings: As many as it has elements. An iterator is charged while it makes them.

    Raises:
        ResourceExhaustedError: they are more than the budget has left.
    """
    budget = current_budget()
    if budget is None or budget.memory_limit_bytes is None:
        return _of_list(shape, strings if isinstance(strings, list) else [*strings])
    with making_bytes("tensor of strings") as made:
        output = _of_list(shape, [*_charged(strings, made)])
        content = made.total - 8 * output.size
    budget.hold(output, content)
    return output


def _of_list(shape: tuple[int, ...], strings: list[bytes]) -> Any:
    output = np.empty(len(strings), object)
    output[:] = strings
    return output if output.shape == shape else output.reshape(shape)


def _charged(strings: Iterable[bytes], made: MadeBytes) -> Iterator[bytes]:
    add = made.add
    for text in strings:
        size = len(text)
        add(size + _OF_STRING if size > 1 else 8)  # shorter ones exist once
        yield text


def map_strings(
    function: Callable[[Any], bytes], tensor: Any, work: int | Callable[[Any], int] = string_work
) -> Any:
    """The tensor of the strings that `function` makes of the elements.

    Args:
        function: Makes a string of an element.
        tensor: The elements.
        work: What `function` does, as `in_time` takes it.
    """
    return string_tensor(tensor.shape, map(function, in_time(tensor.flat, work)))


def joining(separator: bytes) -> Callable[[Sequence[bytes | memoryview]], bytes]:
    """The function that joins parts with a separator between them, if there is memory for the string.

    It raises ResourceExhaustedError where the string is more than the budget has left.
    """
    budget = current_budget()
    if budget is None or budget.memory_limit_bytes is None:
        return separator.join

    def join(parts: Sequence[bytes | memoryview]) -> bytes:
        size = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)
        if size > ASK_AFTER:
            budget.check_memory(size, "a string")
        return separator.join(parts)

    return join


def gather_bytes(pieces: Iterable[bytes], what: str) -> bytes:
    """The string of the pieces one after the other; they are charged as an iterator makes them.

    Args:
        pieces: The pieces.
        what: The string, for the error: "a decompressed string".

    Raises:
        ResourceExhaustedError: it is more than the budget has left.
    """
    buffer = io.BytesIO()
    with making_bytes(what) as made:
        for piece in pieces:
            made.add(len(piece))
            buffer.write(piece)
        return buffer.getvalue()
