"""The loop of Substr: characters are counted from the nearer end that is asked for, as far as they are needed."""

import numpy as np

from opkernel.ops.strings import substr_and_case
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.providers.loops.made_strings import strings_between
from opkernel.types import Array


@part_of_loops
def _after(data: Array, at: int, end: int, count: int) -> int:
    """The place after so many characters, at most the end."""
    while count > 0 and at < end:
        at += 1
        while at < end and data[at] & 0xC0 == 0x80:
            at += 1
        count -= 1
    return at if count <= 0 else end + 1


@part_of_loops
def _before(data: Array, begin: int, at: int, start: int) -> int:
    """The place of a character that counts from the end, below 0; one before the begin if there are fewer."""
    while start < 0 and at > begin:
        at -= 1
        while at > begin and data[at] & 0xC0 == 0x80:
            at -= 1
        start += 1
    return at if start == 0 else begin - 1


def _places_by_numpy(
    data: Array, splits: Array, starts: Array, lengths: Array, places: Array
) -> bool:
    found = substr_and_case.characters_in_strings(data, splits, starts, lengths)
    if found is None:
        return False
    places[0], places[1] = found
    return True


@loop(otherwise=_places_by_numpy)
def find_places(data: Array, splits: Array, starts: Array, lengths: Array, places: Array) -> bool:
    """Find where the asked characters begin and end; whether all strings have such."""
    for i in range(starts.size):
        begin, end = splits[i], splits[i + 1]
        if starts[i] >= 0:
            at = _after(data, begin, end, starts[i])
        else:
            at = _before(data, begin, end, starts[i])
        if at < begin or at > end or (starts[i] < 0 and lengths[i] < 0):
            return False
        places[0, i], places[1, i] = at, min(_after(data, at, end, lengths[i]), end)
    return True


def characters_in_strings(
    data: Array, splits: Array, starts: Array, lengths: Array
) -> tuple[Array, Array] | None:
    """As `substr_and_case.characters_in_strings`."""
    places = np.empty((2, starts.size), np.int64)
    is_found = find_places(data, splits, starts, lengths, places)
    return (places[0], places[1]) if is_found else None


substr_and_case.register_substr(characters_in_strings, strings_between, LOOPS.kernels)
