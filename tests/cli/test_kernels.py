import json
from collections.abc import Iterator

import pytest
from tests.cli.conftest import Command

from opkernel.kernel import Name, OpKernel, global_kernel_registry, register_kernel
from opkernel.opdef import no_outputs, register_op


def test_the_kernels_of_an_op(command: Command):
    (kernel,) = json.loads(command("kernels", "Shape", "--json").output)
    assert kernel == {
        "op": "Shape",
        "device": "CPU",
        "types": {"out_type": ["int32", "int64"]},
        "host_memory": ["output"],
        "label": "",
        "priority": 0,
    }


def test_a_table_without_the_columns_that_would_be_empty(command: Command):
    lines = command("kernels", "Conv2D").output.splitlines()
    assert lines[0] == "1 kernel"
    assert lines[1].split() == ["op", "device", "types"]
    assert lines[2].split()[:3] == ["Conv2D", "CPU", "T:"]


def test_the_types_that_an_op_allows_and_those_with_a_kernel(command: Command):
    lines = command("kernels", "MatMul").output.splitlines()
    start = lines.index("T: 12 types, 4 gaps")
    assert lines[start + 1].split() == ["type", "CPU"]
    served = dict(line.split() for line in lines[start + 2 :])
    assert served["float"] == served["complex128"] == "yes"
    assert [dtype for dtype, how in served.items() if how == "-"] == [
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    ]


def test_an_attr_that_no_kernel_constrains(command: Command):
    assert "SrcT: each of 32 types on CPU\n" in command("kernels", "Cast").output


class TestDevices:
    def lines(self, command: Command, *options: str) -> dict[str, list[str]]:
        output = command("kernels", "DevicesInTests", *options).output
        return {words[0]: words[1:] for words in map(str.split, output.splitlines()) if words}

    @pytest.fixture(autouse=True)
    def _op(self) -> Iterator[None]:
        registry = global_kernel_registry()
        register_op(
            "DevicesInTests",
            inputs=["x: T"],
            attrs=["T: {float, int32, string, bool}"],
            shape_fn=no_outputs,
        )
        chains = [
            Name("DevicesInTests").device("CPU").type_constraint("T", ["float"]),
            Name("DevicesInTests").device("CPU").type_constraint("T", ["bool"]).label("mine"),
            Name("DevicesInTests").device("DEFAULT").type_constraint("T", ["float", "int32"]),
            Name("DevicesInTests").device("XLA_CPU_JIT"),
        ]
        for chain in chains:
            register_kernel(chain)(OpKernel)
        yield
        for one in registry.registrations_for("DevicesInTests"):
            registry.unregister(one)

    def test_each_device_has_a_column(self, command: Command):
        lines = self.lines(command)
        assert lines["type"] == ["CPU", "DEFAULT", "XLA_CPU_JIT"]
        assert lines["float"] == ["yes", "yes", "yes"]
        assert lines["int32"] == ["default", "yes", "yes"]
        assert lines["string"] == ["-", "-", "yes"]
        assert lines["bool"] == ["label", "-", "yes"]
        assert lines["T:"] == ["4", "types,", "2", "gaps"]

    def test_one_device(self, command: Command):
        lines = self.lines(command, "--device", "GPU")
        assert lines["DevicesInTests"] == ["has", "no", "GPU", "kernel", "yet."]
        assert lines["type"] == ["GPU"]
        assert [lines[t] for t in ("float", "string")] == [["default"], ["-"]]

    def test_devices_for_tracing_are_not_served_by_default(self, command: Command):
        lines = self.lines(command, "--device", "XLA_GPU_JIT")
        assert lines["float"] == ["-"]

    def test_gaps(self, command: Command):
        done = command("kernels", "DevicesInTests", "--gaps", "--json")
        assert json.loads(done.output) == [
            {"op": "DevicesInTests", "device": "CPU", "attr": "T", "missing": ["string"]},
            {
                "op": "DevicesInTests",
                "device": "DEFAULT",
                "attr": "T",
                "missing": ["string", "bool"],
            },
        ]
        done = command("kernels", "DevicesInTests", "--gaps", "--device", "XLA_CPU_JIT")
        assert done.output == "No gaps.\n"

    def test_the_gaps_of_all_ops_tell_of_other_peoples_ops_too(self, command: Command):
        lines = command("kernels", "--gaps", "--device", "CPU").output.splitlines()
        assert lines[1].split()[:3] == ["op", "device", "attr"]
        rows = [line.split() for line in lines[2:]]
        assert ["DevicesInTests", "CPU", "T", "string"] in rows
        assert ["MatMul", "CPU", "T", "uint8,", "uint16,", "uint32,", "uint64"] in rows


def test_all_kernels(command: Command):
    rows = json.loads(command("kernels", "--json").output)
    assert {"Conv2D", "MatMul", "Shape"} <= {row["op"] for row in rows}
    assert [row["op"] for row in rows] == sorted(row["op"] for row in rows)


def test_a_device_without_kernels(command: Command):
    assert command("kernels", "--device", "TPU").output == "No op has a TPU kernel yet.\n"
    assert command("kernels", "Relu", "--device", "TPU").output.startswith(
        "Relu has no TPU kernel yet.\n"
    )


def test_no_such_op(command: Command):
    done = command("kernels", "shape")
    assert done.exit_code == 1
    assert done.output.startswith(
        "Error: NOT_FOUND: there is no op 'shape'; perhaps you mean Shape"
    )
    assert command("kernels", "Nope").exit_code == 1


def test_ops_without_a_kernel(command: Command):
    done = command("kernels", "InfeedDequeue")
    assert done.exit_code == 0
    assert done.output == "InfeedDequeue has no kernel yet.\n"
    assert json.loads(command("kernels", "InfeedDequeue", "--json").output) == []


def test_ops_that_the_executor_runs_have_kernels_for_what_they_declare(command: Command):
    lines = command("kernels", "StatelessIf").output.splitlines()
    assert lines[0] == "2 kernels"
    assert lines[3].split() == ["StatelessIf", "DEFAULT", "cond"]
