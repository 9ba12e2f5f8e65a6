"""Archives that claim too much are refused after little work, and leave nothing behind."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import struct
import tarfile
import tempfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import opkernel
from opkernel.device.budget import Budget, spending
from opkernel.errors import (
    DataLossError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from opkernel.interop import archives

DATA = Path(__file__).parent / "data"
FORMS = ["zip", "tar", "tar.gz"]
Entries = Iterable[tuple[str, int]]
"""The names of files, or of directories with a slash at the end; the sizes, which are zeros."""


def packed(path: Path, entries: Entries) -> Path:
    """An archive of the form that its name says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, size in entries:
                archive.writestr(name, bytes(size))
        return path
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name, size in entries:
            member = tarfile.TarInfo(name)
            member.size = size
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            tar.addfile(member, io.BytesIO(bytes(size)))
    return path


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How much lay in each directory that something was unpacked to, when it was deleted."""
    counts = []

    class Counted(tempfile.TemporaryDirectory[str]):
        def cleanup(self) -> None:
            counts.append(sum(len(files) + len(dirs) for _, dirs, files in os.walk(self.name)))
            super().cleanup()

    folder = tmp_path / "unpacked"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(archives.tempfile, "TemporaryDirectory", Counted)  # type: ignore[attr-defined]  # a module
    yield counts
    assert [*folder.iterdir()] == []


BOMBS: dict[str, Callable[[], Entries]] = {
    "files": lambda: ((f"f{i}", 0) for i in range(300)),
    "directories": lambda: ((f"d{i}/", 0) for i in range(300)),
    "one directory again and again": lambda: (("d/", 0) for _ in range(300)),
    "a directory for each file": lambda: ((f"d{i}/f", 0) for i in range(120)),
    "directories below each other": lambda: ((f"d{i}/{'x/' * 20}f", 0) for i in range(20)),
    "a deep one": lambda: [("d/" * 40 + "f", 0)],
    "a very deep one": lambda: [("d/" * 20_000 + "f", 0)],
    "bytes in one file": lambda: [("f", 3 << 20)],
    "bytes in many": lambda: ((f"f{i}", 200_000) for i in range(20)),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.parametrize("form", FORMS)
def test_an_archive_of_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: list[int], form: str, what: str
) -> None:
    monkeypatch.setattr(archives, "_MOST_ENTRIES", 200)
    monkeypatch.setattr(archives, "_ALWAYS_BYTES", 2 << 20)
    monkeypatch.setattr(archives, "_MOST_GROWTH", 0)
    path = packed(tmp_path / f"bomb.{form}", BOMBS[what]())
    with pytest.raises(ResourceExhaustedError, match=r"bomb\.(zip|tar|tar\.gz) (has|unpacks)"):
        opkernel.load(path)
    assert max(seen) <= 200


@pytest.mark.parametrize("form", FORMS)
def test_a_small_archive_of_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Beyond what is always unpacked, up to 100 times its size is."""
    monkeypatch.setattr(archives, "_ALWAYS_BYTES", 1000)
    path = packed(tmp_path / f"bomb.{form}", [("f", 8 << 20)])
    with pytest.raises(OpError) as caught:
        opkernel.load(path)
    is_small = form != "tar"
    assert ("100 times its size" in str(caught.value)) == is_small
    assert isinstance(caught.value, ResourceExhaustedError) == is_small


@pytest.mark.parametrize("form", FORMS)
def test_there_is_no_time(tmp_path: Path, seen: list[int], form: str) -> None:
    path = packed(tmp_path / f"bomb.{form}", ((f"f{i}", 0) for i in range(100)))
    budget = Budget(deadline=time.monotonic() - 1)
    with pytest.raises(DeadlineExceededError, match=r"bomb\."), spending(budget):
        opkernel.load(path)
    assert max(seen, default=0) == 0


def header(name: str, kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


ZEROS = 64 << 20
CLAIMS: dict[str, Callable[[], Iterable[bytes]]] = {
    "a name": lambda: [header("n", tarfile.GNUTYPE_LONGNAME, ZEROS)],
    "a link": lambda: [header("n", tarfile.GNUTYPE_LONGLINK, ZEROS)],
    "attributes": lambda: [header("n", tarfile.XHDTYPE, ZEROS)],
    "attributes of all": lambda: [header("n", tarfile.XGLTYPE, ZEROS)],
    "attributes again and again": lambda: [
        header("n", tarfile.XHDTYPE, 1 << 19) + bytes(1 << 19) for _ in range(200)
    ],
    "names of many": lambda: (
        header("n", tarfile.XGLTYPE, 1 << 19)
        + f"{1 << 19} {i}=".encode().ljust((1 << 19) - 1, b"x")
        + b"\n"
        + header(f"f{i}", tarfile.REGTYPE, 0)
        for i in range(200)
    ),
}
"""Headers that make their readers hold 64 MiB and more, which gzip packs into some KiB."""


@pytest.mark.parametrize("what", CLAIMS)
def test_headers_take_little_memory(tmp_path: Path, seen: list[int], what: str) -> None:
    path = tmp_path / "bomb.tar.gz"
    with gzip.open(path, "wb", 1) as file:
        for part in CLAIMS[what]():
            file.write(part)
        file.write(bytes(ZEROS))
    tracemalloc.start()
    with pytest.raises(OpError, match=r"bomb\.tar\.gz"):
        opkernel.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 16 << 20


def repeated(path: Path, name: str, count: int) -> Path:
    """A zip file that lists one empty file again and again."""
    content = packed(path, [(name, 0)]).read_bytes()
    begin, end = content.index(b"PK\1\2"), content.index(b"PK\5\6")
    one = content[begin:end]
    last = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, count % 65536, count % 65536, count * len(one), begin, 0
    )
    path.write_bytes(content[:begin] + count * one + last)
    return path


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("f", 20_000, "has more than 10000 files and directories"),
        ("f", 300_000, "a list of files, larger than is read"),
        ("x" * 60_000, 1000, "a list of files, larger than is read"),
    ],
)
def test_a_list_of_files_is_refused_before_it_is_held(
    tmp_path: Path, seen: list[int], name: str, count: int, message: str
) -> None:
    path = repeated(tmp_path / "bomb.zip", name, count)
    tracemalloc.start()
    with pytest.raises(ResourceExhaustedError, match=message):
        opkernel.load(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 << 20
    assert seen == [0]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_ask_for_memory_are_refused(
    tmp_path: Path, seen: list[int], method: int
) -> None:
    with zipfile.ZipFile(tmp_path / "model.zip", "w", method) as archive:
        archive.writestr("saved_model.pb", b"")
    with pytest.raises(InvalidArgumentError, match="only files that are deflated, or not compr"):
        opkernel.load(tmp_path / "model.zip")


@pytest.mark.parametrize("form", FORMS)
def test_no_damage_is_more_than_an_error(tmp_path: Path, seen: list[int], form: str) -> None:
    """All truncations of a model's archive, and changes of bytes."""
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "saved_model.pb").write_bytes(b"no model" * 10)
    for place in (directory / "saved_model.pb", directory):
        os.utime(place, (1e9 + 0.5,) * 2)  # which the archive tells: the damage is always the same
    made = shutil.make_archive(
        str(tmp_path / "whole"), "gztar" if form == "tar.gz" else form, directory
    )
    whole, path = Path(made).read_bytes(), tmp_path / f"damaged.{form}"
    places = range(0, len(whole), max(len(whole) // 200, 1))
    cut = [whole[:place] for place in places]
    changed = [whole[:p] + bytes([whole[p] ^ 0xFF]) + whole[p + 1 :] for p in places]
    for data in [*cut, *changed]:
        path.write_bytes(data)
        try:
            archives.UnpackedArchive(str(path))
        except OpError:
            continue


def test_the_length_of_a_header_that_no_machine_has(tmp_path: Path, seen: list[int]) -> None:
    with tarfile.open(tmp_path / "whole.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("first"))
        member = tarfile.TarInfo("saved_model.pb")
        member.pax_headers = {"comment": "x" * 40}
        tar.addfile(member)
    whole = (tmp_path / "whole.tar").read_bytes()
    record = b"52 comment=" + b"x" * 40
    assert record in whole
    (tmp_path / "bad.tar").write_bytes(whole.replace(record, b"9" * 41 + b" comment=x"))
    with pytest.raises(DataLossError, match=r"bad\.tar (cannot be unpacked|is damaged)"):
        opkernel.load(tmp_path / "bad.tar")


def test_a_damaged_header_does_not_end_an_archive(tmp_path: Path, seen: list[int]) -> None:
    whole = packed(tmp_path / "whole.tar", [("first", 10), ("saved_model.pb", 10)]).read_bytes()
    place = whole.index(b"saved_model.pb")
    (tmp_path / "bad.tar").write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
    with pytest.raises(DataLossError, match=rf"bad\.tar .*the header at byte {place} is damaged"):
        opkernel.load(tmp_path / "bad.tar")


def test_a_stream_that_is_broken_in_the_middle(tmp_path: Path, seen: list[int]) -> None:
    content = packed(tmp_path / "whole.tar", [("f", 100_000)]).read_bytes()
    stream = zlib.compressobj(wbits=31)
    data = stream.compress(content[:50_000]) + stream.flush(zlib.Z_FULL_FLUSH)
    (tmp_path / "bad.tar.gz").write_bytes(data + b"\xff" * 1000)
    with pytest.raises(DataLossError, match=r"bad\.tar\.gz"):
        opkernel.load(tmp_path / "bad.tar.gz")


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_loaded_from_each_form(tmp_path: Path, form: str) -> None:
    with zipfile.ZipFile(DATA / "linear.zip") as archive:
        archive.extractall(tmp_path / "model")
    made: Any = shutil.make_archive(
        str(tmp_path / "packed"), "gztar" if form == "tar.gz" else form, tmp_path / "model"
    )
    assert repr(opkernel.load(made).signatures) == repr(
        opkernel.load(DATA / "linear.zip").signatures
    )
