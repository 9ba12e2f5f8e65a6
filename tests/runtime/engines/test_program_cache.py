"""Compiled programs by their content: shared in a process, and kept on disk."""

import os
import threading
from functools import partial

import numpy as np
import pytest

from opkernel.errors import InternalError
from opkernel.runtime.engines import program_cache
from opkernel.runtime.engines.program_cache import Compilation, ProgramCache, content_key


class Program:
    """A program that is its content."""

    def __init__(self, content):
        self.content = bytes(content)


class Library:
    """Counts what it compiles and loads."""

    def __init__(self):
        self.compiled, self.loaded = [], []

    def compile(self, content):
        self.compiled.append(content)
        return Program(content)

    def load(self, content):
        self.loaded.append(bytes(content))
        return Program(content)

    def how(self, content):
        return Compilation(partial(self.compile, content), self.load, lambda one: one.content)


def wait_for_files():
    for thread in threading.enumerate():
        if thread.name == "opkernel program cache":
            thread.join()


@pytest.fixture(autouse=True)
def keeps_all(tmp_path, monkeypatch):
    monkeypatch.setenv("OPKERNEL_CACHE", str(tmp_path))
    monkeypatch.setattr(program_cache, "_LEAST_S", 0.0)


def test_a_program_is_compiled_once_while_somebody_has_it(monkeypatch):
    monkeypatch.setenv("OPKERNEL_CACHE", "off")
    cache, library = ProgramCache[Program]("part", 1000), Library()
    first = cache.program("a", library.how(b"a"))
    assert cache.program("a", library.how(b"a")) is first
    del first
    cache.program("a", library.how(b"a"))
    assert library.compiled == [b"a", b"a"]


def test_threads_that_want_one_program_wait_for_it():
    cache, library, may_go = ProgramCache[Program]("part", 1000), Library(), threading.Event()

    def slow():
        may_go.wait()
        return library.compile(b"a")

    how, found = Compilation(slow, library.load, lambda one: one.content), []
    threads = [
        threading.Thread(target=lambda: found.append(cache.program("a", how))) for _ in range(4)
    ]
    for one in threads:
        one.start()
    assert cache.program("b", library.how(b"b")).content == b"b"  # others do not wait
    may_go.set()
    for one in threads:
        one.join()
    assert library.compiled == [b"b", b"a"]
    assert len({id(one) for one in found}) == 1


def test_another_process_loads_the_content(tmp_path):
    library = Library()
    ProgramCache("part", 1000).program("a", library.how(b"content"))
    wait_for_files()
    assert ProgramCache("part", 1000).program("a", library.how(b"content")).content == b"content"
    assert (library.compiled, library.loaded) == ([b"content"], [b"content"])
    assert [one.name for one in (tmp_path / "part").iterdir()] == ["a"]


def test_files_that_were_not_used_for_longest_make_room(tmp_path):
    library = Library()
    for number, name in enumerate("abc"):
        ProgramCache("part", 1000).program(name, library.how(bytes(300)))
        wait_for_files()
        os.utime(tmp_path / "part" / name, (number, number))
    ProgramCache("part", 1000).program("a", library.how(bytes(300)))  # is used
    ProgramCache("part", 1000).program("d", library.how(bytes(300)))
    wait_for_files()
    assert sorted(one.name for one in (tmp_path / "part").iterdir()) == ["a", "d"]


def test_a_program_that_is_larger_than_the_folder_may_be_is_not_kept(tmp_path):
    ProgramCache("part", 1000).program("a", Library().how(bytes(1000)))
    wait_for_files()
    assert not [*(tmp_path / "part").iterdir()]


def test_a_program_that_cannot_be_written_or_loaded_runs_all_the_same(tmp_path):
    def fail(*_):
        raise InternalError("not this one")

    library = Library()
    how = Compilation(partial(library.compile, b"a"), fail, fail)
    assert ProgramCache("part", 1000).program("a", how).content == b"a"
    wait_for_files()
    assert not [*(tmp_path / "part").iterdir()]
    ProgramCache("part", 1000).program("a", library.how(b"a"))
    wait_for_files()
    assert ProgramCache("part", 1000).program("a", how).content == b"a"
    assert library.compiled == [b"a"] * 3


def test_an_error_of_the_compiler_is_the_callers():
    def fail():
        raise InternalError("not this one")

    with pytest.raises(InternalError, match="not this one"):
        ProgramCache("part", 1000).program("a", Compilation(fail, Program, bytes))


def test_keys_tell_texts_and_arrays_apart():
    zeros = np.zeros((2, 3), np.float32)
    keys = [
        content_key(["ab"]),
        content_key(["a", "b"]),
        content_key(["ab"], [zeros]),
        content_key(["ab"], [zeros[:1], zeros[1:]]),
        content_key(["ab"], [zeros + 1]),
        content_key(["ab"], [zeros[:0]]),
        content_key(["ab"], [np.zeros((), np.float32)]),
    ]
    assert len({*keys}) == len(keys)
    assert content_key(["ab"], [zeros]) == content_key(["ab"], [zeros.copy()])
