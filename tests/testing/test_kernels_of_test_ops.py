"""Kernels of TensorFlow's own test ops. Expected values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.testing import tensorflow_test_kernels


def test_the_kernels_are_there_within_blocks_only() -> None:
    for _ in range(2):
        with tensorflow_test_kernels():
            with tensorflow_test_kernels():
                assert raw_ops.KernelLabel() == b"My label is: default"
            assert raw_ops.KernelLabel() == b"My label is: default"
        assert not get_registered_kernels_for_op("KernelLabel").kernel
        with pytest.raises(NotFoundError):
            raw_ops.KernelLabel()


def test_labels_choose_kernels() -> None:
    def label(op: str, label: str, *inputs: Any) -> Any:
        graph = opkernel.Graph()
        with graph.as_default():
            tensors = [opkernel.constant(one) for one in inputs]
            result = graph.create_op(op, tensors, attrs={"_kernel": label}).outputs[0]
        return opkernel.Session(graph).run(result)

    with tensorflow_test_kernels():
        for name in ("overload_1", "overload_2"):
            assert label("KernelLabel", name) == b"My label is: " + name.encode()
            assert label("KernelLabelRequired", name, [1]) == b"My label is: " + name.encode()
        for op, inputs in (("KernelLabel", []), ("KernelLabelRequired", [[1]])):
            with pytest.raises(NotFoundError):
                label(op, "overload_3", *inputs)
        with pytest.raises(NotFoundError):
            raw_ops.KernelLabelRequired(input=[1])


def test_a_resource_is_made_before_it_is_used() -> None:
    with tensorflow_test_kernels():
        stub = raw_ops.StubResourceHandleOp(container="of_stubs", shared_name="one")
        assert not raw_ops.ResourceInitializedOp(resource=stub)
        with pytest.raises(NotFoundError):
            raw_ops.ResourceUsingOp(resource=stub)
        raw_ops.ResourceCreateOp(resource=stub)
        assert raw_ops.ResourceInitializedOp(resource=stub)
        raw_ops.ResourceUsingOp(resource=stub)
        with pytest.raises(AlreadyExistsError):
            raw_ops.ResourceCreateOp(resource=stub)
        raw_ops.DestroyResourceOp(resource=stub)
        other = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[])
        assert not raw_ops.ResourceInitializedOp(resource=other)
        with pytest.raises(InvalidArgumentError, match="wrong type"):
            raw_ops.ResourceUsingOp(resource=other)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: raw_ops.TestAttr(T=opkernel.float32), 1),
        (lambda: int(raw_ops.SleepIdentityOp(sleep_seconds=0, input=3)), 3),
        (lambda: raw_ops.SleepOp(sleep_seconds=-1), None),
        (lambda: raw_ops.IsTensorFloat32Enabled(), True),
        (lambda: raw_ops.DevicePlacementOp(), b"/job:localhost/replica:0/task:0/device:CPU:0"),
        (lambda: raw_ops.GraphDefVersion(), opkernel.Graph().graph_def_versions.producer),
    ],
)
def test_results(call: Any, expected: Any) -> None:
    with tensorflow_test_kernels():
        assert call() == expected


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: raw_ops.TestAttr(T=opkernel.float64), NotFoundError),
        (lambda: raw_ops.SleepOp(sleep_seconds=[0, 1]), InvalidArgumentError),
        (lambda: raw_ops.GetDeadline(), InvalidArgumentError),
        (lambda: raw_ops.ConstructionFails(), InvalidArgumentError),
        (lambda: raw_ops.Old(), UnimplementedError),
    ],
)
def test_errors(call: Any, error: type[OpError]) -> None:
    with tensorflow_test_kernels(), pytest.raises(error):
        call()


def test_deadlines() -> None:
    with tensorflow_test_kernels():
        with opkernel.Graph().as_default() as graph:
            at = raw_ops.GetDeadline()
            asleep = raw_ops.SleepIdentityOp(sleep_seconds=100, input=np.int32(1))
        with opkernel.Session(graph) as session:
            long, short = (opkernel.RunOptions(timeout_in_ms=ms) for ms in (3_600_000, 1))
            assert session.run(at, options=long) > 1e15
            with pytest.raises(DeadlineExceededError):
                session.run(asleep, options=short)
