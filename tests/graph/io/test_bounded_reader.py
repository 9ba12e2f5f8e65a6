"""A file of which a parser reads no more than it is allowed."""

import io

import pytest

from opkernel.errors import ResourceExhaustedError
from opkernel.graph.io.file_kind import BoundedReader

CONTENT = bytes(range(256)) * 5000
"""More than a megabyte."""


def reader(bytes_left: int | None = None) -> BoundedReader:
    return BoundedReader(io.BytesIO(CONTENT), "a.tar", bytes_left)


@pytest.mark.parametrize("bytes_left", [None, len(CONTENT)])
def test_reading_and_seeking(bytes_left: int | None) -> None:
    file = reader(bytes_left)
    assert file.seekable()
    assert file.read(0) == b""
    assert (file.read(3), file.tell()) == (CONTENT[:3], 3)
    assert file.seek(-2, io.SEEK_END) == len(CONTENT) - 2
    assert (file.read(10), file.read(10)) == (CONTENT[-2:], b"")
    assert file.seek(5) == 5
    assert file.read(2) == CONTENT[5:7]


@pytest.mark.parametrize("size", [-1, len(CONTENT), 2 * len(CONTENT)])
def test_all_of_it(size: int) -> None:
    assert reader().read(size) == CONTENT
    assert reader(len(CONTENT)).read(size) == CONTENT
    with pytest.raises(ResourceExhaustedError, match=r"a\.tar has a header, or a list"):
        reader(len(CONTENT) - 1).read(size)


def test_what_may_be_read_counts_over_several_reads() -> None:
    file = reader(10)
    assert len(file.read(6)) == 6
    assert file.bytes_left == 4
    assert len(file.read(4)) == 4
    with pytest.raises(ResourceExhaustedError):
        file.read(1)
    file.bytes_left = 1
    assert len(file.read(1)) == 1


def test_the_file_belongs_to_whoever_opened_it() -> None:
    file = io.BytesIO(CONTENT)
    BoundedReader(file, "a.tar").close()
    assert not file.closed
