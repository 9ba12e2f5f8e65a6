"""StringFormat; expected texts are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


def formatted(*inputs: Any, template: str = "{}", summarize: int = 3) -> Any:
    text = raw_ops.StringFormat(
        inputs=list(inputs), template=template, placeholder="{}", summarize=summarize
    )
    return text.decode()


def ints(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


TEXTS = [
    (ints(10), 3, "[0 1 2 ... 7 8 9]"),
    (ints(6), 3, "[0 1 2 3 4 5]"),
    (ints(3, 3), 1, "[[0 ... 2]\n ...\n [6 ... 8]]"),
    (ints(2, 1, 2), -1, "[[[0 1]]\n\n [[2 3]]]"),
    (ints(3), 0, "[ ...]"),
    (ints(2, 0), 3, "[\n ...]"),
    (np.float32(0.1), 3, "0.1"),
    (np.float64(1e30), 0, "..."),
    (np.array([True, False]), 3, "[1 0]"),
    (np.array([True, False]), 0, ""),
    (np.array([1j] * 4), 3, "[? ? ?...]"),
    (np.array([b'a"\n', "ü".encode()], object), 3, '["a\\"\\n" "ü"]'),
    (np.array(b"x", object), 3, '"x"'),
]


@pytest.mark.parametrize(("value", "summarize", "text"), TEXTS)
def test_text_of_a_tensor(value: Any, summarize: int, text: str) -> None:
    assert formatted(value, summarize=summarize) == text


def test_template() -> None:
    assert formatted(np.int32(1), np.int32(2), template="a {} ü {}!") == "a 1 ü 2!"
    assert formatted(template="nothing") == "nothing"
    # What is filled in is not searched for placeholders.
    assert formatted(np.array(b"{}", object)) == '"{}"'


def test_places_and_inputs_must_match() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must match: 2 vs. 1"):
        formatted(np.int32(1), template="{}{}")
