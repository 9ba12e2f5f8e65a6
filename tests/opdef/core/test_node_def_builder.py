import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import NodeDefBuilder, OpDefBuilder, OpRegistry, fake_input, summarize_node_def
from opkernel.types import bool_, float32, int32, string


@pytest.fixture
def build():
    """A builder of node `n` for an op `Op` with these specs (`input a: T`, `attr T: type` ...)."""

    def start(*calls):
        builder, registry = OpDefBuilder("Op"), OpRegistry()
        for call in calls:
            method, spec = call.split(" ", 1)
            getattr(builder, method)(spec)
        registry.register(builder)
        return NodeDefBuilder("n", "Op", registry)

    return start


def text_of(builder):
    return summarize_node_def(builder.finalize())


def errors_of(builder):
    with pytest.raises(InvalidArgumentError) as caught:
        builder.finalize()
    return str(caught.value)


def test_inputs_control_inputs_and_device(build):
    builder = build("input a: int32", "input b: float").control_input("z").input("x", 0, int32)
    builder.control_input("y").input("x", 2, float32.ref).device("/cpu:0")
    assert text_of(builder) == '{{node n}} = Op[_device="/cpu:0"](x, x:2, ^z, ^y)'
    assert text_of(builder) == text_of(builder)


def test_attrs_are_inferred(build):
    specs = ["attr T: type", "attr N: int", "attr M: int", "attr L: list(type)", "attr R: type"]
    inputs = ["input a: T", "input b: N * T", "input c: M * float", "input d: L", "input e: Ref(R)"]
    builder = build(*inputs, *specs).input("a", 0, int32)
    builder.input_list([("b", 0, int32), ("b", 1, int32.ref)]).input_list([("c", 0, float32)])
    builder.input_list([("d", 0, bool_), ("d", 1, string)]).input("e", 0, bool_.ref)
    assert text_of(builder) == (
        "{{node n}} = Op[L=[DT_BOOL, DT_STRING], M=1, N=2, R=DT_BOOL, T=DT_INT32]"
        "(a, b, b:1, c, d, d:1, e)"
    )


def test_an_empty_list_leaves_its_type_to_the_default(build):
    specs = ["input a: N * T", "attr N: int >= 0", "attr T: type = DT_INT32"]
    assert text_of(build(*specs).input_list([])) == "{{node n}} = Op[N=0, T=DT_INT32]()"
    given = build(*specs).attr("T", string).input_list([])
    assert text_of(given) == "{{node n}} = Op[N=0, T=DT_STRING]()"


def test_attrs_are_given(build):
    builder = build("attr i: int", "attr f: float", "attr s: list(string) = []", "attr d: int = 7")
    builder.attr("i", 3).attr("f", 2).attr("_free", "x")
    assert text_of(builder) == '{{node n}} = Op[_free="x", d=7, f=2, i=3, s=[]]()'


def test_a_value_that_is_inferred_may_be_given_too(build):
    builder = build("input a: T", "attr T: type").attr("T", int32).input("x", 0, int32)
    assert text_of(builder) == "{{node n}} = Op[T=DT_INT32](x)"


@pytest.mark.parametrize(
    ("calls", "steps", "message"),
    [
        (["input a: int32"], [], "0 inputs specified of 1 inputs in Op"),
        ([], [("input", "x", 0, int32)], "More Input() calls than the 0 input_args"),
        (["input a: int32"], [("input", "", 0, int32)], "Empty input node name"),
        (
            ["input a: int32"],
            [("input", "^x", 0, int32)],
            "Non-control input starting with ^: ^x",
        ),
        (
            ["input a: int32"],
            [("input", "x", 0, float32)],
            "Input 'a' passed float expected int32",
        ),
        (
            ["input a: Ref(int32)"],
            [("input", "x", 0, int32)],
            "Input 'a' passed int32 expected int32_ref",
        ),
        (
            ["input a: Ref(T)", "attr T: type"],
            [("input", "x", 0, int32)],
            "Input 'a' passed int32 expected ref type",
        ),
        (
            ["input a: int32"],
            [("input_list", [("x", 0, int32)])],
            "List provided to input 'a' when single Tensor expected",
        ),
        (
            ["input a: N * int32", "attr N: int"],
            [("input", "x", 0, int32)],
            "Single tensor passed to 'a', expected list",
        ),
        (
            ["input a: N * T", "attr N: int", "attr T: type"],
            [("input_list", [("x", 0, int32), ("x", 1, string)])],
            "Input 'a' passed string expected int32",
        ),
        (
            ["input a: T", "input b: T", "attr T: type"],
            [("input", "x", 0, bool_), ("input", "y", 0, string)],
            "Inconsistent values for attr 'T' DT_BOOL vs. DT_STRING",
        ),
        (
            ["attr a: int"],
            [("attr", "a", 1), ("attr", "a", 2)],
            "Inconsistent values for attr 'a' 1 vs. 2",
        ),
        (["attr a: int"], [("attr", "a", 1.5)], "Attr 'a': 1.5 is not a value for an attr of type"),
    ],
)
def test_one_error(build, calls, steps, message):
    builder = build(*calls)
    for method, *args in steps:
        getattr(builder, method)(*args)
    text = errors_of(builder)
    assert text.startswith(message)
    assert " while building NodeDef 'n' using Op<name=Op; signature=" in text


def test_several_errors(build):
    builder = build("input a: int32", "input b: Ref(T)", "attr T: type")
    builder.input("", 0, float32).input("x", 0, bool_).input("y", 0, bool_)
    assert errors_of(builder).split("\n") == [
        (
            "4 errors while building NodeDef 'n' using "
            "Op<name=Op; signature=a:int32, b:Ref(T) -> ; attr=T:type>:"
        ),
        "Empty input node name",
        "Input 'a' passed float expected int32",
        "Input 'b' passed bool expected ref type",
        "More Input() calls than the 2 input_args",
    ]


def test_an_unknown_op():
    builder = NodeDefBuilder("n", "Nope", OpRegistry()).input("x", 0, int32).input(fake_input())
    text = errors_of(builder.attr("a", 1))
    assert text.startswith("Op type not registered 'Nope'")
    assert text.endswith(" while building NodeDef 'n'")


# -- fake inputs ----------------------------------------------------------------------------------


def test_fake_inputs_take_what_is_known(build):
    inputs = ["input a: int32", "input b: T", "input c: N * T", "input d: L", "input e: Ref(T)"]
    builder = build(*inputs, "attr T: type", "attr N: int", "attr L: list(type)")
    builder.input(fake_input()).input(fake_input(bool_)).input(fake_input(2))
    builder.input(fake_input([int32, string]))
    assert text_of(builder.input(fake_input())) == (
        "{{node n}} = Op[L=[DT_INT32, DT_STRING], N=2, T=DT_BOOL](a, b, c, c:1, d, d:1, e)"
    )


def test_fake_inputs_are_called_by_letters(build):
    builder = build(*[f"input i{i}: int32" for i in range(28)])
    for _ in range(28):
        builder.input(fake_input())
    assert list(builder.finalize().input) == [*"abcdefghijklmnopqrstuvwxyzab"]


def test_fake_lists_may_be_empty(build):
    specs = ["input a: N * int32", "input b: L", "attr N: int >= 0", "attr L: list(type) >= 0"]
    builder = build(*specs).input(fake_input(0)).input(fake_input([]))
    assert text_of(builder) == "{{node n}} = Op[L=[], N=0]()"


def test_fake_inputs_of_a_number_and_a_type(build):
    builder = build("input a: N * T", "attr N: int", "attr T: type").input(fake_input(2, bool_))
    assert text_of(builder) == "{{node n}} = Op[N=2, T=DT_BOOL](a, a:1)"


def test_fake_inputs_take_what_attrs_say(build):
    builder = build(
        "input a: N * T",
        "input b: L",
        "attr N: int",
        "attr T: type = DT_INT32",
        "attr L: list(type)",
    )
    builder.attr("N", 1).attr("L", [bool_]).input(fake_input()).input(fake_input())
    assert text_of(builder) == "{{node n}} = Op[L=[DT_BOOL], N=1, T=DT_INT32](a, b)"


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (["input a: T", "attr T: type"], "Could not infer type for input 'a': No attr named 'T'"),
        (
            ["input a: N * int32", "attr N: int"],
            "Could not infer length of input 'a': No attr named 'N'",
        ),
        (
            ["input a: L", "attr L: list(type)"],
            "Could not infer list of types for input 'a': No attr named 'L'",
        ),
    ],
)
def test_fake_inputs_of_which_nothing_is_known(build, calls, message):
    assert message in errors_of(build(*calls).input(fake_input()))
