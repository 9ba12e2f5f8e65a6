import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.cli.conftest import Command

from opkernel.device.local_device import CPU
from opkernel.graph import Graph, graph_to_function_def
from opkernel.kernel import (
    KernelProvider,
    Name,
    OpKernel,
    global_kernel_registry,
    register_kernel,
    register_provider,
    unregister_provider,
)
from opkernel.opdef import register_op, unchanged_shape
from opkernel.types import DataType

OP = "ExplainedInTests"


@pytest.fixture(autouse=True)
def _op() -> Iterator[None]:
    register_op(
        OP,
        inputs=["x: T", "sizes: int32"],
        outputs=["y: T"],
        attrs=["T: type", "mode: string = 'same'"],
        shape_fn=unchanged_shape,
    )
    chains = {
        "Plain": Name(OP)
        .device("CPU")
        .type_constraint("T", ["half", "float"])
        .host_memory("sizes"),
        "Better": Name(OP).device("CPU").type_constraint("T", ["float"]).priority(1),
        "Labelled": Name(OP).device("CPU").type_constraint("T", ["float"]).label("fast"),
        "OfMode": Name(OP).device("CPU").attr_constraint("mode", ["valid", "full"]).priority(2),
        "ForGpu": Name(OP).device("GPU"),
        "ForAll": Name(OP).device("DEFAULT").type_constraint("T", "float"),
    }
    for name, chain in chains.items():
        register_kernel(chain)(type(name, (OpKernel,), {}))
    yield
    registry = global_kernel_registry()
    for one in registry.registrations_for(OP):
        registry.unregister(one)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    graph = Graph()

    def placeholder(dtype: DataType) -> Any:
        return graph.create_op("Placeholder", attrs={"dtype": dtype}).outputs[0]

    x, sizes = placeholder(DataType.DT_FLOAT), placeholder(DataType.DT_INT32)
    graph.create_op(OP, [x, sizes], name="float")
    graph.create_op(OP, [placeholder(DataType.DT_HALF), sizes], name="half")
    graph.create_op(OP, [placeholder(DataType.DT_STRING), sizes], name="string")
    graph.create_op(OP, [x, sizes], name="wrong_label", attrs={"_kernel": "slow"})
    with graph.device("/device:GPU:0"):
        graph.create_op(OP, [x, sizes], name="on/gpu")
    graph.create_op("Switch", [x, placeholder(DataType.DT_BOOL)], name="switch")
    graph.create_op("Enter", [x], name="enter", attrs={"frame_name": "f"})
    graph.create_op("InfeedDequeue", name="infeed", attrs={"shape": [], "dtype": DataType.DT_FLOAT})
    inner = Graph(function_library=graph.function_library)
    a = inner.create_op("Placeholder", name="a", attrs={"dtype": DataType.DT_FLOAT}).outputs[0]
    negative = inner.create_op("Neg", [a], name="negative").outputs[0]
    graph.function_library.add_function(
        graph_to_function_def(inner, "f", [a], [negative], output_names=["y"])
    )
    graph.create_op("f", [x], name="call")
    file = tmp_path / "model.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    return file


def explained(command: Command, *arguments: Any) -> dict[str, Any]:
    done = command("explain", *map(str, arguments), "--json")
    assert done.exit_code == 0, done.output
    facts: dict[str, Any] = json.loads(done.output)
    return facts


def verdicts(facts: dict[str, Any]) -> dict[str, str]:
    return {one["kernel"]: one["verdict"] for one in facts["kernels"]}


def failing(facts: dict[str, Any], kernel: str) -> list[str]:
    (one,) = [one for one in facts["kernels"] if one["kernel"] == kernel]
    return [condition["subject"] for condition in one["conditions"] if not condition["holds"]]


def test_what_became_of_each_kernel(command: Command, model: Path) -> None:
    facts = explained(command, model, "float")
    assert facts["kernel"] == "Better"
    assert verdicts(facts) == {
        "Better": "chosen",
        "Plain": "fits, but Better has a higher priority",
        "ForAll": "fits, but the kernel for CPU goes before",
        "Labelled": "does not fit",
        "OfMode": "does not fit",
        "ForGpu": "does not fit",
    }
    assert failing(facts, "Labelled") == ["label"]
    assert failing(facts, "OfMode") == ["mode"]
    assert failing(facts, "ForGpu") == ["device"]


def test_what_would_change_it(command: Command, model: Path) -> None:
    assert sorted(explained(command, model, "float")["changes"]) == [
        "Register Plain at a priority above 1.",
        "Run it on GPU: it gets ForGpu.",
        "Set mode to valid or another value that it takes: it gets OfMode.",
        "Set the attr _kernel to 'fast': it gets Labelled.",
    ]
    assert "Cast x to float: it gets Better." in explained(command, model, "half")["changes"]


def test_no_kernel(command: Command, model: Path) -> None:
    facts = explained(command, model, "string")
    assert facts["kernel"] is None
    assert set(verdicts(facts).values()) == {"does not fit"}
    assert failing(facts, "Plain") == ["T"]
    assert failing(facts, "Labelled") == ["label", "T"]
    assert "Cast x to float or another type that it takes: it gets Plain." in facts["changes"]
    assert "No registered 'ExplainedInTests' OpKernel for CPU devices" in facts["error"]
    text = command("explain", str(model), "string").output
    assert text.startswith(
        f"string: {OP} on CPU\nIt has no kernel: none of the 6 kernels of {OP} fits.\n"
    )
    assert "  no  T = string (not one of half, float)\n" in text


def test_a_label_that_no_kernel_has(command: Command, model: Path) -> None:
    facts = explained(command, model, "wrong_label")
    assert facts["kernel"] is None
    assert failing(facts, "Plain") == failing(facts, "Labelled") == ["label"]
    assert "Drop the attr _kernel: it gets Plain." in facts["changes"]


def test_memory(command: Command, model: Path) -> None:
    half = explained(command, model, "half")
    assert half["inputs"] == [
        {"name": "x", "dtype": "half", "memory": "device", "reason": ""},
        {"name": "sizes", "dtype": "int32", "memory": "host", "reason": "the kernel asks for it"},
    ]
    string = explained(command, model, "string")
    assert [port["reason"] for port in string["inputs"]] == [
        "as every string",
        "as every int32 without a kernel",
    ]


def test_another_device(command: Command, model: Path) -> None:
    facts = explained(command, model, "float", "--device", "GPU")
    assert facts["kernel"] == "ForGpu"
    assert verdicts(facts)["ForAll"] == "fits, but the kernel for GPU goes before"
    facts = explained(command, model, "float", "--device", "TPU")
    assert facts["kernel"] == "ForAll"
    facts = explained(command, model, "float", "--device", "XLA_CPU_JIT")
    assert facts["kernel"] is None


def test_the_text(command: Command, model: Path) -> None:
    lines = command("explain", str(model), "on/gpu").output.splitlines()
    statement = lines.pop(4)
    assert "# 'on/gpu'" in statement
    assert lines[:9] == [
        f"on/gpu: {OP} on CPU",
        "It has the kernel Better.",
        f"Sessions run it on {CPU.name}: it asks for /device:GPU:0; kernels: CPU.",
        "Steps run it as it is.",
        "",
        f"Better ({__name__}, priority 1): chosen",
        "  ok  device = CPU",
        "  ok  T = float",
        "",
    ]
    assert "  no  label = none (not fast)" in lines
    assert "  ok  device = CPU (serves every device that has no kernel itself)" in lines
    assert "What would change the kernel:" in lines


@pytest.mark.parametrize(
    ("node", "run_by", "text"),
    [
        ("switch", "executor", "Switch is part of how graphs are run"),
        ("call", "function", "f is a function of the graph: its body is run."),
        ("infeed", "kernel", "It has no kernel: none is registered for InfeedDequeue."),
        ("f/negative", "kernel", "It has the kernel "),
    ],
)
def test_what_runs_a_node(command: Command, model: Path, node: str, run_by: str, text: str) -> None:
    assert explained(command, model, node)["run_by"] == run_by
    assert text in command("explain", str(model), node).output


def test_two_kernels_to_choose_from(command: Command, model: Path) -> None:
    register_kernel(Name(OP).device("CPU").priority(2))(type("Rival", (OpKernel,), {}))
    register_kernel(Name(OP).device("CPU").priority(2))(OpKernel)
    register_kernel(Name(OP).device("CPU").priority(2).type_constraint("T", "float"))(
        type("Other", (OpKernel,), {})
    )
    facts = explained(command, model, "float")
    assert facts["kernel"] is None
    assert verdicts(facts)["Other"] == "fits, and so does another"
    assert "Unregister Other, or register it at another priority." in facts["changes"]
    assert "It has no kernel: Multiple OpKernel registrations match" in (
        command("explain", str(model), "float").output
    )


def test_no_such_node(command: Command, model: Path) -> None:
    done = command("explain", str(model), "flaot")
    assert done.exit_code == 1
    assert done.output == (
        "Error: NOT_FOUND: the graph has no node or op 'flaot'; perhaps you mean float\n"
    )


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A model with a product of matrices, and with the negative of one."""
    graph = Graph()
    attrs = {"dtype": DataType.DT_FLOAT, "shape": [2, 2]}
    x = graph.create_op("Placeholder", name="x", attrs=attrs).outputs[0]
    graph.create_op("MatMul", [x, x], name="product")
    graph.create_op("Neg", [x], name="negative")
    file = tmp_path / "product.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    return file


def providers(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """All but `loops`, which is available only where Numba is."""
    return [one for one in facts["providers"] if one["name"] != "loops"]


def asked(facts: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["verdict"] for one in providers(facts)}


def test_who_computes_a_node(command: Command, product: Path) -> None:
    facts = explained(command, product, "product")
    assert facts["provider"] == "blas"
    assert asked(facts) == {"blas": "chosen", "numpy": "not asked: blas computes it"}
    assert [one["prepares"] for one in providers(facts)] == [["b"], []]
    assert "The provider blas computes it." in command("explain", str(product), "product").output
    facts = explained(command, product, "product", "--provider", "numpy")
    assert facts["provider"] == "numpy"
    assert asked(facts) == {"numpy": "chosen", "blas": "not among those to be asked"}
    facts = explained(command, product, "negative")
    assert asked(facts) == {"blas": "has no kernel of Neg", "numpy": "chosen"}


def test_why_a_provider_does_not_compute_a_node(command: Command, product: Path) -> None:
    class Provider(KernelProvider):
        is_here = True
        shapes: ClassVar[list[str]] = []

        def is_available(self) -> bool:
            return self.is_here

        def supports(self, node: Any, shapes: Any) -> bool:
            self.shapes.extend(map(str, shapes))
            return False

    refusing, narrow, absent = (Provider(f"p{i}", 90 - i) for i in range(3))

    for one, types in ((refusing, ["float"]), (narrow, ["half"])):
        register_kernel(
            Name("MatMul").device("CPU").type_constraint("T", types), registry=one.kernels
        )(type("Kernel", (OpKernel,), {}))
    absent.is_here = False
    for one in (refusing, narrow, absent):
        register_provider(one)
    try:
        facts = explained(command, product, "product")
    finally:
        for one in (refusing, narrow, absent):
            unregister_provider(one.name)
    assert facts["provider"] == "blas"
    assert asked(facts) == {
        "p0": "does not support it",
        "p1": "its kernel is not for T = float",
        "blas": "chosen",
        "numpy": "not asked: blas computes it",
        "p2": "not available here",
    }
    assert {*Provider.shapes} == {"[2,2]"}


def test_providers_of_a_run(command: Command, product: Path) -> None:
    x = ("--input", "x=[[1, 2], [3, 4]]", "--fetch", "product", "--json")
    results = [
        json.loads(command("run", str(product), *x, *providers).output)
        for providers in (
            (),
            ("--provider", "numpy"),
            ("--provider", "numpy", "--provider", "blas"),
        )
    ]
    assert results[0] == results[1] == results[2]
    done = command("run", str(product), *x, "--provider", "nimpy")
    assert done.exit_code == 1
    assert "There is no kernel provider 'nimpy'; there are " in done.output
