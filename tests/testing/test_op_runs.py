"""`run_op`: one node, its inputs, its outputs."""

import numpy as np
import pytest

from opkernel.errors import DataLossError, InternalError, InvalidArgumentError, NotFoundError
from opkernel.kernel import Step
from opkernel.kernel.async_op_kernel import AsyncOpKernel
from opkernel.kernel.context.inputs import ContextParams, TensorRef
from opkernel.kernel.op_kernel import OpKernel
from opkernel.opdef import NodeDefBuilder, fake_input, no_outputs, unknown_shape
from opkernel.testing import assert_outputs, make_kernel, run_kernel, run_op
from opkernel.types import float32


def test_attrs_follow_from_the_inputs_and_are_given_where_they_do_not():
    a = np.array([[1, 2], [3, 4]], np.float64)
    result = run_op("MatMul", [a, a], attrs={"transpose_b": True})
    assert_outputs(result, [[5.0, 11.0], [11.0, 25.0]])
    assert result.kernel.output_types[0].string == "double"
    assert result.by_name["product"] is result.outputs[0]


def test_inputs_may_be_named_and_lists_are_lists():
    result = run_op("ConcatV2", {"axis": np.int32(0), "values": [[1.0], [2.0, 3.0]]})
    assert_outputs(result, np.array([1, 2, 3], np.float32))
    split = run_op("Split", {"split_dim": 0, "value": [1.0, 2.0]}, attrs={"num_split": 2})
    assert [v.tolist() for v in split.by_name["output"]] == [[1.0], [2.0]]


def test_an_op_and_kernels_of_ones_own(ops):
    ops.op()
    ops.kernel()(lambda x: x + 1)
    ops.kernel(label="twice")(lambda x: 2 * x)
    x = np.array([3, 5], np.float32)
    assert_outputs(run_op("Copy", [x], **ops.options), [4, 6])
    assert_outputs(run_op("Copy", [x], attrs={"_kernel": "twice"}, **ops.options), [6, 10])


def test_a_reference_is_changed_in_place(ops):
    ops.op("Inc", inputs=["ref: Ref(float)"], outputs=["out: Ref(float)"], attrs=[])

    @ops.kernel("Inc")
    class Inc(OpKernel):
        def compute(self, ctx):
            with ctx.input_ref_mutex(0):
                ctx.mutable_input(0, lock_held=True)[...] += 1
            ctx.forward_ref_input_to_ref_output(0, 0)

    ref = TensorRef(np.array([1, 2], np.float32))
    result = run_op("Inc", [ref], **ops.options)
    assert result.outputs == [ref]
    assert ref.tensor.tolist() == [2, 3]
    assert run_op("Inc", [np.array([5], np.float32)], **ops.options).outputs[0].tensor.tolist() == [
        6
    ]


def test_asynchronous_kernels_are_waited_for(ops):
    ops.op()
    ops.op("Fails")

    @ops.kernel()
    async def copy(x):
        return x.copy()

    @ops.kernel("Fails")
    class Fails(AsyncOpKernel):
        def compute_async(self, ctx, done):
            ctx.requires_async(False, DataLossError("gone"), done)

    assert_outputs(run_op("Copy", [np.array([1], np.int32)], **ops.options), [1])
    with pytest.raises(DataLossError, match="gone"):
        run_op("Fails", [np.array([1], np.int32)], **ops.options)


def test_a_kernel_can_be_run_again_with_its_state(ops):
    ops.op("Count", inputs=[], outputs=["n: int32"], attrs=[], shape_fn=unknown_shape)

    @ops.kernel("Count")
    class Count(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            self.count = 0

        def compute(self, ctx):
            self.count += 1
            ctx.set_output(0, np.int32(self.count))

    kernel = make_kernel("Count", **ops.options)
    assert [int(run_kernel(kernel).outputs[0]) for _ in range(3)] == [1, 2, 3]


def test_step_and_params_reach_the_kernel_and_memory_is_recorded(ops):
    seen = []
    ops.op("Look", outputs=[], shape_fn=no_outputs)

    @ops.kernel("Look")
    class Look(OpKernel):
        def compute(self, ctx):
            seen.append((ctx.session_handle, ctx.is_input_dead))
            self.kept = ctx.allocate_temp(float32, (8,))

    step = Step()
    step.session_handle = "mine"
    kernel = make_kernel("Look", [1.0], **ops.options)
    run_kernel(kernel, [1.0], step=step, params=ContextParams(is_input_dead=True))
    assert seen == [("mine", True)]
    result = run_kernel(kernel, [1.0])
    assert result.context.temp_memory_allocated() == 32


def test_a_whole_node_can_be_given():
    node = NodeDefBuilder("n", "Cast").input(fake_input(float32)).attr("DstT", 3).finalize()
    assert_outputs(run_op("Cast", [[1.5, -2.5]], node_def=node), [1, -2])


@pytest.mark.parametrize(
    ("inputs", "attrs", "what"),
    [
        ([np.float32(1)], {}, "takes 2 input arguments"),
        ({"x": 1.0, "z": 1.0}, {}, "takes the inputs x, y"),
        ([np.float32(1), np.float64(1)], {}, "takes float"),
        ([1.0, 1.0], {"U": 1}, "no attr named 'U'"),
    ],
)
def test_inputs_and_attrs_that_do_not_fit_are_refused(inputs, attrs, what):
    with pytest.raises(InvalidArgumentError, match=what):
        run_op("AddV2", inputs, attrs=attrs)


def test_a_device_that_is_not_here_is_named():
    with pytest.raises(NotFoundError, match="no TPU here; there is CPU"):
        run_op("Relu", [1.0], device="TPU")


def test_what_a_kernel_raises_tells_the_node_and_its_inputs(ops):
    ops.op()

    @ops.kernel()
    def fails(x):
        raise KeyError("lost")

    with pytest.raises(InternalError, match=r"lost.*float32\[2\]"):
        run_op("Copy", [np.array([1, 2], np.float32)], **ops.options)


def test_the_cause_that_a_kernel_gives_is_kept(ops):
    ops.op()

    @ops.kernel()
    def reads(x):
        try:
            raise KeyError("key")
        except KeyError as error:
            raise DataLossError("the file is damaged") from error

    with pytest.raises(DataLossError) as caught:
        run_op("Copy", [np.array([3], np.float32)], **ops.options)
    assert isinstance(caught.value.__cause__, KeyError)
