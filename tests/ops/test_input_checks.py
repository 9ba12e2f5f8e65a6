"""Checks of inputs: where each refuses, and what its message tells."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.ops.input_checks import (
    broadcast_shape,
    int32_attr,
    require_equal,
    require_rank,
    require_rank_at_least,
    require_rank_at_most,
    require_scalar,
    require_vector,
)

CHECKS: list[tuple[Callable[..., None], tuple[int, ...], set[int]]] = [
    (require_scalar, (), {0}),
    (require_vector, (), {1}),
    (require_rank, (2,), {2}),
    (require_rank_at_least, (2,), {2, 3}),
    (require_rank_at_most, (2,), {0, 1, 2}),
]


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("number", range(len(CHECKS)))
def test_ranks(number: int, rank: int) -> None:
    check, arguments, allowed = CHECKS[number]
    tensor: Any = np.zeros((5,) * rank)
    if rank in allowed:
        check(tensor, *arguments, "x has shape {}")
        return
    with pytest.raises(InvalidArgumentError) as refusal:
        check(tensor, *arguments, "x has shape {}")
    assert refusal.value.message == f"x has shape [{','.join('5' * rank)}]"


def test_two_facts() -> None:
    require_equal((2, 3), (2, 3), "{} {}")
    with pytest.raises(InvalidArgumentError, match=r"\[2,3\] is not 4"):
        require_equal((2, 3), 4, "{} is not {}")
    assert broadcast_shape((2, 1), [3], "{} {}") == (2, 3)
    with pytest.raises(InvalidArgumentError, match=r"\[2\] and \[3\]"):
        broadcast_shape((2,), (3,), "{} and {}")


@pytest.mark.parametrize("value", [0, -1, 2**31 - 1, -(2**31)])
def test_attrs_of_int32(value: int) -> None:
    assert int32_attr("k", value) == value


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63 - 1])
def test_attrs_beyond_int32(value: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Attr k has value {value} out of range"):
        int32_attr("k", value)
