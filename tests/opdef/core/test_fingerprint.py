import pytest

from opkernel.opdef.core.fingerprint import fingerprint64


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 11160318154034397263),
        (b"hello", 13009744463427800296),
        # These stand in summaries of TensorFlow 2.21.
        (",".join(map(str, range(50))).encode(), 1691965636977575387),
        (",".join(map(str, range(110))).encode(), 14506120815048308275),
        (",".join(map(str, range(1, 31))).encode(), 4548725597169123031),
    ],
)
def test_known_fingerprints(data, expected):
    assert fingerprint64(data) == expected


def test_lengths_around_the_borders_of_the_length_classes_differ():
    lengths = [0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 64, 65, 128, 129, 192]
    found = {fingerprint64(b"x" * length) for length in lengths}
    assert len(found) == len(lengths)
    assert all(0 <= value < 2**64 for value in found)
