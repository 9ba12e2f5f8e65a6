"""Tensors that a session keeps between steps, and the handles that stand for them."""

import gc

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder

import opkernel
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.kernel import TensorAndKey
from opkernel.runtime.program.session_state import LocalSessionState, LocalTensorStore
from opkernel.types import DataType

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(params=["GetSessionHandle", "GetSessionHandleV2"])
def builder(request):
    """keep: a handle of 2 x; y = 10 z; read: the tensor of a handle that is fed as text."""
    b = Builder()
    x = b.placeholder("x")
    b.op(request.param, b.op("AddV2", x, x, name="double"), name="keep")
    b.op("Mul", b.placeholder("z"), b.constant(10.0), name="y")
    handle = b.placeholder("handle", DataType.DT_STRING)
    b.op("GetSessionTensor", handle, name="read", dtype=FLOAT)
    b.op("GetSessionTensor", handle, name="read_int", dtype=INT32)
    b.operation("DeleteSessionTensor", handle, name="delete")
    return b


@pytest.fixture
def session(builder):
    with opkernel.Session(builder.graph) as session:
        yield session


def test_a_handle_stands_for_a_tensor(session):
    handle = session.run("keep:0", {"x:0": [1.0, 2.0]})
    assert isinstance(handle, opkernel.TensorHandle)
    assert str(handle) == handle.handle == f"keep;0;{CPU}"
    assert handle.dtype == FLOAT
    assert handle.eval().tolist() == [2, 4]
    assert session.run("y:0", {"z:0": handle}).tolist() == [20, 40]
    assert session.run("read:0", {"handle:0": handle.handle}).tolist() == [2, 4]


def test_each_step_keeps_its_own(session):
    first, second = (session.run({"h": ["keep:0"]}, {"x:0": v})["h"][0] for v in (1.0, 2.0))
    assert first.handle != second.handle
    assert (first.eval(), second.eval()) == (2, 4)
    call = session.make_callable("keep:0", ["x:0"])
    assert call(5.0).eval() == 10


def test_what_the_user_does_to_a_value_stays_his(session):
    handle = session.run("keep:0", {"x:0": [1.0]})
    handle.eval()[0] = 9
    assert handle.eval() == [2]


def test_a_deleted_tensor_is_gone(session):
    handle = session.run("keep:0", {"x:0": 1.0})
    handle.delete()
    for use in (handle.eval, handle.delete):
        with pytest.raises(TypeError, match="may have already been deleted"):
            use()
    with pytest.raises(InvalidArgumentError, match="is not in the session store"):
        session.run("y:0", {"z:0": handle})
    with pytest.raises(InvalidArgumentError, match="is not in the session store"):
        session.run("read:0", {"handle:0": handle.handle})
    with pytest.raises(InvalidArgumentError, match="Failed to delete a tensor"):
        session.run("delete", {"handle:0": handle.handle})


def test_an_op_deletes_a_tensor(session):
    handle = session.run("keep:0", {"x:0": 1.0})
    session.run("delete", {"handle:0": handle.handle})
    with pytest.raises(InvalidArgumentError, match="is not in the session store"):
        handle.eval()


def test_a_tensor_goes_with_its_handle_unless_somebody_took_the_raw_one(session):
    handle = session.run("keep:0", {"x:0": 1.0})
    raw = session.run("keep:0", {"x:0": 2.0}).get_raw_handle()
    gc.collect()
    text = handle.handle
    del handle
    gc.collect()
    with pytest.raises(OpError, match="is not in the session store"):
        session.run("read:0", {"handle:0": text})
    assert session.run("read:0", {"handle:0": raw}) == 4


def test_a_handle_of_another_session_or_type_is_refused(session, builder):
    handle = session.run("keep:0", {"x:0": 1.0})
    with (
        opkernel.Session(builder.graph) as other,
        pytest.raises(InvalidArgumentError, match="is not in the session store"),
    ):
        other.run("y:0", {"z:0": handle})
    number = builder.op("Neg", builder.placeholder("n", INT32))
    with pytest.raises(InvalidArgumentError, match=r"'n:0' is int32.*float32"):
        session.run(number, {"n:0": handle})
    with pytest.raises(OpError, match="read_int"):
        session.run("read_int:0", {"handle:0": handle.handle})


def test_a_handle_that_is_not_fetched_keeps_nothing(builder):
    with opkernel.Session(builder.graph) as session:
        session.run(builder.graph.get_operation_by_name("keep"), {"x:0": 1.0})
        assert len(session._runtime.state) == 0


def test_partial_runs_keep_tensors_too(session):
    handle = session.partial_run_setup(["keep:0", "y:0"], ["x:0", "z:0"])
    kept = session.partial_run(handle, "keep:0", {"x:0": 3.0})
    assert kept.eval() == 6
    assert session.partial_run(handle, "y:0", {"z:0": kept}) == 60


class TestState:
    def test_a_handle_is_taken_once(self):
        state = LocalSessionState()
        assert [state.get_new_id(), state.get_new_id()] == [0, 1]
        state.add_tensor("a;0;CPU", np.float32(1))
        with pytest.raises(InvalidArgumentError, match="Failed to add a tensor with handle 'a;0"):
            state.add_tensor("a;0;CPU", np.float32(1))
        state.delete_tensor("a;0;CPU")
        with pytest.raises(InvalidArgumentError, match="'a;0;CPU' is not in the session store"):
            state.get_tensor("a;0;CPU")

    def test_a_store_saves_what_was_fetched(self):
        state, store = LocalSessionState(), LocalTensorStore()
        for name in ("a", "b"):
            store.add_tensor(name, TensorAndKey(np.float32(1), 7, "CPU"))
        with pytest.raises(InvalidArgumentError, match="name 'a' to the tensor store"):
            store.add_tensor("a", TensorAndKey(np.float32(1), 8, "CPU"))
        store.save_tensors(["b", "c"], state)
        assert len(state) == 1
        assert state.get_tensor("b;7;CPU") == 1
