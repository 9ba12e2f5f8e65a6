"""Every table holds in any width: no line is longer, and the names of ops are whole."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from opkernel.cli.commands import commands
from opkernel.cli.output import Colored, fold, print_table, print_text

SCOPE = "bert/encoder/layer_0/attention/self/really_rather_long_scope"
STRANGE = "AnOperationThatNobodyHasEverRegistered"
MODEL = f"""
node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "shape" value {{ shape {{ dim {{ size: -1 }} dim {{ size: 4 }} }} }} }} }}
node {{ name: "{SCOPE}/zero" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{}} float_val: 0 }} }} }} }}
node {{ name: "{SCOPE}/less" op: "BatchMatMulV2" input: "x" input: "x"
  device: "/job:localhost/replica:0/task:0/device:CPU:1"
  attr {{ key: "T" value {{ type: DT_FLOAT }} }} attr {{ key: "adj_y" value {{ b: true }} }} }}
node {{ name: "{SCOPE}/sum" op: "AddV2" input: "{SCOPE}/less" input: "{SCOPE}/zero"
  attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
node {{ name: "{SCOPE}/out" op: "Identity" input: "{SCOPE}/sum"
  attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
"""
UNKNOWN = f'node {{ name: "{SCOPE}/strange" op: "{STRANGE}" input: "x" }}'
OPS = """
op { name: "AnOperationWithAHistory" input_arg { name: "x" type: DT_FLOAT } }
op { name: "AnOperationWithAHistory" input_arg { name: "x" type: DT_FLOAT }
  attr { name: "an_attr_that_came_later" type: "int" default_value { i: 1 } } }
"""
MATMUL = ["BatchMatMulV2"]
ONE, TWO = (str(Path(__file__).parent / "saved_models" / name) for name in ("one", "two"))
TABLES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "show": (["show", "strange.pbtxt"], [STRANGE, "BatchMatMulV2", "Placeholder"]),
    "node": (["show", "strange.pbtxt", f"{SCOPE}/less", f"{SCOPE}/strange"], [STRANGE, *MATMUL]),
    "nodes": (["show", "strange.pbtxt", "--scope", "bert"], [STRANGE, *MATMUL]),
    "shapes": (["shapes", "strange.pbtxt"], []),
    "ops": (["ops", "Resource*AdagradDA"], ["ResourceSparseApplyAdagradDA"]),
    "an op": (["ops", "BatchMatMulV2"], MATMUL),
    "ops needed": (["ops", "--needed-by", "strange.pbtxt"], [STRANGE, *MATMUL]),
    "kernels": (["kernels", "BatchMatMulV2"], MATMUL),
    "gaps": (["kernels", "BatchMatMulV2", "--gaps"], MATMUL),
    "coverage": (["coverage", "BatchMatMulV"], [*MATMUL, "BatchMatMulV3"]),
    "missing": (["coverage", "strange.pbtxt"], [STRANGE]),
    "explain": (["explain", "model.pbtxt", f"{SCOPE}/less", "--device-count", "CPU=2"], MATMUL),
    "engines": (["explain", "one.pbtxt", "--jit", "xla"], []),
    "place": (["place", "model.pbtxt", "--device-count", "CPU=2"], MATMUL),
    "optimize": (["optimize", "one.pbtxt", "-o", "out.pb", "-v"], []),
    "profile": (
        ["run", "one.pbtxt", "--input", "x=[[1,2,3,4]]", "--profile"],
        ["BatchMatMulV2"],
    ),
    "test": (["test", "--op", "BatchMatMulV2", "--op", "Neg", "--calls", "2"], MATMUL),
    "doctor": (["doctor"], []),
    "a SavedModel": (["show", TWO, "--all"], ["InitializeTableFromTextFileV2", "PyFunc"]),
    "MetaGraphs": (["show", ONE, "--tag_set", "serve"], ["PlaceholderWithDefault"]),
    "a signature": (["show", TWO, "--signature_def", "serving_default"], []),
    "freeze": (["freeze", TWO, "--signature_def", "look_up", "-o", "out.pb"], []),
    "history": (["history", "ops.pbtxt"], ["AnOperationWithAHistory"]),
}
"""The arguments of commands that print tables, and the ops in these."""


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command beside the files of this module, in so many columns."""
    monkeypatch.chdir(tmp_path)
    Path("model.pbtxt").write_text(MODEL)
    Path("one.pbtxt").write_text(re.sub('device: "[^"]*"', "", MODEL))
    Path("strange.pbtxt").write_text(MODEL + UNKNOWN)
    Path("ops.pbtxt").write_text(OPS)
    return lambda arguments, columns, color=False: CliRunner().invoke(
        commands, arguments, env={"COLUMNS": str(columns)}, color=color
    )


@pytest.mark.parametrize("columns", [45, 80, 200])
@pytest.mark.parametrize("command", TABLES)
def test_no_line_is_longer_than_the_terminal_is_wide(
    printed: Callable[..., Result], command: str, columns: int
) -> None:
    arguments, ops = TABLES[command]
    done = printed(arguments, columns)
    assert not isinstance(done.exception, Exception), done.exception
    lines = click.unstyle(done.output).splitlines()
    assert [line for line in lines if len(line) > columns] == []
    assert [op for op in ops if not any(op in line for line in lines)] == []


def test_a_colour_takes_no_room(printed: Callable[..., Result]) -> None:
    arguments, _ = TABLES["show"]
    plain, colored = (printed(arguments, 45, color=color).output for color in (False, True))
    assert colored != plain
    assert click.unstyle(colored) == plain


def test_in_a_file_a_row_is_a_line(printed: Callable[..., Result]) -> None:
    lines = printed(TABLES["shapes"][0], "").output.splitlines()
    assert any(f"{SCOPE}/less:0" in line and "[?,?]" in line for line in lines)


def test_in_a_file_one_long_cell_pads_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("x" * 100, 1, "long"), ("y", 2, "short")]
    print_table("Names", ("name", "n", "about"), rows, ("n",))
    assert capsys.readouterr().out.splitlines() == [
        "Names",
        f"  {'name':48}  n  about",
        f"  {'x' * 100}  1  long",
        f"  {'y':48}  2  short",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("encoder/layer_0/dense", ["encoder/", "layer_0/", "dense"]),
        ("a, b, c, d, e", ["a, b, c,", "d, e"]),
        ("[2,224,224,3]", ["[2,224,", "224,3]"]),
        ("UnbreakableName", ["Unbreaka", "bleName"]),
        ("short_names_too", ["short_", "names_", "too"]),
        ("字字字字字", ["字字字字", "字"]),
        ("fits", ["fits"]),
        ("", [""]),
    ],
)
def test_text_breaks_where_it_reads_best(text: str, lines: list[str]) -> None:
    assert fold(text, 8) == lines


def test_a_long_name_of_an_op_stands_on_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "32")
    print_table("Ops", ("op", "why"), [("Neg", "a"), ("ResourceApplyAdagradDA", "one two three")])
    assert capsys.readouterr().out.splitlines() == [
        "Ops",
        "  op               why",
        "  Neg              a",
        "  ResourceApplyAdagradDA",
        "                   one two three",
    ]


def test_rows_are_records_where_columns_do_not_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    row = ("12.50", "37", "x, y, z and many others", "AddV2")
    print_table("Hot", ("ms", "calls", "why", "op"), [row], ("ms", "calls"))
    assert capsys.readouterr().out.splitlines() == [
        "Hot",
        "  x, y, z and many",
        "  others",
        "    ms 12.50  calls 37",
        "    op AddV2",
    ]


def test_sentences_hang(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    print_text("  one two three four five\nsix")
    assert capsys.readouterr().out.splitlines() == ["  one two three four", "    five", "six"]


@pytest.mark.parametrize(
    ("arguments", "env", "is_colored"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_colours_on_a_terminal(
    printed: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    env: dict[str, str],
    is_colored: bool,
) -> None:
    for name, value in {"NO_COLOR": "", "TERM": "xterm", **env}.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(commands, ["show", "strange.pbtxt", *arguments], color=True)
    assert ("\x1b[31m" in done.output) == is_colored


def test_what_is_no_terminal_gets_colours_on_request_only(printed: Callable[..., Result]) -> None:
    shown = ["show", "strange.pbtxt"]
    assert "\x1b" not in CliRunner().invoke(commands, shown).output
    assert "\x1b" in CliRunner().invoke(commands, [*shown, "--color", "always"]).output


def test_a_colour_of_a_cell_is_on_each_of_its_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    print_table("T", ("name",), [(Colored("one two three four five", {"fg": "red"}),)])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert lines == ["  \x1b[31mone two three four\x1b[0m", "  \x1b[31mfive\x1b[0m"]
