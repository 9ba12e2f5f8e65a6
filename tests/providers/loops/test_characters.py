"""Loops that cut strings: Substr, and strings out of a buffer."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.device.string_buffer import joined_strings
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import is_installed
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.made_strings import strings_between

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
TEXTS = np.array(["", "aé漢𝈩\0z", "é", "x" * 300, "漢" * 90], object)
ENCODED = np.array([text.encode() for text in TEXTS], object)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("unit", ["BYTE", "UTF8_CHAR"])
def test_parts_are_those_of_python(form: Any, unit: Any) -> None:
    whole = TEXTS if unit == "UTF8_CHAR" else ENCODED
    for start in range(-1, 2):
        for length in (0, 1, 3, 400):
            begins = [0 if not text else start for text in whole]
            ends = [
                (at % len(text) if text else 0) + length
                for at, text in zip(begins, whole, strict=True)
            ]
            expected = [
                text[at % len(text) if at < 0 else at : end]
                for text, at, end in zip(whole, begins, ends, strict=True)
            ]
            with loops_run(form):
                found = raw_ops.Substr(
                    input=ENCODED, pos=np.array(begins), len=np.full(5, length), unit=unit
                )
            assert found.tolist() == [
                part if isinstance(part, bytes) else part.encode() for part in expected
            ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("pos", "len"), [(3, 1), (-3, 1), (-1, -1), (-(2**63), 1)])
def test_characters_that_are_not_there(form: Any, pos: int, len: int) -> None:
    text = np.array(["é漢".encode()], object)
    with loops_run(form), pytest.raises(InvalidArgumentError, match="pos out of range"):
        raw_ops.Substr(input=text, pos=np.array([pos]), len=np.array([len]), unit="UTF8_CHAR")


@pytest.mark.parametrize("form", FORMS)
def test_strings_of_all_lengths(form: Any) -> None:
    texts = np.array([bytes([n % 256]) * n for n in (0, 1, 255, 256, 257, 70000)], object)
    data, splits = joined_strings(texts)
    with loops_run(form):
        assert list(strings_between(data, splits[:-1], splits[1:])) == texts.tolist()
        assert list(strings_between(data, splits[:0], splits[:0])) == []
