import logging

import pytest

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry import registration
from opkernel.kernel.registry.kernel_def import KernelDefBuilder
from opkernel.kernel.registry.kernel_registry import KernelRegistry
from opkernel.kernel.registry.lookup import (
    find_kernel_def,
    find_kernel_registration,
    get_all_registered_kernels,
    get_filtered_registered_kernels,
    get_registered_kernels_for_op,
    kernel_def_available,
    kernels_registered_for_op,
    log_all_registered_kernels,
    no_supported_device_error,
    supported_device_types_for_node,
)
from opkernel.kernel.registry.registration import KernelRegistration, violated_constraint
from opkernel.opdef import OpDefBuilder, OpRegistry
from opkernel.proto import AttrValue, NodeDef
from opkernel.types import DataType

FLOAT = AttrValue(type=DataType.DT_FLOAT)
INT32 = AttrValue(type=DataType.DT_INT32)
STRING = AttrValue(type=DataType.DT_STRING)


def kernel(device="CPU", *, T=None, U=None, label="", priority=0, host=(), op="A"):
    builder = KernelDefBuilder(op).device(device).label(label).priority(priority)
    for attr, allowed in {"T": T, "U": U}.items():
        if allowed is not None:
            builder.type_constraint(attr, allowed)
    for arg in host:
        builder.host_memory(arg)
    return builder.build()


def registry_of(*kernel_defs):
    """A registry in which the kernels' classes are called K0, K1, ... in this order."""
    registry = KernelRegistry()
    for number, kernel_def in enumerate(kernel_defs):
        registry.register(KernelRegistration(kernel_def, f"K{number}", OpKernel))
    return registry


def ops():
    registry = OpRegistry()
    registry.register(OpDefBuilder("A").attr("T: type = DT_FLOAT").input("x: T").finalize())
    return registry


def node(name="n", **attrs):
    return NodeDef(name=name, op="A", attr=attrs)


def found(registry, device="CPU", **attrs):
    return find_kernel_registration(device, node(**attrs), registry=registry).class_name


class TestFindKernel:
    def test_by_device(self):
        registry = registry_of(kernel("CPU"), kernel("GPU"))
        assert found(registry, "CPU") == "K0"
        assert found(registry, "GPU") == "K1"
        assert find_kernel_def("GPU", node(), registry=registry).device_type == "GPU"

    def test_by_constraints(self):
        registry = registry_of(
            kernel(T="float", U="int32"), kernel(T="int32", U="int32"), kernel(T=["string", "bool"])
        )
        assert found(registry, T=FLOAT, U=INT32) == "K0"
        assert found(registry, T=INT32, U=INT32) == "K1"
        assert found(registry, T=STRING) == "K2"

    def test_by_label(self):
        registry = registry_of(kernel(), kernel(label="one"), kernel("GPU", label="g"))
        assert found(registry) == "K0"
        assert found(registry, _kernel=AttrValue(s=b"one")) == "K1"
        assert found(registry, _kernel=AttrValue(s=b"")) == "K0"
        assert found(registry, _kernel=AttrValue(i=1)) == "K0"
        assert found(registry, kernel=AttrValue(s=b"one")) == "K0"
        with pytest.raises(NotFoundError):
            found(registry, _kernel=AttrValue(s=b"two"))
        with pytest.raises(NotFoundError):
            found(registry, "GPU")

    @pytest.mark.parametrize(
        ("priorities", "expected"),
        [((0, 1), "K1"), ((1, 0), "K0"), ((-1, 0), "K1"), ((5, 3, 4), "K0"), ((3, 3, 4), "K2")],
    )
    def test_the_highest_priority_is_taken(self, priorities, expected):
        registry = registry_of(*(kernel(priority=priority) for priority in priorities))
        assert found(registry) == expected

    def test_priorities_count_only_among_kernels_that_fit(self):
        registry = registry_of(kernel(T="float", priority=1), kernel())
        assert found(registry, T=FLOAT) == "K0"
        assert found(registry, T=INT32) == "K1"

    def test_two_of_equal_priority_are_an_error(self):
        registry = registry_of(kernel(T="float"), kernel(T="float"))
        with pytest.raises(InvalidArgumentError) as error:
            found(registry, T=FLOAT)
        text = (
            '\'op: "A" device_type: "CPU" '
            'constraint { name: "T" allowed_values { list { type: DT_FLOAT } } }\''
        )
        assert str(error.value) == (
            "Multiple OpKernel registrations match NodeDef at the same priority '{{node n}}': "
            f"{text} and {text}; they are K1 and K0; give one of them a higher priority=, other "
            "types= or a label="
        )

    def test_kernels_are_compared_newest_first_as_in_tensorflow(self):
        # TensorFlow 2.21 refuses this, and takes the kernel of priority 4 of (3, 3, 4).
        with pytest.raises(InvalidArgumentError, match="at the same priority"):
            found(registry_of(kernel(priority=4), kernel(priority=3), kernel(priority=3)))


class TestDefaultDevice:
    def test_serves_devices_without_a_kernel(self):
        registry = registry_of(kernel("DEFAULT"), kernel("GPU", T="float"))
        assert found(registry, "XYZ", T=FLOAT) == "K0"
        assert found(registry, "GPU", T=FLOAT) == "K1"
        assert found(registry, "GPU", T=INT32) == "K0"

    def test_has_no_priorities(self):
        registry = registry_of(kernel("DEFAULT"), kernel("DEFAULT", priority=1))
        with pytest.raises(InvalidArgumentError, match="Multiple Default OpKernel registrations"):
            found(registry)

    def test_keeps_to_the_label(self):
        registry = registry_of(kernel("DEFAULT"), kernel("CPU", label="x"))
        assert found(registry) == "K0"
        assert found(registry, _kernel=AttrValue(s=b"x")) == "K1"

    def test_does_not_serve_devices_that_only_trace(self):
        with pytest.raises(NotFoundError):
            found(registry_of(kernel("DEFAULT")), "XLA_CPU_JIT")


class TestDerived:
    def registry(self):
        """Kernels of floats for GPU, of integers for CPU; a kernel of integers for GPU counts those for CPU."""
        registry = registry_of(
            kernel("GPU", T="float"), kernel("CPU", T="int32"), kernel("DEFAULT")
        )

        def derived(op):
            from_types = [one.key[1] for one in registry.registrations_for(op)]
            name = f"from {from_types.count('CPU')}"
            return [KernelRegistration(kernel("GPU", T="int32"), name, OpKernel)]

        registry.derive("GPU", derived)
        return registry

    def test_serves_nodes_that_no_kernel_registered_for_the_device_type_fits(self):
        registry = self.registry()
        assert found(registry, "GPU", T=FLOAT) == "K0"
        assert found(registry, "GPU", T=INT32) == "from 1"
        assert found(registry, "GPU", T=STRING) == "K2"
        assert found(registry, "TPU", T=INT32) == "K2"

    def test_is_made_anew_when_kernels_of_the_op_change(self):
        registry = self.registry()
        assert found(registry, "GPU", T=INT32) == "from 1"
        registry.register(KernelRegistration(kernel("CPU", T="half"), "late", OpKernel))
        assert found(registry, "GPU", T=INT32) == "from 2"

    def test_is_in_no_list(self):
        registry = self.registry()
        before = registry.registrations()
        found(registry, "GPU", T=INT32)
        assert registry.registrations() == before
        assert "from 1" not in [one.class_name for one in registry.registrations_for("A")]


class TestNotFound:
    def message(self, registry, device="CPU", **attrs):
        with pytest.raises(NotFoundError) as error:
            find_kernel_def(device, node(**attrs), registry=registry)
        return str(error.value)

    def test_no_kernels_at_all(self):
        assert self.message(KernelRegistry()) == (
            "No registered 'A' OpKernel for CPU devices compatible with node {{node n}}\n"
            "Registered:\n  <no registered kernels>\n"
            "Feed what 'n' gives, register a kernel for CPU (opkernel.register_kernel; `--library` of the commands imports the module that does), or install a "
            "plugin that has one (`opkernel doctor` lists those installed)."
        )

    def test_what_is_registered_is_listed(self):
        assert self.message(registry_of(kernel("GPU", label="g")), "CPU").startswith(
            "No registered 'A' OpKernel for CPU devices compatible with node {{node n}}\n"
            "Registered:\n  device='GPU'; label='g'\nFeed"
        )

    def test_the_constraint_that_fails_is_named(self):
        registry = registry_of(kernel(T="float", U="int32"), kernel(T="string"))
        message = self.message(registry, T=FLOAT, U=FLOAT)
        first, second, *_ = message.split("\n")
        assert first == "No registered 'A' OpKernel for CPU devices compatible with node {{node n}}"
        assert second == (
            "(OpKernel was found, but attributes didn't match) "
            "Requested Attributes: T=DT_FLOAT, U=DT_FLOAT; "
            "device='CPU'; T in [DT_FLOAT]; U in [DT_INT32] fails at U=DT_FLOAT"
        )
        assert "register a kernel for CPU with T=DT_FLOAT, U=DT_FLOAT (" in message
        assert "\t" not in message

    def test_the_error_names_its_node_and_op(self):
        with pytest.raises(NotFoundError) as error:
            find_kernel_def("CPU", node("dense"), registry=KernelRegistry())
        assert (error.value.node, error.value.op) == ("dense", "A")


def test_kernel_def_available():
    registry = registry_of(kernel(T="float"), kernel("GPU"), kernel("GPU"))
    assert kernel_def_available("CPU", node(T=FLOAT), registry=registry)
    assert not kernel_def_available("CPU", node(T=INT32), registry=registry)
    assert not kernel_def_available("CPU", node(), registry=registry)
    assert not kernel_def_available("GPU", node(), registry=registry)


class TestAgain:
    """Kernels that were found before are found again, until the kernels of the op change."""

    def test_nodes_that_differ_in_what_counts_are_told_apart(self):
        registry = registry_of(
            kernel(T="float"), kernel(T="int32"), kernel("GPU"), kernel(T="float", label="x")
        )
        for _ in range(2):
            assert found(registry, T=FLOAT) == "K0"
            assert found(registry, T=INT32) == "K1"
            assert found(registry, "GPU", T=FLOAT) == "K2"
            assert found(registry, T=FLOAT, _kernel=AttrValue(s=b"x")) == "K3"
            with pytest.raises(NotFoundError):
                found(registry, T=STRING)

    def test_a_kernel_registered_later_counts(self):
        registry = registry_of(kernel())
        assert found(registry, T=FLOAT) == "K0"
        better = KernelRegistration(kernel(T="float", priority=1), "better", OpKernel)
        registry.register(better)
        assert found(registry, T=FLOAT) == "better"
        assert found(registry, T=INT32) == "K0"
        registry.unregister(better)
        assert found(registry, T=FLOAT) == "K0"
        registry.register(KernelRegistration(kernel(), "rival", OpKernel))
        with pytest.raises(InvalidArgumentError, match="at the same priority"):
            found(registry, T=FLOAT)

    def test_more_kinds_of_nodes_than_are_kept(self):
        registry = registry_of(kernel(T="float"))
        for count in range(1100):
            types = AttrValue(list=AttrValue.ListValue(type=[DataType.DT_FLOAT] * count))
            assert found(registry, T=types) == "K0"

    def test_the_cost_does_not_grow_with_the_registry(self, monkeypatch):
        registry = registry_of(
            *(kernel(op=f"Op{i}") for i in range(500)),
            *(kernel(label=f"label{i}") for i in range(500)),
            kernel(T="float"),
            kernel(T="int32"),
        )
        looked_at = []

        def counted(kernel_def, node_def):
            looked_at.append(kernel_def)
            return violated_constraint(kernel_def, node_def)

        monkeypatch.setattr(registration, "violated_constraint", counted)
        assert found(registry, T=FLOAT) == "K1000"
        assert found(registry, T=FLOAT) == "K1000"
        assert len(looked_at) == 2


class TestLastLoader:
    """It is called where no kernel fits, and only there."""

    def registry(self, brought):
        registry = registry_of(kernel(T=[DataType.DT_FLOAT]))
        calls: list[None] = []

        def load():
            if not calls:
                registry.register(KernelRegistration(brought, "Brought", OpKernel))
            calls.append(None)

        registry.set_loader(None, last=load)
        return registry, calls

    def test_brings_a_kernel_for_other_types(self):
        registry, calls = self.registry(kernel(T=[DataType.DT_INT32]))
        assert found(registry, T=FLOAT) == "K0"
        assert calls == []
        assert found(registry, T=INT32) == "Brought"
        assert found(registry, T=INT32) == "Brought"
        assert len(calls) == 1

    def test_brings_nothing_that_fits(self):
        registry, _ = self.registry(kernel("TPU"))
        assert not kernel_def_available("GPU", node(T=FLOAT), registry=registry)
        assert found(registry, "TPU", T=FLOAT) == "Brought"

    def test_who_lists_the_kernels_of_an_op_sees_all(self):
        registry, _ = self.registry(kernel("TPU"))
        listed = get_registered_kernels_for_op("A", registry=registry).kernel
        assert [one.device_type for one in listed] == ["TPU", "CPU"]


class TestSupportedDeviceTypes:
    def supported(self, registry, types, node_def=None):
        node_def = node(T=FLOAT) if node_def is None else node_def
        return supported_device_types_for_node(
            types, node_def, op_registry=ops(), registry=registry
        )

    def test_only_types_with_a_kernel_in_the_order_given(self):
        registry = registry_of(kernel("CPU"), kernel("GPU"))
        assert self.supported(registry, ["TPU", "GPU", "CPU"]) == [("GPU", 0), ("CPU", 0)]
        assert self.supported(registry, ["CPU", "GPU"]) == [("CPU", 0), ("GPU", 0)]

    def test_higher_priorities_come_first(self):
        registry = registry_of(kernel("CPU", priority=1), kernel("GPU", priority=5))
        assert self.supported(registry, ["CPU", "GPU"]) == [("GPU", 5), ("CPU", 1)]

    def test_an_unknown_op_is_supported_everywhere(self):
        unknown = NodeDef(name="n", op="some_function")
        assert self.supported(KernelRegistry(), ["GPU", "CPU"], unknown) == [("GPU", 0), ("CPU", 0)]

    def test_without_any_kernel_the_node_must_at_least_be_valid(self):
        valid = NodeDef(name="n", op="A", input=["x"], attr={"T": FLOAT})
        assert self.supported(KernelRegistry(), ["CPU"], valid) == []
        with pytest.raises(InvalidArgumentError, match="'float' do not match 0 inputs"):
            self.supported(KernelRegistry(), ["CPU"])

    def test_devices_for_tracing_are_just_other_device_types(self):
        registry = registry_of(kernel("DEFAULT"), kernel("XLA_CPU_JIT", priority=2))
        types = ["CPU", "XLA_GPU_JIT", "XLA_CPU_JIT"]
        assert self.supported(registry, types) == [("XLA_CPU_JIT", 2), ("CPU", 0)]

    def test_ambiguity_is_an_error(self):
        with pytest.raises(InvalidArgumentError, match="at the same priority"):
            self.supported(registry_of(kernel("CPU"), kernel("CPU")), ["GPU", "CPU"])


class TestListing:
    def test_text(self):
        registry = registry_of(kernel(T=["float", "int32"]), kernel("GPU", label="x", T="half"))
        assert kernels_registered_for_op("A", registry=registry) == (
            "  device='GPU'; label='x'; T in [DT_HALF]\n  device='CPU'; T in [DT_FLOAT, DT_INT32]\n"
        )
        assert kernels_registered_for_op("B", registry=registry) == "  <no registered kernels>\n"

    def test_lists_of_kernel_defs(self):
        registry = registry_of(kernel("CPU"), kernel("GPU"), kernel("CPU", op="B"))

        def listed(kernels):
            return sorted((one.op, one.device_type) for one in kernels.kernel)

        assert listed(get_all_registered_kernels(registry=registry)) == [
            ("A", "CPU"),
            ("A", "GPU"),
            ("B", "CPU"),
        ]
        on_cpu = get_filtered_registered_kernels(
            lambda kernel_def: kernel_def.device_type == "CPU", registry=registry
        )
        assert listed(on_cpu) == [("A", "CPU"), ("B", "CPU")]
        of_a = get_registered_kernels_for_op("A", registry=registry)
        assert listed(of_a) == [("A", "CPU"), ("A", "GPU")]

    def test_log(self, caplog):
        with caplog.at_level(logging.INFO, logger="opkernel"):
            log_all_registered_kernels(registry=registry_of(kernel("CPU"), kernel("GPU")))
        assert sorted(caplog.messages) == [
            'OpKernel (\'op: "A" device_type: "CPU"\')',
            'OpKernel (\'op: "A" device_type: "GPU"\')',
        ]


def test_no_supported_device_error():
    error = no_supported_device_error(node(T=FLOAT), ["CPU"], registry=registry_of(kernel("GPU")))
    assert str(error) == (
        "No OpKernel was registered to support Op 'A' used by {{node n}} with these attrs: "
        "[T=DT_FLOAT]\nRegistered devices: [CPU]\nRegistered kernels:\n  device='GPU'\n"
        "Feed what 'n' gives, register a kernel for CPU with T=DT_FLOAT (opkernel.register_kernel; `--library` of the commands imports the module that does), or "
        "install a plugin that has one (`opkernel doctor` lists those installed)."
    )
