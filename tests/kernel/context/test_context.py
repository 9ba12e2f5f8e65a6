"""OpKernelContext: inputs, outputs, references, forwarding, services, records of memory."""

import logging

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel import Permissions
from opkernel.device.local_device import LocalDevice
from opkernel.device.permissions import PROGRAM
from opkernel.device.scoped_allocator import populate_fields
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
    CpuAllocator,
    FrameAndIter,
    KernelContract,
    MemoryType,
    OpKernel,
    OpKernelContext,
    ResourceMgr,
    Step,
    TensorRef,
    allocating_from,
    allocation_limit,
    is_recycled,
    recycled,
)
from opkernel.kernel.context.op_kernel_context import function_of_step
from opkernel.types import float32, float64, int32


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


class TestOutputsByArgument:
    """Outputs of an op with a list argument between two others."""

    def context(self, **options):
        kernel = make_kernel(
            Idle,
            outputs=["a: float", "bs: N * int32", "c: double"],
            attrs=["N: int = 2"],
        )
        return OpKernelContext(kernel, [], Step(), ContextParams(**options))

    def test_all_are_set_at_once(self):
        ctx = self.context()
        ctx.set_outputs_by_arg([1.5, [2, 3], np.float64(4)])
        assert [np.asarray(value).tolist() for value in ctx.finish()] == [1.5, 2, 3, 4.0]
        assert [value.dtype.name for value in ctx.finish()] == [
            *("float32", "int32", "int32", "float64"),
        ]

    @pytest.mark.parametrize("values", [[], [1.0, [2, 3]], [1.0, 2, 3, 4.0]])
    def test_each_argument_has_one_entry(self, values):
        with pytest.raises(
            InternalError, match=f"3 outputs expected, the kernel gave {len(values)}"
        ):
            self.context().set_outputs_by_arg(values)

    @pytest.mark.parametrize("which", [4, 9])
    def test_there_are_no_others(self, which):
        with pytest.raises(InternalError, match=f"sets output {which}, and its op has 4"):
            self.context().set_output(which, np.float32(1))

    def test_nothing_is_no_output(self):
        with pytest.raises(InternalError, match="output 1 must be int32, the kernel set None"):
            self.context().set_output(1, None)

    @pytest.mark.parametrize("tensors", [[np.int32(1)], [np.int32(1)] * 3])
    def test_a_list_has_its_length(self, tensors):
        with pytest.raises(InternalError, match=f"'bs' takes 2 tensors, got {len(tensors)}"):
            self.context().set_output_list("bs", tensors)

    def test_where_they_live_and_what_they_are(self):
        ctx = self.context()
        assert ctx.num_outputs == 4
        assert [ctx.expected_output_dtype(which) for which in (0, 2, "c")] == [
            *(float32, int32, float64),
        ]
        assert ctx.output_memory_type("c") is ctx.output_memory_type(1) is MemoryType.DEVICE_MEMORY
        with pytest.raises(InvalidArgumentError, match="'bs' is a list of 2 tensors"):
            ctx.output_memory_type("bs")

    def test_a_list_knows_which_of_its_tensors_are_required(self):
        ctx = self.context(outputs_required=[False, True, False, True])
        outputs = ctx.output_list("bs")
        assert [outputs.required(index) for index in range(2)] == [True, False]
        assert [ctx.output_required(index) for index in range(4)] == [False, True, False, True]
        with pytest.raises(InternalError, match="did not set output 1"):
            ctx.finish()
        outputs.set(0, np.int32(1))
        with pytest.raises(InternalError, match="did not set output 3"):
            ctx.finish()
        ctx.set_output("c", 1.0)
        assert ctx.finish() == [None, 1, None, 1.0]

    @pytest.mark.parametrize("index", [-3, 2])
    def test_a_list_has_no_other_places(self, index):
        outputs = self.context().output_list("bs")
        for use in (outputs.__getitem__, outputs.required, lambda i: outputs.set(i, np.int32(1))):
            with pytest.raises(IndexError, match=f"index {index} of a list argument of 2 tensors"):
                use(index)

    def test_a_list_counts_from_its_end_too(self):
        ctx = self.context()
        ctx.output_list("bs").set(-1, np.int32(7))
        ctx.output_list("bs").set(-2, np.int32(6))
        assert ctx.outputs == [None, 6, 7, None]

    def test_an_output_of_one_dtype_object_is_taken_as_it_is(self):
        ctx, value = self.context(), np.ones(2, np.float32)
        ctx.set_output(0, value)
        assert ctx.outputs[0] is value
        with pytest.raises(InternalError, match="output 1 must be int32, the kernel set float32"):
            ctx.set_output(1, value)


class TestInputsByArgument:
    def test_a_list_is_one_entry(self):
        kernel = make_kernel(
            Idle, inputs=["xs: N * float"], outputs=["o: float"], attrs=["N: int = 1"]
        )
        assert OpKernelContext(kernel, [np.float32(1)], Step()).inputs_by_arg() == [[1]]
        assert two_floats(np.float32(1), np.float32(2)).inputs_by_arg() == [1, 2]

    def test_slices_of_lists(self):
        kernel = make_kernel(
            Idle, inputs=["xs: N * float"], outputs=["o: float"], attrs=["N: int = 1"]
        )
        ctx = OpKernelContext(kernel, [np.float32(1)], Step())
        assert ctx.input_list("xs")[:] == [1]
        assert ctx.input_list("xs")[1:] == []


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

    def test_a_list_of_outputs_takes_references(self):
        ref, ctx = self.refs()
        ctx.output_list("o").set_ref(0, ref)
        assert ctx.outputs == [ref]

    @pytest.mark.parametrize(
        ("tensor", "what"),
        [
            (TensorRef(np.zeros(2)), "a reference to float64"),
            (np.zeros(2, np.float32), "one array"),
            (None, "None"),
        ],
    )
    def test_another_reference_is_refused(self, tensor, what):
        _, ctx = self.refs()
        with pytest.raises(
            InternalError, match=f"output 0 must be float_ref, the kernel set {what}"
        ):
            ctx.set_output_ref("o", tensor)

    def test_a_reference_that_has_no_value_yet_is_of_the_declared_type(self):
        _, ctx = self.refs()
        empty = TensorRef(declared_shape=(2, 3))
        ctx.set_output_ref(0, empty)
        assert ctx.outputs == [empty]
        assert (empty.shape, empty.is_initialized) == ((2, 3), False)

    def test_each_value_of_a_reference_has_a_version(self):
        ref = TensorRef()
        versions = [ref.version]
        for value in (np.zeros((4, 5)), np.zeros(1), None):
            ref.replace(value)
            versions.append(ref.version)
            assert ref.shape == (() if value is None else value.shape)
        assert len({*versions}) == 4

    def test_the_lock_is_taken_unless_the_caller_holds_it(self):
        class Lock:
            taken = 0

            def __enter__(self):
                self.taken += 1

            def __exit__(self, *_):
                pass

        lock = Lock()
        ref = TensorRef(np.zeros(2, np.float32), lock)
        ctx = context([ref], ["r: Ref(float)"], ["o: Ref(float)"])
        for lock_held, taken in ((True, 0), (False, 3)):
            ctx.mutable_input("r", lock_held=lock_held)
            ctx.replace_ref_input("r", np.ones(2, np.float32), lock_held=lock_held)
            ctx.mutable_input_list("r").at(0, lock_held=lock_held)
            assert lock.taken == taken
        ctx.delete_ref_input("r", lock_held=True)
        assert lock.taken == 3

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

    def test_an_input_that_is_reserved_for_another_output_is_no_memory_to_work_in(self):
        for forward_from, taken in (
            ([NO_RESERVATION], True),
            ([NEVER_FORWARD], True),
            ([0], False),
        ):
            params = ContextParams(forward_from=forward_from)
            ctx = context([np.ones(4, np.float32)], ["a: float"], params=params)
            found = ctx.forward_input(0, NO_RESERVATION, float32, [4])
            assert (found is not None) is taken

    def test_only_a_reservation_is_expected(self):
        for forward_from, expects in ((None, False), ([NO_RESERVATION], False), ([0], True)):
            ctx = two_floats(params=ContextParams(forward_from=forward_from))
            assert ctx.output_expects_forwarding("out") is expects

    def test_the_first_candidate_that_may_be_taken_is(self):
        kept = np.zeros(4, np.float32)
        inputs = [kept, np.ones(5, np.float32), np.full(4, 2, np.float32)]
        ctx = context(inputs, ["a: float", "b: float", "c: float"])
        del inputs
        out, index = ctx.forward_input_or_allocate_output(["a", 1, "c"], 0, [4])
        assert index == 2
        assert out.tolist() == [2] * 4

    def test_memory_to_work_in_is_an_input_s_or_new(self):
        kept = np.zeros(4, np.float32)
        ctx = context([kept, np.full(4, 2, np.float32)], ["a: float", "b: float"])
        assert (
            ctx.forward_input_or_allocate_temp(["a", "b"], float32, [2, 2]).tolist() == [[2, 2]] * 2
        )
        temp = ctx.forward_input_or_allocate_temp(["a"], float32, [4])
        assert temp.shape == (4,)
        assert not np.shares_memory(temp, kept)

    def test_an_input_becomes_a_kernel_s_own(self):
        ctx = context([np.ones(4, np.float32)], ["a: float"])
        own = ctx.own_input("a")
        assert own is ctx.inputs[0]
        kept = np.ones((2, 2), np.float32).T
        ctx = context([kept], ["a: float"])
        own = ctx.own_input(0)
        assert not np.shares_memory(own, kept)
        assert own.flags.c_contiguous
        assert own.tolist() == kept.tolist()

    @pytest.mark.parametrize(
        ("output", "given", "fits"),
        [
            (AllocatorAttributes(), AllocatorAttributes(), True),
            (AllocatorAttributes(), AllocatorAttributes(gpu_compatible=True), True),
            (AllocatorAttributes(gpu_compatible=True), AllocatorAttributes(), False),
        ],
    )
    def test_memory_that_grants_more_is_taken(self, output, given, fits):
        for explicit in (False, True):
            params = ContextParams(
                input_alloc_attrs=[given], output_attr_array=None if explicit else [output]
            )
            ctx = context([np.ones(4, np.float32)], ["a: float"], params=params)
            attr = output if explicit else None
            found = ctx.forward_input(0, 0, float32, [4], output_attr=attr)
            assert (found is not None) is fits

    @pytest.mark.parametrize(
        ("memory_type", "fits"), [(None, True), (MemoryType.DEVICE_MEMORY, True),
                                  (MemoryType.HOST_MEMORY, False)],
    )  # fmt: skip
    def test_memory_of_the_host_is_none_of_the_device(self, memory_type, fits):
        for output in (0, NO_RESERVATION):
            ctx = context([np.ones(4, np.float32)], ["a: float"])
            found = ctx.forward_input(0, output, float32, [4], memory_type)
            assert (found is not None) is fits

    @pytest.mark.parametrize("output", [0, 1])
    def test_an_output_of_the_host_takes_memory_of_the_host(self, output):
        host, own = MemoryType.HOST_MEMORY, MemoryType.DEVICE_MEMORY
        for given, wanted, fits in (
            (own, own, True), (host, host, True), (own, host, False), (host, own, False),
        ):  # fmt: skip
            declared = {"outputs": ["o: float", "p: float"]}
            ctx = context([np.ones(4, np.float32)], ["a: float"], **declared)
            ctx.kernel.input_memory_types = (given,)
            ctx.kernel.output_memory_types = (wanted, wanted)
            found = ctx.forward_input_to_output_with_shape(0, output, [4])
            assert (found is not None) is fits

    def test_variants_become_a_kernel_s_own_where_they_may_still_be_written_to(self):
        fed = np.zeros(2, np.float32)[...]
        fed.setflags(write=False)
        kept = np.empty((), object)
        kept[()] = fed
        ctx = context([kept], ["a: variant"])
        own = ctx.own_input("a")
        assert own is not kept
        assert own.dtype == object

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

    def test_a_step_that_nobody_fills_in_offers_nothing(self):
        ctx = two_floats()
        assert (ctx.step_id, ctx.start_time_usecs, ctx.session_handle) == (0, 0, "")
        assert (ctx.deadline, ctx.session_state, ctx.tensor_store, ctx.runner) == (None,) * 4
        assert (ctx.executor_type, ctx.run_all_kernels_inline, ctx.track_allocations) == (
            *("", False, False),
        )
        ctx.step.check()  # nobody stops it

    def test_the_place_in_the_graph(self):
        params = ContextParams(FrameAndIter(3, 5), is_input_dead=True, stack_trace=["model.py:3"])
        ctx = two_floats(params=params)
        assert (ctx.frame_iter.frame_id, ctx.frame_iter.iter_id) == (3, 5)
        assert ctx.is_input_dead
        assert ctx.stack_trace == ["model.py:3"]
        assert ctx.op_kernel.name == "n"
        assert ctx.device.device_type == "CPU"

    def test_resources_are_those_of_the_step_or_of_the_device(self):
        ctx = two_floats()
        assert ctx.resource_manager is ctx.device.resource_manager
        step = Step()
        step.resource_manager = ResourceMgr()
        assert two_floats(step=step).resource_manager is step.resource_manager

    def test_a_node_may_do_what_its_step_lets_nodes_of_its_origin_do(self):
        step = Step()
        step.permissions = Permissions(read=["/others"])
        step.program_permissions = Permissions(read=["/program"])
        ctx = two_floats(step=step)
        assert ctx.permissions == step.permissions
        ctx.kernel.node_def.attr["_origin"].s = PROGRAM
        assert ctx.permissions == step.program_permissions

    def test_where_a_node_was_defined_is_known_from_the_executor_the_graph_or_the_step(self):
        step = Step()
        step.stack_trace = ["eager.py:1"]
        ctx = two_floats(step=step)
        assert ctx.stack_trace == ["eager.py:1"]
        ctx.kernel.node_traceback = lambda: ["graph.py:2"]
        assert ctx.stack_trace == ["graph.py:2"]
        ctx.params.stack_trace = ["executor.py:3"]
        assert ctx.stack_trace == ["executor.py:3"]

    def test_device_contexts_are_the_executor_s_or_the_device_s(self):
        class Other(LocalDevice):
            def try_get_device_context(self):
                return "of the device"

        kernel = make_kernel(
            Idle, inputs=["a: float", "b: float"], outputs=["o: float"], device=Other("CPU", np)
        )

        def contexts(**params):
            ctx = OpKernelContext(kernel, [X, X], Step(), ContextParams(**params))
            return ctx.op_device_context, [ctx.input_device_context(index) for index in range(2)]

        X = np.float32(1)
        assert contexts() == ("of the device", ["of the device"] * 2)
        assert contexts(op_device_context="own") == ("own", ["own"] * 2)
        assert contexts(input_device_contexts=["a", "b"]) == ("of the device", ["a", "b"])

    def test_memory_of_the_cpu_is_the_host_s(self):
        on_gpu = make_kernel(Idle, outputs=["o: float"])
        on_gpu.device = LocalDevice("GPU", np)
        for device, wish, is_host in (
            ("CPU", AllocatorAttributes(), True),
            ("GPU", AllocatorAttributes(), False),
            ("GPU", AllocatorAttributes(on_host=True), True),
        ):
            ctx = two_floats() if device == "CPU" else OpKernelContext(on_gpu, [], Step())
            assert ctx.allocate_on_host(wish) is is_host

    def test_where_inputs_were_allocated(self):
        assert two_floats().input_alloc_attr(1) == AllocatorAttributes()
        attrs = [AllocatorAttributes(), AllocatorAttributes(on_host=True)]
        ctx = two_floats(params=ContextParams(input_alloc_attrs=attrs))
        assert [ctx.input_alloc_attr(index) for index in range(2)] == attrs

    @pytest.mark.parametrize("what", ["call_frame", "executor_type"])
    def test_a_kernel_that_claims_to_ignore_its_call_may_not_ask(self, what):
        step = Step()
        step.call_frame, step.executor_type = "arguments", "MINE"
        contract = KernelContract(ignores_call=True)
        kernel = make_kernel(Idle, outputs=["o: float"], contract=contract)
        with pytest.raises(InternalError, match=f"asks for the {what}, though it claims"):
            getattr(OpKernelContext(kernel, [], step), what)
        kernel = make_kernel(Idle, outputs=["o: float"])
        assert getattr(OpKernelContext(kernel, [], step), what) == getattr(step, what)

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
        ctx.record_persistent_memory_allocation(8, 7, MemoryType.HOST_MEMORY)
        assert ctx.persistent_alloc_ids() == [5, 7]
        assert ctx.persistent_alloc_ids(MemoryType.HOST_MEMORY) == [7]
        assert ctx.persistent_alloc_ids(MemoryType.DEVICE_MEMORY) == [5]
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

    def test_a_step_that_tracks_allocations_goes_on_recording(self):
        ctx = two_floats(step=Tracked())
        ctx.allocate_temp(float32, [100])
        ctx.set_record_memory_consumption(False)
        ctx.set_record_memory_consumption(True)
        assert ctx.temp_memory_allocated() == 400

    def test_recording_again_forgets_nothing(self):
        ctx = two_floats()
        ctx.set_record_memory_consumption(True)
        ctx.allocate_temp(float32, [100])
        ctx.set_record_memory_consumption(True)
        assert ctx.temp_memory_allocated() == 400

    def test_persistent_memory_is_recorded_by_where_it_is(self):
        ctx = two_floats(step=Tracked())
        tensor = ctx.allocate_persistent(float32, [25])
        assert ctx.persistent_memory_allocated(MemoryType.HOST_MEMORY) == 100
        assert ctx.persistent_memory_allocated(MemoryType.DEVICE_MEMORY) == 0
        assert len(ctx.persistent_alloc_ids()) == 1
        ctx.record_persistent_memory_allocation(-100, memory_type=MemoryType.HOST_MEMORY)
        assert ctx.persistent_memory_allocated() == 0
        assert len(ctx.persistent_alloc_ids()) == 1
        assert (tensor.num_elements, tensor.allocated_bytes) == (25, 100)

    @pytest.mark.parametrize("number", [0, 5])
    def test_numbers_of_persistent_memory_begin_at_0(self, number):
        ctx = two_floats(step=Tracked())
        ctx.record_persistent_memory_allocation(8, number)
        ctx.record_persistent_memory_allocation(8)
        assert ctx.persistent_alloc_ids() == [number]
        assert ctx.persistent_memory_allocated(MemoryType.DEVICE_MEMORY) == 16

    def test_a_step_that_only_logs_follows_no_allocator(self):
        class Logged(Step):
            log_memory = True

        ctx = two_floats(step=Logged())
        ctx.allocate_temp(float32, [100])
        assert ctx.temp_memory_allocated() == 400
        assert ctx.consume_wrapped_allocators() == []

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


class TestFieldsOfAnArray:
    """Memory of a scope: a field of an array of the step, which AllocatorAttributes name."""

    STEP = 7

    class Numbered(Step):
        step_id = 7

    def context(self, *sizes):
        device = LocalDevice("CPU", np)
        mgr = device.scoped_allocator_mgr
        assert mgr is not None
        backing = np.zeros(16 * len(sizes), np.float32)
        fields = populate_fields(10, [(size,) for size in sizes], float32)
        mgr.get_container(self.STEP).add_scoped_allocator(backing, 10, "sa", fields, 9)
        kernel = make_kernel(Idle, outputs=["o: float", "p: float"], device=device)
        return OpKernelContext(kernel, [], self.Numbered()), backing

    def test_an_output_is_allocated_in_it_once(self):
        ctx, backing = self.context(3, 3)
        for index, scope_id in enumerate((11, 12)):
            attr = AllocatorAttributes(scope_id=scope_id)
            ctx.allocate_output(index, [3], attr)[...] = scope_id
            assert np.shares_memory(ctx.outputs[index], backing)
            with pytest.raises(
                InternalError,
                match=f"OpKernel n called allocate_output at index {index} with scope_id {scope_id} more",
            ):
                ctx.allocate_output(index, [3], attr)
        assert backing[:3].tolist() == [11] * 3
        assert backing[16:19].tolist() == [12] * 3
        assert {key: value.tolist() for key, value in ctx.scoped_outputs().items()} == {
            11: [11] * 3,
            12: [12] * 3,
        }

    def test_a_computation_may_be_told_by_its_executor(self):
        ctx, backing = self.context(3)
        ctx.params = ContextParams(
            output_attr_array=[AllocatorAttributes(scope_id=11), AllocatorAttributes()]
        )
        ctx.allocate_output("o", [3])[...] = 5
        ctx.allocate_output("p", [3])[...] = 6
        assert backing[:3].tolist() == [5] * 3
        assert ctx.outputs[1].tolist() == [6] * 3
        assert not np.shares_memory(ctx.outputs[1], backing)

    def test_memory_to_work_in_is_of_no_scope(self):
        ctx, backing = self.context(3)
        for scope_id in (1, 11):
            attr = AllocatorAttributes(on_host=True, scope_id=scope_id)
            assert not np.shares_memory(ctx.allocate_temp(float32, [3], attr), backing)

    def test_a_scope_has_an_allocator(self):
        ctx, _ = self.context(3)
        assert ctx.get_allocator(AllocatorAttributes(scope_id=11)).name == "sa_field_0"
        assert ctx.get_allocator(AllocatorAttributes()).name == "cpu"
        assert ctx.get_allocator().name == "cpu"
        with pytest.raises(InternalError, match="Failed to find instance 1 "):
            ctx.get_allocator(AllocatorAttributes(scope_id=1))


def test_a_thread_may_have_its_tensors_from_an_allocator():
    allocator = CpuAllocator(bytes_limit=1000)
    ctx = two_floats()
    with allocating_from(allocator):
        kept = ctx.allocate_output(0, [10]), ctx.allocate_temp(float32, [5])
    assert allocator.get_stats().bytes_in_use == 60
    assert ctx.outputs[0] is kept[0]


def test_a_kernel_may_have_a_way_of_its_own_in_front_of_its_computation():
    class Quick(OpKernel):
        def shortcut(self, run):
            def quick(step, inputs):
                return ["quick"] if inputs[0] == 1 else run(step, inputs)

            return quick

        def compute(self, ctx):
            ctx.set_output(0, ctx.input(0))

    declared = {"inputs": ["a: float"], "outputs": ["out: float"]}
    kernel = make_kernel(Quick, contract=KernelContract(outputs_as_declared=True), **declared)
    one, two = [np.float32(1)], [np.float32(2)]
    of_step = function_of_step(kernel)
    assert (of_step(Step(), one), of_step(Step(), two)) == (["quick"], [2])
    other = function_of_step(kernel, lambda ctx: ctx.set_output(0, np.float32(7)))
    assert other(Step(), one) == [7]
    assert function_of_step(make_kernel(Quick, **declared))(Step(), one) == [1]  # it is checked


@pytest.mark.parametrize("is_required", [True, False])
def test_a_kernel_as_a_function_of_the_step_leaves_out_what_nobody_needs(is_required):
    kernel = make_kernel(Idle, outputs=["out: float"])
    of_step = function_of_step(kernel, params=ContextParams(outputs_required=[is_required]))
    if is_required:
        with pytest.raises(InternalError, match="did not set output 0"):
            of_step(Step(), [])
    else:
        assert of_step(Step(), []) == [None]


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
