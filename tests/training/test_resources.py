"""Resources of modules end when nobody has them any more, wherever the collection happens."""

import gc
import threading
from typing import Any

import numpy as np
import pytest

from opkernel import int64, raw_ops
from opkernel.errors import NotFoundError
from opkernel.kernel import global_kernel_registry
from opkernel.training.resource import Resource


class CollectsWhenHashed(str):
    """A name; whoever looks it up in a dict, under a lock perhaps, starts a collection there."""

    def __hash__(self) -> int:
        gc.collect()
        return super().__hash__()


def test_a_resource_may_end_while_its_thread_looks_up_kernels() -> None:
    handle = raw_ops.HashTableV2(key_dtype=int64, value_dtype=int64, shared_name="ends")
    table: Any = Resource("table", lambda: handle, lambda: None)
    assert table.captured_value is handle
    assert raw_ops.LookupTableSizeV2(table_handle=handle) == 0
    table.itself = table
    ended = threading.Event()

    def look_up() -> None:
        global_kernel_registry().registered_for(CollectsWhenHashed("Add"))
        ended.set()

    gc.disable()
    try:
        del table
        threading.Thread(target=look_up, daemon=True).start()
        assert ended.wait(60), "the collection waits for a lock that its own thread holds"
    finally:
        gc.enable()
    with pytest.raises(NotFoundError):
        raw_ops.LookupTableSizeV2(table_handle=handle)


def test_what_is_no_handle_ends_silently(capsys: pytest.CaptureFixture[str]) -> None:
    number: Any = Resource("number", lambda: np.float32(1), lambda: None)
    assert number.captured_value == 1
    del number
    gc.collect()
    assert capsys.readouterr().err == ""
