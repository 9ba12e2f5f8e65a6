"""What an author sees who registers wrongly, from a script and from `opkernel test`: what, where, rule, fix."""

import runpy
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.cli.conftest import Command

from opkernel.kernel import global_kernel_registry
from opkernel.opdef import global_op_registry

GOOD_OP = """
op = opkernel.register_op(
    "OP", inputs=["x: T"], outputs=["y: T"], attrs=["T: {float, int32}", "k: int >= 1 = 2"],
    shape_fn=unchanged_shape,
)
"""
FUNCTION = "def twice(x):\n    return x + x\n"


class Wrong(NamedTuple):
    """A module, on whose line with `# here` the fault is told; the subject, the rule and the fix in it."""

    source: str
    subject: str
    rule: str
    fix: str


def op(subject: str, rule: str, fix: str, **changed: str) -> Wrong:
    """A wrong op: what is `changed` of a right one."""
    right = {"inputs": "['x: T']", "outputs": "['y: T']", "attrs": "['T: {float, int32}']"}
    given = {**right, "shape_fn": "unchanged_shape", **changed}
    name = given.pop("name", "'OP'")
    arguments = ", ".join(f"{key}={value}" for key, value in given.items())
    return Wrong(f"opkernel.register_op({name}, {arguments})  # here", subject, rule, fix)


def kernel(
    arguments: str, rule: str, fix: str, function: str = FUNCTION, subject: str = "OP"
) -> Wrong:
    """A wrong kernel of a right op."""
    source = f"{GOOD_OP}\n@opkernel.register_kernel({arguments})  # here\n{function}"
    return Wrong(source, subject, rule, fix)


RIVAL = f"""
@opkernel.register_kernel(op, device="CPU")
{FUNCTION}
@opkernel.register_kernel(op, device="CPU")
def double(x):
    return 2 * x

opkernel.raw_ops.OP(x=1.0)  # here
"""

WRONG = {
    "a spec without a colon": op(
        'Attr("T {float}") for Op OP',
        "Trouble parsing '<name>:'",
        "at character 2: a colon belongs after the name",
        attrs="['T {float}']",
    ),
    "an input in capitals": op(
        'Input("X: T") for Op OP',
        "names of inputs and outputs are lower case",
        "at character 1",
        inputs="['X: T']",
    ),
    "a reference to no attr": op(
        'Input("x: U") for Op OP',
        "Reference to unknown attr 'U'",
        "attrs are T",
        inputs="['x: U']",
    ),
    "an unknown type": op(
        'Attr("T: {float, flot}") for Op OP',
        "Unrecognized type string 'flot'",
        "at character 12: types are float, double",
        attrs="['T: {float, flot}']",
    ),
    "a default of another type": op(
        'Attr("k: int = two") for Op OP',
        "Could not parse default value 'two'",
        "at character 10: a default of type int is written 3",
        attrs="['T: type', 'k: int = two']",
    ),
    "a default that is not allowed": op(
        "Op 'OP'",
        "attr 'm' of \"c\" is not in the list of allowed values",
        '"a", "b"',
        attrs="""['T: type', "m: {'a', 'b'} = 'c'"]""",
    ),
    "one string for the inputs": op(
        "OP: inputs",
        "must be a list of specs, not the string 'x: T'",
        "write ['x: T']",
        inputs="'x: T'",
    ),
    "no shape function": op(
        "OP: shape_fn",
        "must be a function of one argument, the InferenceContext, not None",
        "opkernel.opdef.unknown_shape says that nothing is known",
        shape_fn="None",
    ),
    "a shape function of no arguments": op(
        "OP: shape_fn",
        "must be a function of one argument, the InferenceContext",
        "too many positional arguments",
        shape_fn="lambda: None",
    ),
    "an op in lower case": op(
        'name: "oP"', "Invalid name: oP", "(Did you use CamelCase?)", name="'oP'"
    ),
    "one name for two arguments": op(
        'name: "OP"', "Duplicate name: x", 'output_arg { name: "x"', outputs="['x: T']"
    ),
    "a text on no argument": op(
        "for Op OP", "for name 'z' from Doc()", "it has x, y, T", doc="'Sum.\\n\\nz: What?'"
    ),
    "an op of TensorFlow": op(
        "Op with name Relu", "declares it already", "choose another name", name="'Relu'"
    ),
    "a device in lower case": kernel(
        "op, device='cpu'",
        "is for devices of type 'cpu', which no factory makes",
        "perhaps you mean 'CPU'",
    ),
    "a device that nobody makes": kernel(
        "op, device='NPU'",
        "is for devices of type 'NPU', which no factory makes",
        "register a type of your own with register_device_factory(...) before its kernels",
    ),
    "no device": kernel("op", "lacks a device", "device='CPU'"),
    "types of an attr that the op lacks": kernel(
        "op, device='CPU', types={'U': opkernel.float32}",
        "has a constraint on attr 'U' not in OpDef",
        "the op has the attrs: T, k",
    ),
    "types that the op does not allow": kernel(
        "op, device='CPU', types={'T': opkernel.string}",
        "with the values [DT_STRING], none of which the op allows",
        "[DT_FLOAT, DT_INT32]",
    ),
    "a type that is none": kernel(
        "op, device='CPU', types={'T': 'flaot'}",
        "the types allowed for attr 'T'",
        "'flaot' is not the name of a DataType",
    ),
    "a value below the minimum": kernel(
        "op, device='CPU', attrs={'k': 0}", "[0], none of which the op allows", "at least 1"
    ),
    "host memory of no argument": kernel(
        "op, device='CPU', host_memory=['sizes']",
        "HostMemory arg 'sizes' not found in OpDef",
        "host_memory takes inputs and outputs: x, y",
    ),
    "too many parameters": kernel(
        "op, device='CPU'",
        "the kernel twice(x, y) does not fit the op OP(x; attrs T, k)",
        "one for each input",
        "def twice(x, y):\n    return x\n",
    ),
    "a keyword that is no attr": kernel(
        "op, device='CPU'",
        "does not fit the op OP(x; attrs T, k)",
        "the op has no attr 'axis'",
        "def twice(x, *, axis):\n    return x\n",
    ),
    "a class that is no kernel": kernel(
        "op, device='CPU'",
        "Twice, the kernel of OP, must be",
        "a class derived from opkernel.OpKernel",
        "class Twice:\n    def compute(self, ctx):\n        pass\n",
    ),
    "a kind that there is not": kernel(
        "op, device='CPU', kind='pointwise'",
        "'pointwise' is no kind of kernel",
        "there are elementwise, same_shapes, view, opaque",
        subject="kernel",
    ),
    "a decorator without a call": Wrong(
        f"{GOOD_OP}\n@opkernel.register_kernel  # here\n{FUNCTION}",
        "register_kernel",
        "takes an op or its name, not <function twice",
        '@register_kernel("Twice", device="CPU")',
    ),
    "two kernels of equal rank": Wrong(
        GOOD_OP + RIVAL,
        '\'op: "OP" device_type: "CPU"\'',
        "Multiple OpKernel registrations match NodeDef at the same priority",
        "give one of them a higher priority=",
    ),
}


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest) -> Wrong:
    return WRONG[request.param]


@pytest.fixture
def module(wrong: Wrong, tmp_path: Path) -> Path:
    """A file with the wrong registration, for an op of its own name."""
    source = f"import opkernel\nfrom opkernel.opdef import unchanged_shape\n{wrong.source}"
    path = tmp_path / f"module_{tmp_path.name}.py"
    path.write_text(source)
    return path


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    for one in global_kernel_registry().registrations_for("OP"):
        global_kernel_registry().unregister(one)
    if global_op_registry().has("OP"):
        global_op_registry().unregister("OP")


def line_of(module: Path) -> int:
    lines = module.read_text().split("\n")
    return next(number for number, line in enumerate(lines, 1) if line.endswith("# here"))


def test_a_script_stops_where_the_fault_is(wrong: Wrong, module: Path) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of several kinds; the message says which
        runpy.run_path(str(module), run_name="__main__")
    message = str(caught.value)
    assert [part for part in wrong[1:] if part not in message] == []
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.lineno for frame in frames if frame.filename == str(module)][-1] == line_of(
        module
    )


def test_opkernel_test_tells_the_line(wrong: Wrong, module: Path, command: Command) -> None:
    result = command("test", module)
    assert result.exit_code == 1
    assert [part for part in wrong[1:] if part not in result.output] == []
    assert f"({module}, line {line_of(module)})" in result.output


def test_two_kernels_are_told_with_their_places(tmp_path: Path, command: Command) -> None:
    """As `opkernel test` meets them, in a module that uses neither."""
    path = tmp_path / "rivals_in_tests.py"
    source = f"import opkernel\nfrom opkernel.opdef import unchanged_shape\n{GOOD_OP}{RIVAL}"
    path.write_text(source.rpartition("\n\n")[0])
    result = command("test", path, "--calls", 5)
    assert result.exit_code == 1
    assert f"twice (module rivals_in_tests, {path}:9)" in result.output
    assert f"double (module rivals_in_tests, {path}:13)" in result.output
    assert "give one of them a higher priority=" in result.output
