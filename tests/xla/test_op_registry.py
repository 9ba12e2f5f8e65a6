"""XlaOpRegistry: kernels, backends, and what must be known at compile time."""

import numpy as np
import pytest

import opkernel
from opkernel.errors import AlreadyExistsError, InvalidArgumentError
from opkernel.graph import node_def
from opkernel.kernel import (
    KernelRegistry,
    find_kernel_def,
    get_filtered_registered_kernels,
    global_kernel_registry,
    kernel_def_available,
    supported_device_types_for_node,
    validate_kernel_registrations,
)
from opkernel.opdef import global_op_registry, register_op
from opkernel.testing.op_runs import node_of
from opkernel.types import DataType
from opkernel.xla import (
    AutoclusteringPolicy,
    DeviceRegistration,
    XlaOpKernelContext,
    XlaOpRegistry,
    global_xla_op_registry,
    register_xla_kernel,
)

pytestmark = pytest.mark.jax


@pytest.fixture
def registry():
    made = XlaOpRegistry(KernelRegistry())
    made.register_backend("XLA_CPU_JIT", [DataType.DT_FLOAT, DataType.DT_INT32])
    made.register_backend("XLA_GPU_JIT", [DataType.DT_FLOAT])
    return made


def test_a_kernel_serves_all_backends(registry):
    register_xla_kernel("Relu", types={"T": [opkernel.float32]}, registry=registry)(lambda x: x)
    kernels = registry.kernels.registrations_for("Relu")
    assert sorted(one.kernel_def.device_type for one in kernels) == ["XLA_CPU_JIT", "XLA_GPU_JIT"]
    assert {one.class_name for one in kernels} == {"XlaJitOp"}


def test_a_kernel_for_one_backend(registry):
    register_xla_kernel("Relu", devices=["XLA_GPU_JIT"], registry=registry)(lambda x: x)
    (kernel,) = registry.kernels.registrations_for("Relu")
    assert kernel.kernel_def.device_type == "XLA_GPU_JIT"


def test_one_registered_after_the_first_look_up_counts(registry):
    assert registry.kernels.registrations_for("Relu") == ()
    register_xla_kernel("Relu", registry=registry)(lambda x: x)
    assert len(registry.kernels.registrations_for("Relu")) == 2


def test_compile_time_constants_are_inputs_by_number(registry):
    register_xla_kernel("ConcatV2", compile_time_constants=["axis"], registry=registry)(
        lambda values, axis: values[0]
    )
    op_def = global_op_registry().look_up_op_def("ConcatV2")
    node = node_of(op_def, {"N": 3, "T": opkernel.float32, "Tidx": opkernel.int32})
    assert registry.compile_time_constant_input_arg_names("ConcatV2") == {"axis"}
    assert registry.compile_time_constant_inputs(node, op_def) == [3]


def test_a_constant_that_is_no_input(registry):
    with pytest.raises(InvalidArgumentError, match=r"no input 'axes'.*it has values, axis"):
        register_xla_kernel("ConcatV2", compile_time_constants=["axes"], registry=registry)(
            lambda values, axis: values[0]
        )


def test_kernels_of_an_op_agree(registry):
    register_xla_kernel("Reverse", registry=registry)(lambda tensor, dims: tensor)
    with pytest.raises(InvalidArgumentError, match="must agree on compile_time_constants"):
        register_xla_kernel("Reverse", compile_time_constants=["dims"], registry=registry)(
            lambda tensor, dims: tensor
        )


def test_metadata_ops(registry):
    register_xla_kernel("Shape", metadata=True, registry=registry)(
        lambda tensor: np.array(tensor.shape, np.int32)
    )
    register_xla_kernel("Relu", registry=registry)(lambda features: features)
    assert registry.is_metadata_op("Shape")
    assert not registry.is_metadata_op("Relu")
    assert not registry.is_metadata_op("Elu")


def test_backends(registry):
    assert registry.backend_names() == ["XLA_CPU_JIT", "XLA_GPU_JIT"]
    assert registry.is_backend("XLA_GPU_JIT")
    assert not registry.is_backend("CPU")
    with pytest.raises(AlreadyExistsError, match="XLA_GPU_JIT"):
        registry.register_backend("XLA_GPU_JIT", [])


def test_compilation_devices(registry):
    told = DeviceRegistration("XLA_CPU_JIT", AutoclusteringPolicy.ALWAYS)
    registry.register_compilation_device("CPU", told)
    assert registry.compilation_device("CPU") is told
    assert registry.compilation_device("TPU") is None
    known = global_xla_op_registry().compilation_device("CPU")
    assert known is not None
    assert known.compilation_device_name == "XLA_CPU_JIT"
    assert known.autoclustering_policy is AutoclusteringPolicy.IF_ENABLED_GLOBALLY


def test_a_portable_kernel_needs_no_registration():
    op = register_op(
        "XlaTestScaled",
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["T: {float, double}", "by: float = 2.0"],
        shape_fn=lambda c: c.set_output(0, c.input(0)),
    )

    @opkernel.register_kernel(op, device="CPU")
    def scaled(x, *, by, xp):
        return xp.multiply(x, xp.asarray(by, x.dtype))

    @opkernel.function(jit_compile=True)
    def call(x):
        return opkernel.raw_ops.XlaTestScaled(x=x, by=3.0)

    np.testing.assert_array_equal(call(np.array([1, 2], np.float32)), [3, 6])


def test_a_kernel_of_an_authors_own():
    op = register_op(
        "XlaTestTop",
        inputs=["x: float", "k: int32"],
        outputs=["y: float"],
        shape_fn=lambda c: c.set_output(0, c.unknown_shape()),
    )

    @register_xla_kernel(op, compile_time_constants=["k"])
    def top(x, k, *, xp):
        return xp.sort(x)[: int(k)]

    @opkernel.function(jit_compile=True)
    def call(x):
        return opkernel.raw_ops.XlaTestTop(x=x, k=np.int32(2))

    np.testing.assert_array_equal(call(np.array([3, 1, 2], np.float32)), [1, 2])


def test_all_kernels_fit_their_ops_and_none_ties_with_another():
    registry = global_xla_op_registry()
    registry.register_compilation_kernels()
    assert len(registry.device_kernels("XLA_CPU_JIT")) > 300
    validate_kernel_registrations(global_op_registry(), registry=registry.kernels)


class TestInTheRegistryOfKernels:
    def node(self, T=opkernel.float32):
        return node_def("r", "Relu", ["x"], T=T)

    def test_look_ups_find_the_kernels_that_compile(self):
        for device_type in ("XLA_CPU_JIT", "XLA_GPU_JIT"):
            assert kernel_def_available(device_type, self.node())
            assert find_kernel_def(device_type, self.node()).device_type == device_type
            assert not kernel_def_available(device_type, self.node(opkernel.string))
        assert not kernel_def_available("XLA_TPU_JIT", self.node())
        supported = supported_device_types_for_node(["XLA_CPU_JIT", "CPU"], self.node())
        assert [device_type for device_type, _ in supported] == ["XLA_CPU_JIT", "CPU"]

    def test_lists_have_them_in_the_registry_of_xla_only(self):
        def on_jit(kernel_def):
            return (kernel_def.op, kernel_def.device_type) == ("Relu", "XLA_CPU_JIT")

        kernels = global_xla_op_registry().kernels
        assert find_kernel_def("XLA_CPU_JIT", self.node()).op == "Relu"
        assert not get_filtered_registered_kernels(on_jit).kernel
        assert len(get_filtered_registered_kernels(on_jit, registry=kernels).kernel) == 1

    def test_one_registered_later_is_found(self):
        registry = global_xla_op_registry()
        node = node_def("r", "Mfcc", ["x", "rate"])
        assert not kernel_def_available("XLA_CPU_JIT", node)
        register_xla_kernel("Mfcc")(lambda spectrogram, sample_rate: spectrogram)
        try:
            assert kernel_def_available("XLA_CPU_JIT", node)
        finally:
            registry.rules.remove("Mfcc")
            global_kernel_registry().note_change("Mfcc")
        assert not kernel_def_available("XLA_CPU_JIT", node)


def test_a_kernel_may_set_a_numpy_scalar(registry):
    class Ctx(XlaOpKernelContext):
        def __init__(self):
            self.outputs = [None]

    ctx = Ctx()
    ctx.set_output(0, np.float32(3))
    assert isinstance(ctx.outputs[0], np.ndarray)
    assert (ctx.outputs[0].dtype, ctx.outputs[0].shape) == (np.float32, ())
