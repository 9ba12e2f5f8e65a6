"""Loops for base64: all lengths, in all forms, give what Python's library gives."""

import base64
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import is_installed
from opkernel.providers.loops import loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
RNG = np.random.default_rng(3)
TEXTS = [RNG.bytes(n) for n in [*range(40), 0, 1000, 1001, 1002]]
PADDED = [base64.urlsafe_b64encode(text) for text in TEXTS]
BARE = [text.rstrip(b"=") for text in PADDED]


@pytest.fixture(params=FORMS, autouse=True)
def form(request: pytest.FixtureRequest) -> Any:
    with loops_run(request.param):
        yield


@pytest.mark.parametrize(("pad", "encoded"), [(True, PADDED), (False, BARE)])
def test_all_lengths(pad: bool, encoded: list[bytes]) -> None:
    found = raw_ops.EncodeBase64(input=np.array(TEXTS, object), pad=pad)
    assert found.tolist() == encoded
    assert raw_ops.DecodeBase64(input=found).tolist() == TEXTS


def test_no_strings() -> None:
    none = np.empty((0, 2), object)
    assert raw_ops.EncodeBase64(input=none).shape == (0, 2)
    assert raw_ops.DecodeBase64(input=none).shape == (0, 2)


@pytest.mark.parametrize(
    "text", [b"Y", b"YWI==", b"YQ=", b"====", b"YW=j", b"+/", b"YQ==YQ==", b"\x80Q"]
)
def test_one_fault_among_many(text: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match=r"(?i)base64"):
        raw_ops.DecodeBase64(input=np.array([*BARE, text, *PADDED], object))
