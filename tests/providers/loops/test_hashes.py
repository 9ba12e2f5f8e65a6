"""Loops that hash strings: all lengths, in all forms, and the hashes of TensorFlow."""

from typing import Any

import numpy as np
import pytest

from opkernel.device.string_buffer import joined_strings
from opkernel.libraries import is_installed
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.ops.lookup.hash_map_order import hash_of_key
from opkernel.ops.strings import hash_columns
from opkernel.providers.loops import hashes, loops_run

FORMS = ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
KEY = np.uint64(0x0706050403020100), np.uint64(0x0F0E0D0C0B0A0908)


def texts() -> Any:
    rng = np.random.default_rng(7)
    given = [rng.bytes(n) for n in [*range(260), 4096, 5001, 0]]
    found = np.empty(len(given), object)
    found[:] = given
    return found


@pytest.mark.parametrize("form", FORMS)
def test_all_lengths_hash_as_one_string_does(form: Any) -> None:
    given = texts()
    data, splits = joined_strings(given)
    with loops_run(form), np.errstate(over="ignore"):
        fingerprints = hashes.fingerprints(data, splits).tolist()
        murmurs = hashes.murmur_hashes(data, splits).tolist()
        sips = hashes.sip_hashes(data, splits, *KEY).tolist()
    assert fingerprints == [fingerprint64(text) for text in given]
    assert murmurs == [hash_of_key(text) for text in given]
    assert sips == hash_columns.sip_hashes(data, splits, *KEY).tolist()


@pytest.mark.parametrize("form", FORMS)
def test_sip_hash_of_the_paper(form: Any) -> None:
    data, splits = joined_strings(np.array([bytes(range(15))], object))
    with loops_run(form), np.errstate(over="ignore"):
        assert hashes.sip_hashes(data, splits, *KEY).tolist() == [0xA129CA6149BE45E5]


@pytest.mark.parametrize("form", FORMS)
def test_no_strings_have_no_hashes(form: Any) -> None:
    data, splits = joined_strings(np.empty((0, 3), object))
    with loops_run(form):
        assert hashes.fingerprints(data, splits).size == 0
        assert hashes.murmur_hashes(data, splits).size == 0
        assert hashes.sip_hashes(data, splits, *KEY).size == 0
