"""The kernels with state that the graphs of a session share."""

import gc
import threading
import time
import weakref
from functools import partial

import pytest

from opkernel.errors import InternalError, NotFoundError, UnknownError
from opkernel.graph import FunctionLibraryDefinition
from opkernel.kernel import OpKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder, global_op_registry
from opkernel.proto import FunctionDef
from opkernel.runtime import CPU, OpSegment, should_own_kernel
from opkernel.types import DataType

WAIT_S = 300.0


def make(name: str, dtype: DataType = DataType.DT_FLOAT) -> OpKernel:
    node = NodeDefBuilder(name, "Mul").input("x", 0, dtype).input("y", 0, dtype).finalize()
    return create_op_kernel(CPU, node)


def refuse() -> OpKernel:
    raise UnknownError("called again")


def test_one_kernel_for_each_node_of_each_session() -> None:
    segment = OpSegment()
    segment.add_hold("A")
    segment.add_hold("B")
    names = [f"op{number}" for number in range(10)]
    floats = [segment.find_or_create("A", name, partial(make, name)) for name in names]
    ints = [
        segment.find_or_create("B", name, partial(make, name, DataType.DT_INT32)) for name in names
    ]
    assert [segment.find_or_create("A", name, refuse) for name in names] == floats
    assert [segment.find_or_create("B", name, refuse) for name in names] == ints
    assert {kernel.input_types[0] for kernel in floats} == {DataType.DT_FLOAT}
    assert {kernel.input_types[0] for kernel in ints} == {DataType.DT_INT32}


def test_a_session_that_nobody_holds() -> None:
    with pytest.raises(NotFoundError, match=r"^Session A is not found\.$"):
        OpSegment().find_or_create("A", "op", lambda: make("op"))


def test_a_kernel_that_cannot_be_created() -> None:
    segment = OpSegment()
    segment.add_hold("A")
    with pytest.raises(UnknownError, match="called again"):
        segment.find_or_create("A", "op", refuse)
    kernel = segment.find_or_create("A", "op", lambda: make("op"))
    assert segment.find_or_create("A", "op", refuse) is kernel


def test_kernels_stay_until_the_last_hold_is_removed() -> None:
    segment = OpSegment()
    segment.add_hold("A")
    segment.add_hold("A")
    watched = weakref.ref(segment.find_or_create("A", "op", lambda: make("op")))
    segment.remove_hold("A")
    gc.collect()
    assert watched() is segment.find_or_create("A", "op", refuse)
    segment.remove_hold("A")
    gc.collect()
    assert watched() is None
    with pytest.raises(NotFoundError, match="Session A is not found"):
        segment.find_or_create("A", "op", refuse)


def test_removing_a_hold_that_is_none_does_nothing() -> None:
    segment = OpSegment()
    segment.remove_hold("A")
    segment.add_hold("A")
    segment.remove_hold("A")
    segment.remove_hold("A")


def test_a_session_that_goes_while_its_kernel_is_made() -> None:
    segment = OpSegment()
    segment.add_hold("A")

    def create() -> OpKernel:
        segment.remove_hold("A")
        return make("op")

    with pytest.raises(NotFoundError, match="Session A is not found"):
        segment.find_or_create("A", "op", create)


def test_a_kernel_is_made_once_for_many_threads() -> None:
    segment = OpSegment()
    segment.add_hold("A")
    made: list[int] = []
    found: list[OpKernel] = []

    def create() -> OpKernel:
        time.sleep(0.02)
        made.append(1)
        return make("op")

    threads = [
        threading.Thread(target=lambda: found.append(segment.find_or_create("A", "op", create)))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert made == [1]
    assert len(found) == 16
    assert len(set(map(id, found))) == 1


def test_a_kernel_that_needs_itself_is_refused() -> None:
    segment = OpSegment()
    segment.add_hold("A")

    def create() -> OpKernel:
        return segment.find_or_create("A", "op", create)

    with pytest.raises(InternalError, match="asks for what it is to make"):
        segment.find_or_create("A", "op", create)


def test_what_a_segment_should_own() -> None:
    library = FunctionLibraryDefinition(global_op_registry())
    function = FunctionDef()
    function.signature.name = "Counter"
    function.signature.is_stateful = True
    library.add_function(function)
    assert should_own_kernel(library, "VarHandleOp")
    assert not should_own_kernel(library, "Mul")
    assert not should_own_kernel(library, "Counter")
    assert not should_own_kernel(library, "NoSuchOp")
