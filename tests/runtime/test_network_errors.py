"""UNAVAILABLE is the error of ops that talk to other processes; of others it becomes INTERNAL."""

from collections.abc import Iterator

import numpy as np
import pytest

import opkernel
from opkernel.errors import InternalError, UnavailableError
from opkernel.kernel import OpKernel, OpKernelContext, global_kernel_registry, register_kernel
from opkernel.proto import AttrValue
from opkernel.testing import run_op

OPS = {"Expm1": {}, "Recv": {"tensor_type": opkernel.float32, "tensor_name": "t"}}
LABEL = AttrValue(s=b"unavailable")


@pytest.fixture(autouse=True)
def kernels() -> Iterator[None]:
    """Kernels that find their service gone."""
    registry = global_kernel_registry()
    before = {one for op in OPS for one in registry.registrations_for(op)}

    class Gone(OpKernel):
        def compute(self, ctx: OpKernelContext) -> None:
            raise UnavailableError("gone")

    for op in OPS:
        register_kernel(op, device="CPU", label="unavailable")(Gone)
    yield
    for one in {one for op in OPS for one in registry.registrations_for(op)} - before:
        registry.unregister(one)


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize(("op", "expected"), [("Expm1", InternalError), ("Recv", UnavailableError)])
def test_of_sessions(op, expected, executor):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [], name="x")
    attrs = {**OPS[op], "_kernel": LABEL}
    if op == "Recv":
        attrs.update(send_device="/device:CPU:0", recv_device="/device:CPU:0")
        attrs.update(send_device_incarnation=1)
    y = graph.create_op(op, [x][: op == "Expm1"], attrs=attrs, name="y").outputs[0]
    config = opkernel.SessionConfig(executor_type=executor)
    with opkernel.Session(graph, config=config) as session, pytest.raises(expected) as error:
        session.run(y, {x: 1.0})
    assert "gone" in error.value.message
    assert (error.value.node, error.value.op) == ("y", op)
    assert ("its unavailableerror became" in error.value.message.lower()) is (op == "Expm1")


def test_of_kernels_that_are_run_alone():
    with pytest.raises(InternalError, match="gone"):
        run_op("Expm1", [np.float32(1)], attrs={"_kernel": LABEL})
