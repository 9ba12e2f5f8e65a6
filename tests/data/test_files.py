"""Datasets of files. Expected elements and errors are TensorFlow's."""

import gzip
import struct

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset


def outcomes(dataset, most=8):
    found: list[object] = []
    elements = iter(dataset)
    while len(found) < most:
        try:
            found.append(next(elements))
        except StopIteration:
            return [*found, "END"]
        except errors.OpError as error:
            found.append(type(error))
    return found


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


def record(data):
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, data)]
    return length + sums[0] + data + sums[1]


def test_lines(file):
    first = file("a", b"one\r\ntwo\n\nth\rree\nlast")
    second, empty = file("b", b"x\n"), file("c", b"")
    expected = [b"one", b"two", b"", b"three", b"last", b"x", "END"]
    assert outcomes(TextLineDataset([first, empty, second])) == expected
    packed = file("d", gzip.compress(b"1\n2"))
    assert outcomes(TextLineDataset(packed, "GZIP")) == [b"1", b"2", "END"]


def test_a_missing_file_is_asked_for_again_and_again(file, tmp_path):
    dataset = TextLineDataset([file("a", b"x"), tmp_path / "none"])
    assert outcomes(dataset, 3) == [b"x", errors.NotFoundError, errors.NotFoundError]


def test_records(file):
    content = record(b"first") + record(b"") + record(b"third")
    whole = file("a", content)
    assert outcomes(TFRecordDataset(whole)) == [b"first", b"", b"third", "END"]
    changed = file("b", content[:12] + b"F" + content[13:])
    cut = file("c", content[:-1])
    expected = [errors.DataLossError, b"first", b"", errors.DataLossError, "END"]
    assert outcomes(TFRecordDataset([changed, cut])) == expected


def test_records_of_one_length(file):
    whole, odd = file("a", b"HHabcdefghF"), file("b", b"HHabcdeF")
    assert outcomes(FixedLengthRecordDataset(whole, 4, 2, 1)) == [b"abcd", b"efgh", "END"]
    assert outcomes(FixedLengthRecordDataset(odd, 4, 2, 1), 1) == [errors.InvalidArgumentError]


def test_a_pass_over_files_is_taken_up_again(file):
    names = [file("a", b"1\n2\n3\n"), file("b", b"4\n5\n")]
    elements = iter(TextLineDataset(names))
    for count in range(5):
        state = elements.save()
        rest = [int(line) for line in elements]
        assert rest == [*range(count + 1, 6)]
        elements.restore(state)
        next(elements)


def test_files_of_a_pattern(file, tmp_path):
    names = [str(file(name, b"")).encode() for name in ("b.x", "a.x", "c.y")]
    pattern = str(tmp_path / "*.x")
    assert [*Dataset.list_files(pattern, shuffle=False)] == [names[1], names[0]]
    assert sorted(Dataset.list_files(pattern)) == [names[1], names[0]]
    with pytest.raises(errors.InvalidArgumentError, match="No files matched pattern"):
        Dataset.list_files(str(tmp_path / "*.z"))


def test_a_file_of_two_patterns_comes_twice(file, tmp_path):
    names = [str(file(name, b"")).encode() for name in ("a.x", "b.x", "c.y")]
    patterns = [str(tmp_path / name) for name in ("c.y", "*.x", "b.x")]
    expected = [names[0], names[1], names[1], names[2]]
    assert [*Dataset.list_files(patterns, shuffle=False)] == expected
    assert sorted(Dataset.list_files(patterns, seed=1)) == expected


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["*.y", "a.x"], "c.y a.x"),
        (["b.x", "*.x", "b.x"], "b.x a.x b.x b.x"),
        (["*", "d/*"], "a.x b.x c.y d/e.x"),
        (["*/*", "d", "no"], "d/e.x"),
        (["d", "no"], None),
    ],
)
def test_files_of_several_patterns_come_pattern_by_pattern(file, tmp_path, patterns, expected):
    (tmp_path / "d").mkdir()
    for name in ("c.y", "b.x", "a.x", "d/e.x"):
        file(name, b"")
    paths = np.array([str(tmp_path / one).encode() for one in patterns], object)
    variant = opkernel.raw_ops.MatchingFilesDataset(patterns=paths)
    names = iter(Dataset(variant, opkernel.TensorSpec([], opkernel.string)))
    if expected is None:
        for _ in range(2):
            with pytest.raises(errors.NotFoundError, match="Don't find any matched files"):
                next(names)
    else:
        assert [*names] == [str(tmp_path / one).encode() for one in expected.split()]


def test_a_session_reads_what_it_may(file, tmp_path):
    with opkernel.Graph().as_default() as graph:
        name = opkernel.placeholder(opkernel.string, [])
        dataset = Dataset(
            opkernel.raw_ops.TextLineDataset(filenames=name, compression_type="", buffer_size=0),
            opkernel.TensorSpec([], opkernel.string),
        )
        iterator = opkernel.data.make_initializable_iterator(dataset)
        line = iterator.get_next()
    given = str(file("a", b"line")).encode()
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer, {name: given})
        with pytest.raises(errors.PermissionDeniedError):
            session.run(line)
    permissions = opkernel.Permissions(read=[tmp_path])
    with opkernel.Session(graph, permissions=permissions) as session:
        session.run(iterator.initializer, {name: given})
        assert session.run(line) == b"line"


def test_a_cache_in_a_file_outlives_its_dataset(tmp_path):
    def cached(factor):
        pairs = Dataset.range(3).map(lambda x: (x * factor, opkernel.as_string(x)))
        return pairs.cache(tmp_path / "cache")

    abandoned = iter(cached(1))
    next(abandoned)
    abandoned.close()
    expected = [(0, b"0"), (10, b"1"), (20, b"2")]
    assert [*cached(10)] == expected
    assert [*cached(7)] == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cache.data-00000-of-00001",
        "cache.index",
    ]
