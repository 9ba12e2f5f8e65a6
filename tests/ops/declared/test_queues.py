"""Shapes of ops on queues, barriers, accumulators and stacks. Expected values are TensorFlow's."""

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape, float32, int32

PAIR = {"component_types": [float32, int32]}
HELD = {0: [("[3]", float32), ("?", int32)]}


@pytest.mark.parametrize(
    ("op", "inputs", "held", "expected"),
    [
        ("QueueDequeueV2", ["[]"], HELD, "[3];?"),
        ("QueueDequeueV2", ["[]"], {}, "?;?"),
        ("QueueDequeueV2", ["[]"], {0: [("[3]", float32)]}, "?;?"),
        ("QueueDequeueManyV2", ["[]", "[]"], HELD, "[?,3];?"),
        ("QueueDequeueUpToV2", ["[]", "[]"], HELD, "[?,3];?"),
        ("QueueDequeueMany", ["[2]", "[]"], HELD, "?;?"),
        ("BarrierTakeMany", ["[7]", "[7]"], {}, "?;?;?;?"),
    ],
)
def test_components(infer_op, op, inputs, held, expected):
    assert infer_op(op, *inputs, attrs=PAIR, handles=held) == expected


def test_as_many_elements_as_the_constant_says(infer_op):
    def dequeue(n):
        known = {"attrs": PAIR, "handles": HELD, "constants": {1: n}}
        return infer_op("QueueDequeueManyV2", "[]", "[]", **known)

    assert dequeue(np.int32(5)) == "[5,3];?"
    with pytest.raises(InvalidArgumentError, match="must be >= 0, but is -1"):
        dequeue(np.int32(-1))
    with pytest.raises(InvalidArgumentError, match="scalar"):
        dequeue(np.zeros(0, np.int32))


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("FIFOQueue", PAIR, [], "[2]"),
        ("FIFOQueueV2", PAIR, [], "[]"),
        ("QueueSize", {}, ["?"], "[]"),
        ("QueueSizeV2", {}, ["[3]"], "in0"),
        (
            "ResourceConditionalAccumulator",
            {"dtype": float32, "shape": PartialTensorShape([1])},
            [],
            "[2]",
        ),
        ("AccumulatorTakeGradient", {"dtype": float32}, ["?", "[]"], "?"),
        ("StackV2", {"elem_type": float32}, ["[]"], "[2]"),
        ("StackPushV2", {"T": float32}, ["[]", "[2,3]"], "in1"),
        ("BarrierInsertMany", {"T": float32, "component_index": 0}, ["[2]", "[?]", "[3,4]"], ""),
    ],
)
def test_outputs(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs, attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "problem"),
    [
        ("QueueSize", {}, ["[3]"], "must be 2 but is 3"),
        ("QueueClose", {}, ["[]"], "must be rank 1 but is rank 0"),
        ("AccumulatorTakeGradient", {"dtype": float32}, ["?", "[1]"], "must be rank 0"),
        ("AccumulatorApplyGradient", {"dtype": float32}, ["?", "[1]", "?"], "must be rank 0"),
        ("BarrierInsertMany", {"T": float32, "component_index": 0}, ["?", "[2]", "[3]"], "2 and 3"),
        (
            "BarrierInsertMany",
            {"T": float32, "component_index": 0},
            ["?", "?", "[]"],
            "least rank 1",
        ),
    ],
)
def test_inputs_that_do_not_match_are_refused(infer_op, op, attrs, inputs, problem):
    with pytest.raises(InvalidArgumentError, match=problem):
        infer_op(op, *inputs, attrs=attrs)
