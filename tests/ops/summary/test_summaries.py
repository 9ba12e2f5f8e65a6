"""Summary ops: what their summaries hold is what TensorFlow's hold."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.proto import Summary
from opkernel.types import object_scalar

MOST = 1.7976931348623157e308
S = object_scalar


def values_of(summary: Any) -> Any:
    return Summary.FromString(summary).value


def test_scalars_and_tensors_are_as_tensorflow_writes_them() -> None:
    tags = np.array([b"a", b"b"], object)
    numbers = np.array([1.5, -2], ml_dtypes.bfloat16)
    two = b"\n\x08\n\x01a\x15\x00\x00\xc0?\n\x08\n\x01b\x15\x00\x00\x00\xc0"
    assert raw_ops.ScalarSummary(tags=tags, values=numbers) == two
    one = raw_ops.ScalarSummary(tags=S(b""), values=np.int64(2**40 + 1))
    assert one == b"\n\x05\x15\x00\x00\x80S"
    with_metadata = raw_ops.TensorSummaryV2(
        tag=S(b"t"), tensor=np.array([1, 2]), serialized_summary_metadata=S(b"\n\x04\n\x02ab")
    )
    assert with_metadata == (
        b"\n'\n\x01tB\x1a\x08\t\x12\x04\x12\x02\x08\x02\"\x10\x01\x00\x00\x00\x00\x00\x00\x00"
        b"\x02\x00\x00\x00\x00\x00\x00\x00J\x06\n\x04\n\x02ab"
    )


def test_a_tensor_summary_has_the_name_of_its_node() -> None:
    with Graph().as_default() as graph:
        numbers = raw_ops.TensorSummary(tensor=np.float32([1, 2]), name="scope/node")
        strings = raw_ops.TensorSummary(tensor=np.array([b"a", b"bc"], object), name="n")
    assert Session(graph).run([numbers, strings]) == [
        b'\n :\nscope/nodeB\x12\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@',
        b"\n\x14:\x01nB\x0f\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc",
    ]


HISTOGRAMS = [
    (
        np.array([-1.5, 0, 0, 2.25, 1e-13, 1e300]),
        (-1.5, 1e300, 6, 1e300, np.inf),
        [-1.624957930213695, -1.47723448201245, 0, 1e-12, 2.1628190051144287, 2.379100905625872,
         9.920775621859783e19, MOST],
        [0, 1, 0, 3, 0, 1, 0, 1],
    ),
    (np.zeros((0, 3), np.float32), (MOST, -MOST, 0, 0, 0), [MOST], [0]),
    (
        np.array([0.1] * 10, np.float32),
        (0.10000000149011612, 0.10000000149011612, 10, 1.0000000149011612, 0.10000000298023226),
        [0.09312398815580714, 0.10243638697138786, MOST],
        [0, 10, 0],
    ),
    (
        np.arange(-1, 2, dtype=np.int8),
        (-1, 1, 3, 0, 2),
        [-1.0089710279437536, -0.917246389039776, 0, 1e-12, 0.917246389039776, 1.0089710279437536, MOST],
        [0, 1, 0, 1, 0, 1, 0],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("numbers", "facts", "limits", "counts"), HISTOGRAMS)
def test_histograms(numbers: Any, facts: Any, limits: Any, counts: Any) -> None:
    (value,) = values_of(raw_ops.HistogramSummary(tag=S(b"h"), values=numbers))
    found = value.histo
    assert (found.min, found.max, found.num, found.sum, found.sum_squares) == facts
    assert (value.tag, [*found.bucket_limit], [*found.bucket]) == ("h", limits, counts)


def test_the_sums_of_a_histogram_are_those_of_one_addition_after_the_other() -> None:
    numbers = np.random.default_rng(1).normal(size=200_000)
    (value,) = values_of(raw_ops.HistogramSummary(tag=S(b"h"), values=numbers))
    total = squares = 0.0
    for number in numbers.tolist():
        total += number
        squares += number * number
    assert (value.histo.sum, value.histo.sum_squares) == (total, squares)
    assert sum(value.histo.bucket) == 200_000


IMAGE = np.array([[[0.0], [2]], [[0.5], [1]]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("image", "pixels"),
    [
        (IMAGE, [0, 255, 63, 127]),
        (IMAGE - 1, [1, 255, 64, 128]),
        (IMAGE * 0, [0, 0, 0, 0]),
        (IMAGE * 1e-7, [0, 0, 0, 0]),
        (np.where(IMAGE == 2, np.nan, IMAGE), [0, 255, 127, 255]),
        (np.full_like(IMAGE, -np.inf), [255, 255, 255, 255]),
    ],
)
def test_images_are_scaled(dtype: Any, image: Any, pixels: Any) -> None:
    with np.errstate(invalid="ignore"):
        images = image[np.newaxis].astype(dtype)
    (value,) = values_of(raw_ops.ImageSummary(tag=S(b"i"), tensor=images, max_images=1))
    assert (value.tag, value.image.height, value.image.width) == ("i/image", 2, 2)
    decoded = raw_ops.DecodePng(contents=S(value.image.encoded_image_string))
    assert decoded.reshape(-1).tolist() == pixels


def test_pixels_that_are_not_finite_have_the_bad_color() -> None:
    images = np.array([[[[1, 2, np.inf], [1, 2, 4]]]] * 3, np.float32)
    for color, first in (({}, [255, 0, 0]), ({"bad_color": np.uint8([9, 8, 7])}, [9, 8, 7])):
        values = values_of(raw_ops.ImageSummary(tag=S(b"i"), tensor=images, max_images=2, **color))
        assert [value.tag for value in values] == ["i/image/0", "i/image/1"]
        decoded = raw_ops.DecodePng(contents=S(values[0].image.encoded_image_string))
        assert decoded.tolist() == [[first, [63, 127, 255]]]


def test_bytes_are_the_pixels() -> None:
    summary = raw_ops.ImageSummary(tag=S(b"i"), tensor=np.uint8([[[[1], [200]]]]))
    assert summary == (
        b'\nY\n\ti/image/0"L\x08\x01\x10\x02\x18\x01"D\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02'
        b"\x00\x00\x00\x01\x08\x00\x00\x00\x00\xd1I V\x00\x00\x00\x0bIDAT\x08\x99c`<\x01\x00\x00\xcd"
        b"\x00\xca\x18\x08S\xc0\x00\x00\x00\x00IEND\xaeB`\x82"
    )


def test_sounds_are_wav_files() -> None:
    sounds = np.array([[[0.5, -1], [2, 0]]], np.float32)
    header = (
        b"RIFF,\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x01\0\0\0\x04\0\0\0\x04\0\x10\0data\x08\0\0\0"
    )
    summary = raw_ops.AudioSummaryV2(
        tag=S(b"a"), tensor=sounds, sample_rate=np.float32(0.2), max_outputs=1
    )
    assert summary == (
        b'\nU\n\x07a/audio2J\r\xcd\xccL>\x10\x02\x18\x02"4'
        + header
        + b"\x00@\x00\x80\xff\x7f\x00\x00*\taudio/wav"
    )
    two = raw_ops.AudioSummaryV2(tag=S(b"a"), tensor=sounds[0], sample_rate=np.float32(44100.6))
    assert [(one.tag, one.audio.num_channels) for one in values_of(two)] == [
        ("a/audio/0", 1),
        ("a/audio/1", 1),
    ]


@pytest.mark.filterwarnings("ignore:Op AudioSummary is deprecated:DeprecationWarning")
def test_old_graphs_have_the_rate_as_an_attr() -> None:
    with Graph().as_default() as graph:
        graph.graph_def_versions.producer = 14
        sound = raw_ops.AudioSummary(
            tag=S(b"a"), tensor=np.zeros((1, 2), np.float32), sample_rate=8.0, max_outputs=1
        )
    (found,) = values_of(Session(graph).run(sound))
    assert (found.tag, found.audio.sample_rate, found.audio.length_frames) == ("a/audio", 8, 2)


def value(tag: bytes) -> bytes:
    return b"\n\x08\n\x01" + tag + b"\x15\x00\x00@@"


def test_summaries_are_merged() -> None:
    nameless = b"\n\x05\x15\x00\x00@@"
    inputs = [np.array([value(b"a"), value(b"b")], object), S(nameless * 2), S(b"")]
    merged = raw_ops.MergeSummary(inputs=inputs)
    assert merged == value(b"a") + value(b"b") + nameless * 2
    with pytest.raises(InvalidArgumentError, match="Duplicate tag b found in summary inputs"):
        raw_ops.MergeSummary(inputs=[S(value(b"b")), S(value(b"a") + value(b"b"))])
    for junk in (b"junk\xff", value(b"\xff")):
        with pytest.raises(InvalidArgumentError, match="Could not parse one of the summary inputs"):
            raw_ops.MergeSummary(inputs=[S(junk)])


TWO = np.array([b"a", b"b"], object)
SOUND = np.zeros((1, 2), np.float32)
PIXEL = np.zeros((1, 1, 1, 3), np.float32)
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("ScalarSummary", {"tags": TWO, "values": np.zeros(1)}, r"\[2\] != \[1\]"),
    ("ScalarSummary", {"tags": TWO[:1], "values": np.zeros(())}, r"tag 'a'"),
    ("HistogramSummary", {"tag": S(b"h"), "values": np.array([1, np.nan])}, "Nan in summary histogram"),
    ("HistogramSummary", {"tag": S(b"h"), "values": np.array([-np.inf, np.nan])}, "Infinity in"),
    ("HistogramSummary", {"tag": TWO[:1], "values": np.zeros(1)}, "tags must be scalar"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL[..., :2]}, "last dim 1, 3, or 4"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL[0]}, "4-D"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL[:, :0]}, "non-zero dims"),
    ("ImageSummary", {"tag": TWO, "tensor": PIXEL}, "Tags must be a scalar"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL, "bad_color": np.uint8([1])}, "bad_color.size = 1"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL, "bad_color": np.int32([1, 1, 1])}, "uint8"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL, "bad_color": np.uint8(1)}, "a vector"),
    ("ImageSummary", {"tag": S(b"i"), "tensor": PIXEL, "max_images": 2**31}, "int32"),
    ("AudioSummaryV2", {"tag": S(b"a"), "tensor": SOUND, "sample_rate": np.float32(0)}, "must be > 0"),
    ("AudioSummaryV2", {"tag": S(b"a"), "tensor": SOUND, "sample_rate": np.float32(np.nan)}, "> 0"),
    ("AudioSummaryV2", {"tag": S(b"a"), "tensor": SOUND, "sample_rate": np.float32(1e12)}, r"2\^32"),
    ("AudioSummaryV2", {"tag": S(b"a"), "tensor": SOUND[0], "sample_rate": np.float32(1)}, "3-D or 2-D"),
    ("AudioSummaryV2", {"tag": TWO, "tensor": SOUND, "sample_rate": np.float32(1)}, "Tag must be a scalar"),
    ("TensorSummaryV2", {"tag": TWO, "tensor": SOUND, "serialized_summary_metadata": S(b"")}, "tag must be"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "arguments", "message"), REFUSED)
def test_wrong_inputs_are_refused_as_in_tensorflow(
    op: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        getattr(raw_ops, op)(**arguments)


def test_large_summaries_are_within_the_memory_limit() -> None:
    with Graph().as_default() as graph:
        sounds = raw_ops.Fill(dims=np.int32([4, 1 << 20]), value=np.float32(0.5))
        summary = raw_ops.AudioSummaryV2(tag=S(b"a"), tensor=sounds, sample_rate=np.float32(1))
    with pytest.raises(ResourceExhaustedError, match="OOM"):
        Session(graph, memory_limit_bytes=18 << 20).run(summary)
