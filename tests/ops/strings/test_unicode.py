"""UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode, UnicodeScript."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError


def decoded(text: bytes, encoding: str = "UTF-8", **attrs: Any) -> tuple[list[int], list[int]]:
    _, points, starts = raw_ops.UnicodeDecodeWithOffsets(
        input=np.array([text], object), input_encoding=encoding, **attrs
    )
    return points.tolist(), starts.tolist()


OFFSETS = [
    ("UTF-8", b"\xef\xbb\xbfa", [0xFEFF, 97], [0, 3]),
    ("UTF-8", b"\xed\xa0\x80", [0xFFFD] * 3, [0, 1, 2]),
    ("UTF-8", b"\xf0\x9f\x98", [0xFFFD], [0]),
    ("UTF-8", b"\xc3(", [0xFFFD, 40], [0, 1]),
    ("UTF-16-BE", b"\xfe\xff\x00a", [0xFEFF, 97], [0, 2]),
    ("UTF-16-BE", b"\xd8\x00\x00a", [0xFFFD, 97], [0, 2]),
    ("UTF-16", b"\xff\xfea\x00", [97], [0]),
    ("UTF-16", b"\xff\xfe\x00\x00a\x00", [0, 97], [0, 4]),
    ("UTF-16", b"\x00a\x00", [97, 0xFFFD], [0, 2]),
    ("UTF-32-BE", b"\x00\x00\x00a\x00\x11\x00\x00", [97, 0xFFFD], [0, 4]),
    ("latin1", b"\xe9a", [0xE9, 97], [0, 1]),
    ("windows-1252", b"\x80\x81", [0x20AC, 0x81], [0, 1]),
    ("cp850", b"\x1a\x7f", [28, 26], [0, 1]),
    ("gb18030", b"a\xd6\xd0b", [97, 0x4E2D, 98], [0, 1, 3]),
]


@pytest.mark.parametrize(("encoding", "text", "points", "starts"), OFFSETS)
def test_characters_and_their_places(
    encoding: str, text: bytes, points: list[int], starts: list[int]
) -> None:
    assert decoded(text, encoding) == (points, starts)


TEXT = b"a\x01b\xffc"


def test_what_is_no_character() -> None:
    assert decoded(TEXT, replacement_char=63) == ([97, 1, 98, 63, 99], [0, 1, 2, 3, 4])
    assert decoded(TEXT, errors="ignore") == ([97, 1, 98, 99], [0, 1, 2, 4])
    controls = decoded(TEXT, errors="ignore", replace_control_characters=True)
    assert controls == ([97, 98, 99], [0, 2, 4])
    with pytest.raises(InvalidArgumentError, match="formatting"):
        decoded(TEXT, errors="strict")
    strict = decoded(b"a\x01", errors="strict", replace_control_characters=True)
    assert strict[0] == [97, 0xFFFD]
    with pytest.raises(InvalidArgumentError, match="replacement_char"):
        decoded(TEXT, replacement_char=0x110000)


def test_encodings_are_known_by_their_names() -> None:
    assert decoded(b"a", "Utf 8") == ([97], [0])
    with pytest.raises(InvalidArgumentError, match="converter for input encoding: nonsense"):
        decoded(b"a", "nonsense")
    with pytest.raises(UnimplementedError, match="SCSU"):
        decoded(b"a", "SCSU")


def test_rows() -> None:
    splits, points = raw_ops.UnicodeDecode(
        input=np.array([[b"a", b"bc"], [b"", b"d"]], object),
        input_encoding="UTF-8",
        Tsplits="int32",
    )
    assert (splits.tolist(), splits.dtype) == ([0, 1, 3, 3, 4], np.int32)
    assert points.tolist() == [97, 98, 99, 100]


def transcoded(text: bytes, output: Any, **attrs: Any) -> Any:
    (found,) = raw_ops.UnicodeTranscode(
        input=np.array([text], object), input_encoding="UTF-8", output_encoding=output, **attrs
    )
    return found


def test_transcode() -> None:
    text = "é😀".encode()
    assert transcoded(text, "UTF-8") == text
    assert transcoded(text, "UTF-16-BE") == b"\x00\xe9\xd8=\xde\x00"
    assert transcoded(text, "UTF-32-BE") == b"\x00\x00\x00\xe9\x00\x01\xf6\x00"
    assert transcoded(b"a\xff", "UTF-8", replacement_char=0xD800) == b"a\xef\xbf\xbd"
    assert transcoded(b"a\xff", "UTF-16-BE", replacement_char=0xD800) == b"\x00a\xd8\x00"
    with pytest.raises(InvalidArgumentError, match="formatting"):
        transcoded(b"a\tb", "UTF-8", errors="strict", replace_control_characters=True)


@given(st.lists(st.text(max_size=6)), st.sampled_from(["UTF-8", "UTF-16-BE", "UTF-32-BE"]))
def test_encoded_text_decodes_to_itself(texts: list[str], encoding: Any) -> None:
    given = np.array([text.encode() for text in texts], object)
    splits, points = raw_ops.UnicodeDecode(input=given, input_encoding="UTF-8")
    there = raw_ops.UnicodeEncode(
        input_values=points, input_splits=splits, output_encoding=encoding
    )
    back = raw_ops.UnicodeTranscode(input=there, input_encoding=encoding, output_encoding="UTF-8")
    assert [text.decode() for text in back] == texts


def encoded(values: list[int], splits: list[int], **attrs: Any) -> Any:
    return raw_ops.UnicodeEncode(
        input_values=np.array(values, np.int32),
        input_splits=np.array(splits, np.int64),
        output_encoding="UTF-8",
        **attrs,
    ).tolist()


def test_encode() -> None:
    assert encoded([97, 0xD800, 98], [0, 1, 3]) == [b"a", b"\xef\xbf\xbdb"]
    assert encoded([97, -1], [0, 2], errors="ignore") == [b"a"]
    with pytest.raises(InvalidArgumentError):
        encoded([0x110000], [0, 1], errors="strict")
    for splits in ([0, 3, 2], [1, 2], [0, 1], [], [0, -1, 2]):
        with pytest.raises(InvalidArgumentError):
            encoded([97, 98], splits)


def test_scripts() -> None:
    points = [ord("a"), ord("é"), ord("я"), ord("中"), ord(" "), -1, 0x110000, 2**31 - 1]
    assert raw_ops.UnicodeScript(input=np.array(points, np.int32)).tolist() == [
        *(25, 25, 8, 17, 0),
        *(-1, -1, -1),
    ]


@pytest.mark.tensorflow
def test_malformed_text_decodes_as_in_tensorflow(tf: Any) -> None:
    rng = np.random.default_rng(3)
    alphabet = np.frombuffer(
        b"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xd8\xdc\x00\xff\xed\xa0\xf4\x90", "u1"
    )
    texts = [rng.choice(alphabet, rng.integers(0, 9)).tobytes() for _ in range(2000)]
    for encoding in ("UTF-8", "UTF-16-BE", "UTF-16-LE", "UTF-16", "UTF-32-BE", "UTF-32"):
        want = tf.raw_ops.UnicodeDecodeWithOffsets(input=texts, input_encoding=encoding)
        got = raw_ops.UnicodeDecodeWithOffsets(
            input=np.array(texts, object), input_encoding=encoding
        )
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b.numpy(), err_msg=encoding)
