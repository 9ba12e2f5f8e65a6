"""OpKernelContext: inputs, outputs, references, forwarding, services, records of memory."""

import logging

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from opkernel.kernel import (
    NEVER_FORWARD,
    NO_RESERVATION,
    AllocatorAttributes,
    ContextParams,
    FrameAndIter,
    MemoryType,
    OpKernel,
    OpKernelContext,
    Step,
    TensorRef,
    allocation_limit,
    is_recycled,
    recycled,
)
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.types import float32, int32


class Tracked(Step):
    """A step that tracks allocations."""

    track_allocations = True


class Idle(OpKernel):
    """A kernel whose context the test works on."""

    def compute(self, ctx):
        """Do nothing."""


def context(inputs, declared, outputs=("out: float",), params=None, step=None):
    kernel = make_kernel(Idle, inputs=declared, outputs=outputs)
    return OpKernelContext(kernel, inputs, step or Step(), params or ContextParams())


def two_floats(a=None, b=None, **options):
    given = [np.ones(3, np.float32) if value is None else value for value in (a, b)]
    return context(given, ["a: float", "b: float"], **options)


class TestInputs:
    def test_by_index_and_by_name(self):
        ctx = two_floats(b=np.float32(2))
        assert ctx.num_inputs == 2
        assert ctx.input(1) == ctx.input("b") == 2
        assert ctx.input_dtype("a") is ctx.input_dtype(0) is float32
        assert ctx.input_memory_type("a") is MemoryType.DEVICE_MEMORY

    def test_unknown_names_are_refused(self):
        with pytest.raises(InvalidArgumentError, match="'c'"):
            two_floats().input_dtype("c")

    def test_lists(self):
        kernel = make_kernel(
            Idle, inputs=["xs: N * float"], outputs=["o: N * float"], attrs=["N: int = 1"]
        )
        ctx = OpKernelContext(kernel, [np.ones(2, np.float32)], Step())
        (only,) = ctx.input_list("xs")
        assert len(ctx.input_list("xs")) == 1
        assert only is ctx.input_list("xs")[0] is ctx.input_list("xs")[-1]
        with pytest.raises(IndexError, match="index 1"):
            ctx.input_list("xs")[1]

    def test_an_argument_that_is_no_list_counts_as_one_of_length_one(self):
        assert len(two_floats().input_list("a")) == 1

    def test_an_input_may_be_absent(self):
        ctx = context([None, np.float32(1)], ["a: float", "b: float"])
        assert [ctx.has_input(i) for i in range(2)] == [False, True]

    def test_same_shapes(self):
        two_floats().validate_inputs_are_same_shape()
        with pytest.raises(InvalidArgumentError, match=r"\[3\] != input 1: \[2,2\]"):
            two_floats(b=np.ones((2, 2), np.float32)).validate_inputs_are_same_shape()

    def test_match_signature(self):
        ctx = two_floats()
        ctx.match_signature([float32, float32], [float32])
        with pytest.raises(InvalidArgumentError, match="float, float->float expected: int32"):
            ctx.match_signature([int32], [float32])


class TestOutputs:
    def test_set_and_release(self):
        ctx, value = two_floats(), np.ones(2, np.float32)
        assert ctx.mutable_output("out") is None
        ctx.set_output("out", value)
        assert ctx.mutable_output(0) is value
        assert ctx.release_output(0) is value
        assert ctx.mutable_output(0) is None

    def test_numbers_become_arrays_of_the_output_type(self):
        ctx = two_floats()
        ctx.set_output(0, [1, 2])
        assert ctx.outputs[0].dtype == np.float32

    def test_the_type_must_be_the_declared_one(self):
        with pytest.raises(InternalError, match="output 0 must be float, the kernel set int64"):
            two_floats().set_output(0, np.ones(2, np.int64))

    def test_a_list_is_set_one_by_one(self):
        kernel = make_kernel(Idle, outputs=["o: N * float"], attrs=["N: int = 3"])
        ctx = OpKernelContext(kernel, [], Step())
        outputs = ctx.output_list("o")
        outputs.set(0, np.float32(7))
        outputs.allocate(2, [2])[...] = 5
        assert (len(outputs), outputs.expected_output_dtype(1)) == (3, float32)
        assert outputs[1] is None
        assert ctx.outputs[0] == 7
        assert ctx.outputs[2].tolist() == [5, 5]

    def test_only_required_outputs_must_be_set(self):
        with pytest.raises(InternalError, match="did not set output 0"):
            two_floats().finish()
        ctx = two_floats(params=ContextParams(outputs_required=[False]))
        assert ctx.output_required("out") is False
        assert ctx.finish() == [None]


class TestReferences:
    def refs(self, **options):
        ref = TensorRef(np.zeros(2, np.float32))
        declared = {"declared": ["r: Ref(float)"], "outputs": ["o: Ref(float)"]}
        return ref, context([ref], **declared, **options)

    def test_a_reference_is_changed_in_place(self):
        ref, ctx = self.refs()
        with ctx.input_ref_mutex("r"):
            ctx.mutable_input("r", lock_held=True)[0] = 4
        assert ref.tensor.tolist() == [4, 0]
        assert ctx.input_is_ref(0)

    def test_what_a_reference_holds_is_replaced_and_deleted(self):
        ref, ctx = self.refs()
        ctx.replace_ref_input("r", np.ones(3, np.float32))
        assert ref.tensor.shape == (3,)
        ctx.delete_ref_input(0)
        assert not ref.is_initialized
        assert ctx.mutable_input(0) is None

    def test_lists_of_references(self):
        ref, ctx = self.refs()
        refs = ctx.mutable_input_list("r")
        assert refs.at(0) is ref.tensor
        assert refs.ref_mutex(0) is ref.mutex

    def test_a_reference_is_passed_on(self):
        ref, ctx = self.refs()
        ctx.forward_ref_input_to_ref_output("r", "o")
        assert ctx.finish() == [ref]

    def test_values_are_no_references(self):
        ctx = two_floats()
        with pytest.raises(InternalError, match="input 0 is not a reference: float"):
            ctx.mutable_input(0)
        with pytest.raises(InternalError, match="not of a reference type"):
            ctx.set_output_ref(0, TensorRef())


class TestForwarding:
    def test_a_buffer_that_nobody_else_has_is_taken_over(self):
        ctx = context([np.arange(4, dtype=np.float32)], ["a: float"])
        out, index = ctx.forward_input_or_allocate_output(["a"], "out", [2, 2])
        assert index == 0
        assert out.tolist() == [[0, 1], [2, 3]]
        assert np.shares_memory(out, ctx.input(0))

    def test_a_buffer_that_is_used_elsewhere_is_not(self):
        kept = np.ones(4, np.float32)
        ctx = context([kept], ["a: float"])
        out, index = ctx.forward_input_or_allocate_output([0], 0, [4])
        assert index == -1
        assert not np.shares_memory(out, kept)

    def test_a_buffer_is_taken_over_once(self):
        ctx = context([np.ones(4, np.float32)], ["a: float"], outputs=["o: float", "p: float"])
        assert ctx.forward_input_to_output_with_shape(0, 0, [4]) is not None
        assert ctx.forward_input_to_output_with_shape(0, 1, [4]) is None

    @pytest.mark.parametrize(
        "make",
        [
            lambda: np.broadcast_to(np.float32(1), 4),
            lambda: np.ones(8, np.float32)[::2],
            lambda: np.ones(5, np.float32),
            lambda: np.float32(1),
            lambda: np.asfortranarray(np.ones((2, 2), np.float32)),
        ],
        ids=["read-only", "a view", "another size", "a scalar", "another order"],
    )
    def test_what_cannot_be_written_to_as_it_is_stays(self, make):
        ctx = context([make()], ["a: float"])
        assert ctx.forward_input_to_output_with_shape(0, 0, [4]) is None

    def test_the_type_must_be_the_same(self):
        ctx = context([np.ones(4, np.int32)], ["a: int32"])
        assert ctx.forward_input_to_output_with_shape(0, 0, [4]) is None
        assert ctx.forward_input_or_allocate_temp([0], int32, [4]) is not None

    def test_a_kernel_without_outputs_may_work_in_its_inputs_buffer(self):
        ctx = context([np.ones(4, np.float32)], ["a: float"], outputs=[])
        assert ctx.forward_input(0, NO_RESERVATION, float32, [4]) is not None

    def test_the_memory_of_large_results_is_taken_for_good(self):
        ctx = context([recycled((8 << 20,), np.dtype(np.float32))], ["a: float"])
        assert is_recycled(ctx.inputs[0])
        assert ctx.forward_input(0, NO_RESERVATION, float32, [8 << 20]) is not None
        assert not is_recycled(ctx.inputs[0])

    @pytest.mark.parametrize(
        ("forward_from", "taken"),
        [
            ([NO_RESERVATION, NO_RESERVATION], True),
            ([0, NO_RESERVATION], True),
            ([NEVER_FORWARD, NO_RESERVATION], False),
            ([NO_RESERVATION, 0], False),
        ],
    )
    def test_reservations(self, forward_from, taken):
        ctx = context(
            [np.ones(4, np.float32)],
            ["a: float"],
            outputs=["o: float", "p: float"],
            params=ContextParams(forward_from=forward_from),
        )
        assert (ctx.forward_input_to_output_with_shape(0, 0, [4]) is not None) is taken

    def test_an_output_that_expects_an_input_is_not_allocated(self):
        kept = np.ones(4, np.float32)
        ctx = context([kept], ["a: float"], params=ContextParams(forward_from=[0]))
        assert ctx.output_expects_forwarding("out")
        with pytest.raises(InternalError, match="expects an input to be forwarded"):
            ctx.forward_input_or_allocate_output([0], 0, [4])

    def test_memory_of_another_kind_is_not_taken(self):
        attrs = [AllocatorAttributes(on_host=True)]
        params = ContextParams(input_alloc_attrs=[AllocatorAttributes()], output_attr_array=attrs)
        ctx = context([np.ones(4, np.float32)], ["a: float"], params=params)
        assert ctx.forward_input_to_output_with_shape(0, 0, [4]) is None
        assert ctx.output_alloc_attr(0).on_host


class TestServices:
    def test_what_a_step_offers(self):
        class MyStep(Step):
            step_id = 7
            session_handle = "s"
            executor_type = "MINE"

        ctx = two_floats(step=MyStep())
        assert (ctx.step_id, ctx.session_handle, ctx.executor_type) == (7, "s", "MINE")
        assert ctx.rendezvous is ctx.collective_executor is ctx.cancellation_manager is None

    def test_the_place_in_the_graph(self):
        params = ContextParams(FrameAndIter(3, 5), is_input_dead=True, stack_trace=["model.py:3"])
        ctx = two_floats(params=params)
        assert (ctx.frame_iter.frame_id, ctx.frame_iter.iter_id) == (3, 5)
        assert ctx.is_input_dead
        assert ctx.stack_trace == ["model.py:3"]
        assert ctx.op_kernel.name == "n"
        assert ctx.device.device_type == "CPU"

    def test_deferred_kernels_count_their_work(self):
        class Deferred(OpKernel):
            def __init__(self, construction):
                super().__init__(construction, is_deferred=True)

        running = []
        params = ContextParams(
            inc_num_deferred_ops_function=lambda: running.append(1),
            dec_num_deferred_ops_function=running.clear,
        )
        ctx = OpKernelContext(make_kernel(Deferred), [], Step(), params)
        ctx.inc_num_deferred_ops_function()()
        assert running == [1]
        ctx.dec_num_deferred_ops_function()()
        assert running == []
        with pytest.raises(FailedPreconditionError, match="not a deferred kernel"):
            two_floats().inc_num_deferred_ops_function()


class TestMemory:
    def test_nothing_is_recorded_unless_asked_for(self):
        ctx = two_floats()
        ctx.allocate_temp(float32, [100])
        assert not ctx.track_allocations
        assert ctx.temp_memory_allocated() == 0

    def test_temporary_and_persistent_memory(self):
        ctx = two_floats(step=Tracked())
        temp = ctx.allocate_temp(float32, [100])
        assert ctx.temp_memory_allocated() == temp.nbytes == 400
        ctx.record_persistent_memory_allocation(64, alloc_id=5)
        ctx.record_persistent_memory_allocation(8, memory_type=MemoryType.HOST_MEMORY)
        assert ctx.persistent_memory_allocated() == 72
        assert ctx.persistent_memory_allocated(MemoryType.HOST_MEMORY) == 8
        assert ctx.persistent_alloc_ids() == [5]
        ctx.clear_recorded_memory()
        assert ctx.temp_memory_allocated() == ctx.persistent_memory_allocated() == 0

    def test_temporary_memory_that_becomes_an_output_is_none(self):
        ctx = two_floats(step=Tracked())
        ctx.set_output(0, ctx.allocate_temp(float32, [100]))
        assert ctx.temp_memory_allocated() == 0

    def test_the_kernel_may_be_asked_to_record(self):
        ctx = two_floats()
        ctx.set_record_memory_consumption(True)
        ctx.allocate_temp(float32, [100])
        ctx.record_temp_memory_allocation(24, np.empty(3))
        assert ctx.temp_memory_allocated() == 424
        ctx.set_record_memory_consumption(False)
        assert ctx.temp_memory_allocated() == 0

    def test_allocators_are_followed_once_each(self):
        ctx = two_floats(step=Tracked())
        array = ctx.allocate_output(0, [100])
        ((allocator, wrapper),) = ctx.consume_wrapped_allocators()
        assert allocator is ctx.device.get_allocator(AllocatorAttributes())
        assert wrapper.get_sizes().total == array.nbytes == 400
        assert ctx.consume_wrapped_allocators() == []
        assert two_floats().consume_wrapped_allocators() == []

    def test_tensors_are_kept_until_work_on_them_is_over(self):
        ctx, other = two_floats(step=Tracked()), np.ones(1)
        temp = ctx.allocate_temp(float32, [2])
        ctx.record_tensor_reference(other)
        kept = ctx.retrieve_accessed_tensors()
        assert [id(one) for one in kept] == [id(one) for one in (*ctx.inputs, temp, other)]
        assert len(ctx.retrieve_accessed_tensors()) == 2
        assert two_floats().retrieve_accessed_tensors() == []

    def test_allocations_are_logged(self, caplog):
        class Logged(Step):
            step_id = 7
            log_memory = True

        with caplog.at_level(logging.INFO, "opkernel.memory"):
            two_floats(step=Logged()).allocate_output("out", [2, 3])
        assert "step 7, n: float[2, 3], 24 bytes from cpu" in caplog.text

    def test_memory_of_a_kind_comes_from_the_allocator_of_the_device(self):
        params = ContextParams(output_attr_array=[AllocatorAttributes(on_host=True)])
        ctx = two_floats(params=params)
        allocator = ctx.device.get_allocator(AllocatorAttributes())
        count = allocator.get_stats().num_allocs
        for array in (
            ctx.allocate_output(0, [2]),
            ctx.allocate_temp(float32, [2], AllocatorAttributes(gpu_compatible=True)),
        ):
            assert allocator.requested_size(array) == 8
        assert allocator.get_stats().num_allocs == count + 2

    @pytest.mark.parametrize("shape", [(), (0,), (2, 3), [2, 3], np.array([2, 3]), (3, 0, 2**40)])
    def test_outputs_of_any_shape(self, shape):
        array = two_floats().allocate_output(0, shape)
        assert array.shape == tuple(shape)
        assert array.dtype == np.float32

    @pytest.mark.parametrize("shape", [[-2, -3], [2**32 + 1, 2**32 + 1], [-1]])
    def test_shapes_that_are_none(self, shape):
        with pytest.raises(InvalidArgumentError):
            two_floats().allocate_output(0, shape)

    def test_outputs_that_are_too_large(self):
        with allocation_limit(8), pytest.raises(ResourceExhaustedError, match=r"shape\[3\]"):
            two_floats().allocate_output(0, [3])


def test_a_kernel_as_a_function_of_the_step_has_a_whole_context():
    class Looks(OpKernel):
        def compute(self, ctx):
            seen.append(ctx)
            ctx.set_output(0, ctx.input(0))

    seen: list[OpKernelContext] = []
    kernel = make_kernel(Looks, inputs=["a: float"], outputs=["out: float"])
    step = Tracked()
    assert function_of_step(kernel)(step, (np.float32(1),)) == [1]
    made = OpKernelContext(kernel, (np.float32(1),), step)
    made.run()
    for slots in (getattr(base, "__slots__", ()) for base in OpKernelContext.__mro__):
        for slot in slots:
            given, expected = (getattr(ctx, slot) for ctx in seen)
            assert given == expected or type(given) is type(expected), slot


class TestStatus:
    def test_requires(self):
        ctx = two_floats()
        ctx.requires(True, "never")
        with pytest.raises(InvalidArgumentError, match="a must be small"):
            ctx.requires(False, "a must be small")
        ctx.requires_ok(None)
        with pytest.raises(InternalError, match="broken"):
            ctx.requires_ok(InternalError("broken"))

    def test_the_first_recorded_error_counts(self):
        ctx = two_floats()
        ctx.set_status(InvalidArgumentError("first"))
        ctx.set_status(InvalidArgumentError("second"))
        assert str(ctx.status) == "first"
        with pytest.raises(InvalidArgumentError, match="first"):
            ctx.finish()

    def test_a_recorded_failure_tells_its_place(self, caplog):
        ctx = two_floats()
        with caplog.at_level(logging.DEBUG, "opkernel.kernel"):
            ctx.ctx_failure("wrong")
        assert __file__ in ctx.status.__notes__[0]
        (record,) = caplog.records
        assert (record.levelno, record.pathname) == (logging.DEBUG, __file__)

    def test_a_failure_with_a_warning(self, caplog):
        ctx = two_floats()
        ctx.ctx_failure_with_warning(InternalError("very wrong"))
        assert "INTERNAL: very wrong" in caplog.text
        assert ctx.status.code.name == "INTERNAL"
