import gzip
import lzma

import pytest
from google.protobuf import text_format

from opkernel.errors import (
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)
from opkernel.opdef import (
    OpDefBuilder,
    OpHistory,
    compare_with_history,
    op_def_compatible,
    op_differences,
    parse_op_history,
    read_op_history,
    refused_steps,
    write_op_history,
)
from opkernel.proto import OpDef, OpList

TEXT = """\
op {
  name: "Add"
  input_arg {
    name: "x"
    type: DT_FLOAT
  }
}
op {
  name: "Add"
  input_arg {
    name: "x"
    type_attr: "T"
  }
  attr {
    name: "T"
    type: "type"
    default_value {
      type: DT_FLOAT
    }
  }
}
op {
  name: "Mul"
}
"""


def op(name, *attrs, doc=""):
    builder = OpDefBuilder(name).doc(doc)
    for attr in attrs:
        builder.attr(attr)
    return builder.finalize().op_def


def definitions(history):
    return {name: len(history[name]) for name in history}


def found(comparison):
    return [(change.op, change.rule.value, change.part) for change in comparison.changes]


@pytest.mark.parametrize(
    "pack",
    [
        str.encode,
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: lzma.compress(text.encode()),
        lambda text: text_format.Parse(text, OpList()).SerializeToString(),
        lambda text: gzip.compress(text_format.Parse(text, OpList()).SerializeToString()),
        lambda text: b"\n# a comment\n" + text.encode(),
        lambda text: text.replace("op {", "op <").replace("\n}", "\n>").encode(),
        lambda text: " ".join(text.split()).encode(),
        lambda text: text.replace("name:", "name :").encode(),
        lambda text: text.replace('"float"', '"float",').encode(),
    ],
    ids=[
        "text",
        "crlf",
        "gzip",
        "xz",
        "binary",
        "binary gzip",
        "comment",
        "angles",
        "one line",
        "blank",
        "comma",
    ],
)
def test_files_of_every_kind(tmp_path, pack):
    path = tmp_path / "history"
    path.write_bytes(pack(TEXT))
    history = read_op_history(path)
    assert definitions(history) == {"Add": 2, "Mul": 1}
    expected = text_format.Parse(TEXT, OpList())
    assert [revision.op_def for revision in history.revisions()] == list(expected.op)


def test_lines_of_definitions():
    text = TEXT.replace('}\nop {\n  name: "Mul', '}\n\nop {\n  name: "Mul')
    history = parse_op_history(text.encode(), "h.pbtxt")
    lines = text.splitlines()
    assert [revision.line for revision in history.revisions()] == [1, 8, 23]
    assert all(lines[revision.line - 1] == "op {" for revision in history.revisions())


def test_definitions_are_parsed_when_they_are_looked_at():
    history = parse_op_history(TEXT.replace("type: DT_FLOAT", "type: DT_FLAOT", 1).encode(), "h")
    assert definitions(history) == {"Add": 2, "Mul": 1}
    assert history["Add"][1].op_def.attr[0].name == "T"
    with pytest.raises(InvalidArgumentError, match=r"h, op 'Add', line 5: .*DT_FLAOT"):
        _ = history["Add"][0].op_def


@pytest.mark.parametrize("name", ["h.pbtxt", "h.pbtxt.gz", "h.pbtxt.xz", "h.pb", "h.pb.xz", "h"])
def test_writing_and_reading(tmp_path, name):
    history = parse_op_history(TEXT.encode(), "h")
    write_op_history(history, tmp_path / name)
    again = read_op_history(tmp_path / name)
    assert [r.op_def for r in again.revisions()] == [r.op_def for r in history.revisions()]


def test_what_is_not_changed_is_written_as_it_was(tmp_path):
    text = TEXT.replace('"Mul"\n', '"Mul"\n  # a comment\n')
    history = parse_op_history(text.encode(), "h")
    history.add([op("New", "a: int = 1")])
    write_op_history(history, tmp_path / "h.pbtxt")
    new = (
        'op {\n  name: "New"\n  attr {\n    name: "a"\n    type: "int"\n'
        "    default_value {\n      i: 1\n    }\n  }\n}\n"
    )
    assert (tmp_path / "h.pbtxt").read_text() == text + new


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01",
        b"hello",
        b"node { name: 'x' }",
        b"\x1f\x8bxx",
        b"\xfd7zXZ\x00rubbish",
        b"op {",
        b"op { nmae: 'A' }",
        b'op {\n  name: "\xff"\n}\n',
        b"op { name: 'A' }\n}",
    ],
)
def test_other_files_are_refused(data):
    with pytest.raises(InvalidArgumentError, match=r"^some\.file"):
        _ = [revision.op_def for revision in parse_op_history(data, "some.file").revisions()]


def test_a_line_that_is_not_utf_8_is_counted_from_one():
    for lines_before in (0, 1, 3):
        with pytest.raises(
            InvalidArgumentError, match=rf"^h, line {lines_before + 1} is not UTF-8$"
        ):
            parse_op_history(b"#\n" * lines_before + b"# \xff\n", "h")


@pytest.mark.parametrize("names", [[""], ["A", ""], ["", "A"]])
def test_binary_lists_with_an_op_without_a_name_are_refused(names):
    data = OpList(op=[OpDef(name=name) for name in names]).SerializeToString()
    with pytest.raises(InvalidArgumentError, match=r"^h is no OpList"):
        parse_op_history(data, "h")


def test_a_misspelt_field_is_no_silence():
    with pytest.raises(InvalidArgumentError, match=r"h, op 'A', line 3: .*minimun"):
        _ = parse_op_history(b'op {\n  name: "A"\n  minimun: 3\n}\n', "h")["A"][0].op_def


def test_an_empty_file_is_an_empty_history():
    assert len(parse_op_history(b"", "h")) == 0
    assert len(parse_op_history(b"# nothing yet\n", "h")) == 0


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(NotFoundError, match=r"none\.pbtxt; No such file"):
        read_op_history(tmp_path / "none.pbtxt")
    with pytest.raises(NotFoundError, match="No such file"):
        write_op_history(OpHistory(), tmp_path / "none" / "h.pb")
    with pytest.raises(InvalidArgumentError, match="is not the path of a file"):
        read_op_history("a\0b")


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr("opkernel.opdef.compat.op_history._MAX_BYTES", 1000)
    with pytest.raises(ResourceExhaustedError, match="h is larger than 1000 bytes"):
        parse_op_history(lzma.compress(b" " * 5000), "h")


def test_adding():
    history = OpHistory.of([op("B", "a: {'x'}"), op("D")])
    comparison = history.add([op("D", doc="Does."), op("C"), op("B", "a: {'x', 'y'}"), op("_I")])
    assert comparison.added == ["C"]
    assert comparison.changed == ["B"]
    assert definitions(history) == {"B": 2, "C": 1, "D": 1}
    assert list(history) == ["B", "C", "D"]
    assert history.add([op("B", "a: {'x', 'y'}")]).changed == []
    assert history.newest()[0] == op("B", "a: {'x', 'y'}")


def test_documentation_is_left_out():
    history = OpHistory()
    history.add([op("A", doc="Sums.")])
    assert history.newest() == [OpDef(name="A")]


def test_what_breaks_graphs_is_not_added():
    history = OpHistory.of([op("A", "a: int"), op("B", "a: int = 1")])
    with pytest.raises(
        InvalidArgumentError, match=r"^Incompatible Op change: B: Attr 'a' has changed its"
    ):
        history.add([op("A", "a: int", "b: int = 2"), op("B", "a: int = 2")])
    assert definitions(history) == {"A": 1, "B": 1}


def test_removed_ops():
    history = OpHistory.of([op("A"), op("B"), op("_C")])
    assert found(compare_with_history(history, [op("B")])) == [("A", "op-removed", "")]
    assert found(compare_with_history(history, [op("B")], stable_ops={"B", "_C"})) == []
    assert found(compare_with_history(history, [], stable_ops={"B"})) == [("B", "op-removed", "")]


def test_every_earlier_definition_counts():
    history = OpHistory.of([op("A", "a: {'x', 'y'}"), op("A", "a: {'x'}")])
    comparison = compare_with_history(history, [op("A", "a: {'x'}", "b: int = 1")])
    assert found(comparison) == [("A", "attr-values-stricter", "a")]


def test_the_last_definition_is_not_questioned():
    history = OpHistory.of([op("A", "a: {'x', 'y'}"), op("A", "a: {'x'}")])
    assert found(compare_with_history(history, [op("A", "a: {'x'}")])) == []


def test_a_change_is_told_once_and_of_the_latest_definition():
    history = OpHistory.of([op("A", "a: {'x'}"), op("A", "a: {'x', 'y'}")])
    (change,) = compare_with_history(history, [op("A", "a: {'z'}")]).changes
    assert change.fact.endswith('from ["x", "y"] to ["z"]')


def test_defaults_are_held_against_the_last_definition():
    history = OpHistory.of([op("A", "a: int = 1"), op("A", "a: int = 2")])
    assert found(compare_with_history(history, [op("A", "a: int = 2", "b: int = 0")])) == []
    assert found(compare_with_history(history, [op("A", "a: int = 1")])) == [
        ("A", "default-changed", "a")
    ]


def test_defaults_of_added_attrs():
    history = OpHistory.of([op("A"), op("A", "a: int = 1")])
    assert found(compare_with_history(history, [op("A", "a: int = 2")])) == [
        ("A", "default-changed", "a"),
        ("A", "added-default-changed", "a"),
    ]


def test_new_and_changed_ops_must_be_valid():
    broken = OpDef(name="A")
    broken.input_arg.add(name="x")
    for history in (OpHistory(), OpHistory.of([op("A")])):
        with pytest.raises(InvalidArgumentError, match="Missing type for input 'x'"):
            compare_with_history(history, [broken])


def test_damaged_files_raise_nothing_else():
    data = text_format.Parse(TEXT, OpList()).SerializeToString()
    for source in (data, TEXT.encode()):
        for cut in range(len(source)):
            for damaged in (source[:cut], source[:cut] + b"\xf0" + source[cut + 1 :]):
                try:
                    history = parse_op_history(damaged, "h")
                    compare_with_history(history, [op("Add"), op("Mul")])
                except OpError:
                    pass


def test_differences():
    old = OpDefBuilder("A").input("x: T").attr("T: {float, half}").attr("n: int >= 1 = 1")
    new = OpDefBuilder("A").input("x: T").input("y: T").attr("T: {float, int8}").attr("n: int = 2")
    new.attr("new: bool = true").set_is_stateful().deprecated(9, "")
    assert list(op_differences(old.attr("gone: int").finalize().op_def, new.finalize().op_def)) == [
        "gone: removed",
        "T: +int8 -half",
        "n: default 1 -> default 2",
        "n: minimum 1 -> None",
        "new: bool added, default true",
        "inputs (x:T) -> (x:T, y:T)",
        "is_stateful set",
        "deprecated from GraphDef version 9 on",
    ]


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ("n: int", "n: float", ["n: int -> float"]),
        ("n: int = 1", "n: int", ["n: default 1 -> no default"]),
        ("n: int", "n: int = 0", ["n: no default -> default 0"]),
        ("n: int = 1", "n: int = 1", []),
        ("n: int >= 0", "n: int", ["n: minimum 0 -> None"]),
        ("n: int >= 0", "n: int >= 1", ["n: minimum 0 -> 1"]),
        ("T: {float, int8}", "T: type", ["T: allows any value"]),
        ("T: type", "T: {float}", ["T: allows only [DT_FLOAT]"]),
        ("T: {float, int8}", "T: {int8, float}", ["T: allowed values in another order"]),
        ("T: {float, int8}", "T: {float, int8}", []),
        ("s: {'a', 'b'}", "s: {'b', 'c'}", ["s: +'c' -'a'"]),
    ],
)
def test_differences_of_an_attr(old, new, differences):
    assert list(op_differences(op("A", old), op("A", new))) == differences


def test_differences_of_many_attrs():
    assert list(op_differences(op("A", "a: int", "b: int"), op("A", "b: int", "a: int"))) == [
        "attrs in another order"
    ]
    gone = [f"gone{i}: int" for i in range(9)]
    assert list(op_differences(op("A", *gone, "a: int"), op("A", "a: int"))) == [
        f"gone{i}: removed" for i in range(9)
    ]
    stateful = OpDefBuilder("A").set_is_stateful().finalize().op_def
    assert list(op_differences(stateful, op("A"))) == ["is_stateful cleared"]


def test_steps_that_a_history_refuses_itself():
    history = OpHistory.of(
        [op("A", "T: {float, int8}"), op("A", "T: {float}"), op("A", "T: {float, int8}"),
         op("B", "n: int = 1"), op("B", "n: int = 2"), op("C", "n: int"),
         op("D", "n: int = 1"), op("D", "n: int = 1", "m: int = 1")]
    )  # fmt: skip
    refused = [
        (revision.op_def == history[change.op][1].op_def, change.op, change.rule.value)
        for revision, change in refused_steps(history)
    ]
    assert [(is_second, name) for is_second, name, _ in refused] == [(True, "A"), (True, "B")]
    assert refused[0][2] == "attr-values-stricter"


TAKEN_BACK = {
    "Acos", "Asin", "Atan", "Tan", "Softplus", "SoftplusGrad", "Softsign", "SoftsignGrad",
}  # fmt: skip
DEFAULTS = {"MaxPoolGradWithArgmax", "MaxPoolWithArgmax", "Placeholder"}


@pytest.mark.shared
@pytest.mark.parametrize(("name", "ops", "size"), [("v1", 1260, 2345), ("v2", 1563, 3316)])
def test_the_history_of_tensorflow(shared, tmp_path, name, ops, size):
    history = read_op_history(shared / f"facts/ops_history_{name}.pbtxt.xz")
    assert len(history) == ops
    assert sum(definitions(history).values()) == size
    comparison = compare_with_history(history, history.newest())
    assert (comparison.added, comparison.changed, comparison.changes) == ([], [], [])

    # Every step is accepted but for those that TensorFlow's own rules refuse: integer types that
    # were taken back, and defaults of three ops.
    refused = [(change.op, change.rule.value) for _, change in refused_steps(history)]
    assert {op for op, rule in refused if rule == "attr-values-stricter"} == TAKEN_BACK
    assert {op for op, rule in refused if rule != "attr-values-stricter"} == DEFAULTS
    assert len(refused) == 11
    for op in history.keys() - TAKEN_BACK:
        for earlier in history[op][:-1]:
            op_def_compatible(earlier.op_def, history[op][-1].op_def)

    write_op_history(history, tmp_path / "again.pbtxt")
    packed = (shared / f"facts/ops_history_{name}.pbtxt.xz").read_bytes()
    text = lzma.decompress(packed).decode().replace("\r\n", "\n")
    text = text.replace("\n\n", "\n")
    assert (tmp_path / "again.pbtxt").read_text() == text


@pytest.mark.shared
def test_version_2_goes_on_from_version_1(shared):
    first = read_op_history(shared / "facts/ops_history_v1.pbtxt.xz")
    second = read_op_history(shared / "facts/ops_history_v2.pbtxt.xz")
    comparison = compare_with_history(first, second.newest())
    assert found(comparison) == [
        (op, "attr-values-stricter", "T") for op in ("ArgMax", "ArgMin", "Max", "Min")
    ]
