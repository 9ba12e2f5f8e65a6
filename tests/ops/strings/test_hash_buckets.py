"""StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong; EncodeBase64, DecodeBase64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.device import string_buffer
from opkernel.errors import InvalidArgumentError
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.ops.lookup.hash_map_order import hash_of_key
from opkernel.ops.strings import hash_columns, hashes
from opkernel.ops.strings.hashes import BY_COLUMNS

SIP_KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
SIP_VECTORS = {
    0: 0x726FDB47DD0E0E31,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
}
"""Of the paper of SipHash: of the bytes 0, 1, 2 ... by their number."""


def test_sip_hash_of_the_paper() -> None:
    texts = np.array([bytes(range(n)) for n in SIP_VECTORS], object)
    assert BY_COLUMNS.sip_hashes(texts, SIP_KEY).tolist() == list(SIP_VECTORS.values())


def test_many_strings_hash_as_one_does() -> None:
    rng = np.random.default_rng(1)
    texts = np.array([rng.bytes(n) for n in [*range(200), 1100, 33, 33, 0]], object)
    assert BY_COLUMNS.fingerprints(texts).tolist() == [fingerprint64(text) for text in texts]
    assert BY_COLUMNS.murmur_hashes(texts).tolist() == [hash_of_key(text) for text in texts]


def test_strings_beyond_one_batch_hash_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "_BATCH", 70)
    monkeypatch.setattr(hashes, "_PART", 100)
    monkeypatch.setattr(string_buffer, "_PIECE", 16)
    monkeypatch.setattr(hash_columns, "_TILE", 3)
    rng = np.random.default_rng(2)
    texts = np.array([rng.bytes(n % 11) for n in range(300)], object).reshape(3, 100)
    assert BY_COLUMNS.fingerprints(texts).tolist() == [
        [fingerprint64(text) for text in row] for row in texts
    ]


def test_buckets_of_tensorflow() -> None:
    texts = np.array([b"a", b"b", b"c", b"d"], object)
    assert raw_ops.StringToHashBucketFast(input=texts, num_buckets=10).tolist() == [9, 2, 2, 5]
    assert raw_ops.StringToHashBucket(string_tensor=texts, num_buckets=10).tolist() == [8, 0, 7, 9]
    strong = raw_ops.StringToHashBucketStrong(input=texts, num_buckets=10, key=[-1, 2])
    assert strong.tolist() == [0, 7, 1, 7]
    with pytest.raises(InvalidArgumentError, match="2 elements"):
        raw_ops.StringToHashBucketStrong(input=texts, num_buckets=10, key=[1])


@given(st.lists(st.binary(max_size=9)), st.booleans())
def test_base64_comes_back(texts: list[bytes], pad: bool) -> None:
    given = np.array(texts, object)
    encoded = raw_ops.EncodeBase64(input=given, pad=pad)
    assert raw_ops.DecodeBase64(input=encoded).tolist() == texts
    assert all(not pad or len(text) % 4 == 0 for text in encoded)


@pytest.mark.parametrize(("text", "want"), [("YQ", b"a"), ("YR", b"a"), ("-_-_", b"\xfb\xff\xbf")])
def test_base64_is_that_of_the_web(text: str, want: bytes) -> None:
    assert raw_ops.DecodeBase64(input=text) == want


@pytest.mark.parametrize("text", ["Y", "YWI==", "YQ=", "====", "=", "YW=j", "+/", "YQ==YQ=="])
def test_wrong_base64_is_refused(text: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"(?i)base64"):
        raw_ops.DecodeBase64(input=text)
