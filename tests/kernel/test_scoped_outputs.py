"""Kernels whose outputs are fields of one array, or stay in an input's memory: attrs of nodes ask for it."""

import threading

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.device.local_device import LocalDevice
from opkernel.device.scoped_allocator import populate_fields
from opkernel.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import (
    NEVER_FORWARD,
    NO_RESERVATION,
    AsyncOpKernel,
    OpKernel,
    OpKernelContext,
    Step,
)
from opkernel.kernel.stand_in import with_scoped_outputs
from opkernel.types import float32

STEP = 7
X = np.array([1, 2, 3], np.float32)
TWO = {"inputs": ["x: float"], "outputs": ["y: float", "z: float"]}


class Numbered(Step):
    step_id = STEP


class Allocates(OpKernel):
    def compute(self, ctx):
        for index, factor in enumerate((10, 20)):
            ctx.allocate_output(index, ctx.input(0).shape)[...] = factor * ctx.input(0)


def set_both(ctx):
    for index, factor in enumerate((10, 20)):
        ctx.set_output(index, factor * ctx.input(0))


class Sets(OpKernel):
    def compute(self, ctx):
        set_both(ctx)


class SetsLater(AsyncOpKernel):
    def compute_async(self, ctx, done):
        def work():
            set_both(ctx)
            done()

        threading.Thread(target=work).start()


KERNELS = {
    "allocates": Allocates,
    "sets": Sets,
    "asynchronous": SetsLater,
    "function": lambda x: (10 * x, 20 * x),
}


def device_with_fields(*sizes, calls=10):
    """A device whose step 7 has an array with fields of so many floats, under the ids 11, 12 and so on."""
    device = LocalDevice("CPU", np)
    backing = np.zeros(16 * len(sizes), np.float32)
    fields = populate_fields(10, [(size,) for size in sizes], float32)
    mgr = device.scoped_allocator_mgr
    assert mgr is not None
    container = mgr.get_container(STEP)
    container.add_scoped_allocator(backing, 10, "sa", fields, calls)
    return device, backing


def computed(kernel, inputs=(X,), device=None, declared=TWO, **pairs):
    given = {f"_{name}": values for name, values in pairs.items()}
    made = make_kernel(kernel, device=device or LocalDevice("CPU", np), pairs=given, **declared)
    return OpKernelContext(with_scoped_outputs(made), [*inputs], Numbered()).run()


@pytest.mark.parametrize("kind", KERNELS)
class TestFields:
    def test_both_outputs_are_slices_of_the_array(self, kind):
        device, backing = device_with_fields(3, 3)
        y, z = computed(KERNELS[kind], device=device, scoped_allocator=[0, 11, 1, 12])
        assert (y.tolist(), z.tolist()) == ([10, 20, 30], [20, 40, 60])
        expected = np.zeros(32)
        expected[:3], expected[16:19] = y, z
        np.testing.assert_array_equal(backing, expected)
        assert np.shares_memory(y, backing)
        assert np.shares_memory(z, backing)

    def test_an_output_without_a_field_is_anywhere(self, kind):
        device, backing = device_with_fields(3)
        y, z = computed(KERNELS[kind], device=device, scoped_allocator=[1, 11])
        assert (y.tolist(), z.tolist()) == ([10, 20, 30], [20, 40, 60])
        assert backing.tolist() == [20, 40, 60, *[0] * 13]
        assert not np.shares_memory(y, backing)

    def test_a_field_of_another_size_is_refused(self, kind):
        device, _ = device_with_fields(4)
        with pytest.raises(ResourceExhaustedError, match="got request for 12 bytes from field 0"):
            computed(KERNELS[kind], device=device, scoped_allocator=[0, 11])

    def test_a_scope_that_the_step_has_not_is_refused(self, kind):
        device, _ = device_with_fields(3)
        with pytest.raises(InternalError, match="Failed to find instance 13"):
            computed(KERNELS[kind], device=device, scoped_allocator=[0, 13])


def test_an_output_that_nothing_needs_takes_no_field():
    class Leaves(OpKernel):
        def compute(self, ctx):
            ctx.set_output(0, ctx.input(0) + 1)

    device, backing = device_with_fields(3, 3)
    kernel = make_kernel(Leaves, device=device, pairs={"_scoped_allocator": [0, 11, 1, 12]}, **TWO)
    ctx = OpKernelContext(with_scoped_outputs(kernel), [X], Numbered())
    ctx.kernel.compute(ctx)
    assert ctx.outputs[1] is None
    assert backing[:3].tolist() == [2, 3, 4]


def test_an_error_of_the_kernel_is_its_own():
    class Fails(AsyncOpKernel):
        def compute_async(self, ctx, done):
            ctx.set_output(0, ctx.input(0))
            ctx.set_status(InvalidArgumentError("on purpose"))
            done()

    device, backing = device_with_fields(3)
    with pytest.raises(InvalidArgumentError, match="on purpose"):
        computed(Fails, device=device, scoped_allocator=[0, 11])
    assert not backing.any()


def test_kernels_are_told_where_their_outputs_are_to_be():
    class Looks(OpKernel):
        forwards_inputs = True

        def compute(self, ctx):
            told.append(ctx.params.forward_from)
            told.append([ctx.output_alloc_attr(index).scope_id for index in range(2)])
            told.append([ctx.output_alloc_attr(index).on_host for index in range(2)])
            set_both(ctx)

    told: list[object] = []
    device, _ = device_with_fields(3)
    computed(Looks, device=device, scoped_allocator=[1, 11])
    assert told == [[NO_RESERVATION, NEVER_FORWARD], [0, 11], [False, False]]


def test_each_step_has_places_of_its_own():
    device, backing = device_with_fields(3, calls=2)
    kernel = with_scoped_outputs(
        make_kernel(Sets, device=device, pairs={"_scoped_allocator": [0, 11]}, **TWO)
    )
    for factor in (1, 2):
        OpKernelContext(kernel, [factor * X], Numbered()).run()
        assert backing[:3].tolist() == [factor * 10, factor * 20, factor * 30]


def test_a_kernel_that_always_gives_one_tensor_puts_it_in_its_place():
    class Constant(OpKernel):
        @property
        def const_tensor(self):
            return X

        def compute(self, ctx):
            ctx.set_output(0, X)

    device, backing = device_with_fields(3)
    declared = {"outputs": ["y: float"]}
    kernel = make_kernel(Constant, device=device, pairs={"_scoped_allocator": [0, 11]}, **declared)
    assert kernel.const_tensor is X
    kernel = with_scoped_outputs(kernel)
    assert kernel.const_tensor is None
    OpKernelContext(kernel, [], Numbered()).run()
    assert backing[:3].tolist() == [1, 2, 3]


class TestInTheMemoryOfAnInput:
    """`_forward_input`: as TensorFlow's optimizer asks of what is computed between Concat and Split."""

    def field(self, device, scope_id=11):
        allocator = device.scoped_allocator_mgr.get_instance(STEP, scope_id)
        array = allocator.allocate((3,), float32)
        array[...] = X
        return array

    @pytest.mark.parametrize("kind", KERNELS)
    def test_an_output_takes_the_place_of_a_field(self, kind):
        device, backing = device_with_fields(3, 3)
        self.field(device)
        given = self.field(device, 12)
        y, z = computed(KERNELS[kind], [given], device=device, forward_input=[0, 1])
        assert z.tolist() == [20, 40, 60]
        assert backing.tolist() == [1, 2, 3, *[0] * 13, 20, 40, 60, *[0] * 13]
        assert not np.shares_memory(y, backing)

    def test_any_other_array_is_left_alone(self):
        given = X.copy()
        y, _ = computed(Sets, [given], forward_input=[0, 0])
        assert y.tolist() == [10, 20, 30]
        assert given.tolist() == [1, 2, 3]

    def test_a_field_of_another_step_is_left_alone(self):
        device, backing = device_with_fields(3)
        given = self.field(device)
        kernel = make_kernel(Sets, device=device, pairs={"_forward_input": [0, 0]}, **TWO)
        OpKernelContext(with_scoped_outputs(kernel), [given], Step()).run()
        assert backing[:3].tolist() == [1, 2, 3]

    @pytest.mark.parametrize(
        "look",
        [lambda array: array[:2], lambda array: array.reshape(1, 3), lambda array: array[::-1]],
        ids=["smaller", "another rank", "backwards"],
    )
    def test_an_output_of_another_form_is_anywhere(self, look):
        device, backing = device_with_fields(3)
        given = self.field(device)
        kernel = make_kernel(
            lambda x: (
                (look(10 * np.array([1, 2, 3], np.float32)).copy(), x + 0)
                if look(X).shape != X.shape
                else (10 * x, x + 0)
            ),
            device=device,
            pairs={"_forward_input": [0, 0]},
            **TWO,
        )
        value = given if look(X).shape != X.shape else look(given)
        y, _ = OpKernelContext(with_scoped_outputs(kernel), [value], Numbered()).run()
        assert not np.shares_memory(y, backing)
        assert backing[:3].tolist() == [1, 2, 3]

    def test_numbers_have_no_memory_to_take(self):
        y, _ = computed(Sets, [np.float32(3)], forward_input=[0, 0])
        assert y == 30

    def test_an_output_that_is_not_set_stays_so(self):
        class Leaves(OpKernel):
            def compute(self, ctx):
                ctx.set_output(0, ctx.input(0) + 1)

        device, backing = device_with_fields(3)
        kernel = make_kernel(Leaves, device=device, pairs={"_forward_input": [0, 1]}, **TWO)
        ctx = OpKernelContext(with_scoped_outputs(kernel), [self.field(device)], Numbered())
        ctx.kernel.compute(ctx)
        assert ctx.outputs[1] is None
        assert backing[:3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("attr", ["scoped_allocator", "forward_input"])
def test_a_node_without_pairs_has_its_kernel_itself(attr):
    none: dict[str, list[int]] = {f"_{attr}": []}
    for pairs in (None, none):
        kernel = make_kernel(Sets, pairs=pairs, **TWO)
        assert with_scoped_outputs(kernel) is kernel


@pytest.mark.parametrize(
    ("attr", "wrong"),
    [
        ("scoped_allocator", [0]),
        ("scoped_allocator", [0, 11, 1]),
        ("scoped_allocator", [2, 11]),
        ("scoped_allocator", [-1, 11]),
        ("scoped_allocator", [0, -11]),
        ("scoped_allocator", [0, 11, 0, 12]),
        ("forward_input", [1, 0]),
        ("forward_input", [-1, 0]),
        ("forward_input", [0, 2]),
        ("forward_input", [0, -1]),
        ("forward_input", [0]),
    ],
)
def test_pairs_name_inputs_and_outputs_that_exist(attr, wrong):
    with pytest.raises(InvalidArgumentError) as raised:
        computed(Sets, **{attr: wrong})
    assert f"the attr _{attr} must hold pairs of numbers of the node, and holds {wrong}" in (
        raised.value.message
    )
    assert (raised.value.node, raised.value.op) == ("n", "Test")


def test_the_last_output_and_input_may_be_named():
    device, _ = device_with_fields(3)
    computed(Sets, device=device, scoped_allocator=[1, 11], forward_input=[0, 1])
