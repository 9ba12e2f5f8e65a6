"""Paused garbage collection: the end of a block makes up for it, so that unused graphs are freed."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from opkernel.graph.core import garbage_collection
from opkernel.graph.core.garbage_collection import paused_garbage_collection


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks that make a thousand objects count."""
    monkeypatch.setattr(garbage_collection, "_SOME", 1000)
    full_collections = garbage_collection._FullCollections()
    monkeypatch.setattr(garbage_collection, "_full_collections", full_collections)
    gc.collect()
    yield
    gc.enable()


class Cyclic:
    """Is garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_of_before_goes_with_the_end_of_a_large_block() -> None:
    garbage = weakref.ref(Cyclic())
    with paused_garbage_collection():
        kept = [[i] for i in range(50_000)]
        assert garbage() is not None
    assert garbage() is None
    assert len(kept) == 50_000


def test_small_blocks_cost_no_collection() -> None:
    before = gc.get_stats()[2]["collections"]
    for _ in range(50):
        with paused_garbage_collection():
            pass
    assert gc.get_stats()[2]["collections"] == before


def test_no_collection_where_the_caller_has_disabled_it() -> None:
    gc.disable()
    garbage = weakref.ref(Cyclic())
    with paused_garbage_collection():
        kept = [[i] for i in range(50_000)]
    assert not gc.isenabled()
    assert garbage() is not None
    assert kept
