"""Whatever stands in a model, a library of ops or the name of a file: what commands print is harmless.

Terminals get nothing that steers them, JSON says the names as they are, programs run to the same values.
"""

import ast
import json
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result
from google.protobuf import text_format
from tests.cli.conftest import Command
from tests.cli.hostile_models import ANY_TEXT, FEEDS, FETCHES, imported, model
from tests.hostile_names import HOSTILE_TEXT

from opkernel import Session
from opkernel.cli.commands import commands
from opkernel.proto import GraphDef, OpList, SavedModel
from opkernel.types import DataType

STEERING = {"Cc", "Cf", "Zl", "Zp", "Cs"}
LONG = 65_000


def is_utf8(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


TWO = Path(__file__).parent / "saved_models" / "two"
TEXTS = [text for text in HOSTILE_TEXT if is_utf8(text)]
SHIFTS = range(0, len(TEXTS), 9)
FETCH = [part for one in FETCHES for part in ("--fetch", one)]
FILE_NAMES = [t for t in HOSTILE_TEXT if t and len(t) < 100 and not {*"/\0\ud800"} & {*t}]


def unknown_op(op: str) -> GraphDef:
    """A graph of a node of an op."""
    made = GraphDef()
    made.node.add(name="x", op=op)
    made.versions.producer = 1000
    return made


def check(result: Result) -> str:
    """What a command printed, which steers no terminal, and no traceback."""
    assert isinstance(result.exception, SystemExit | None), result.exception
    errors = result.stderr_bytes or b""  # None with Click 8.1, whose standard output has both
    printed = result.stdout_bytes.decode() + errors.decode()
    assert all(c == "\n" or unicodedata.category(c) not in STEERING for c in printed), printed
    return printed


def parsed(result: Result) -> Any:
    check(result)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("shift", SHIFTS)
def test_models(
    shift: int, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = model()
    used = [TEXTS[(number + shift) % len(TEXTS)] for number in range(len(ANY_TEXT))]
    for put, text in zip(ANY_TEXT, used, strict=True):
        put(made, text)
    file = tmp_path / "model.pb"
    file.write_bytes(made.SerializeToString())
    shown = parsed(command("show", file, "--json"))
    functions = {one.signature.name for one in made.library.function}
    called = {node.op for node in made.node} & functions
    assert called <= shown["ops"].keys()
    result = command("place", file, "--json")
    if result.exit_code == 0:
        placed = parsed(result)["nodes"]
        assert [one["name"] for one in placed] == [node.name for node in made.node]
        assert {one["op"] for one in placed} >= called
    for words in (
        ("show", file),
        ("show", file, "--name", "*"),
        ("show", file, *[node.name for node in made.node if not node.name.startswith("-")]),
        ("place", file),
        ("shapes", file),
        ("explain", file, "softmax"),
        ("explain", file, "direct"),
        ("optimize", file, "-o", "optimized.pbtxt", "-v"),
        ("decompile", file, *FETCH),
        ("decompile", file, "--numpy", *FETCH),
        ("run", file),
    ):
        check(command(*words))
    fed = [f"{name}={json.dumps(value.tolist())}" for name, value in FEEDS.items()]
    inputs = [part for one in fed for part in ("--input", one)]
    result = command("run", file, *inputs, *FETCH, "--json", "--trace", "trace.json")
    if result.exit_code == 0:
        assert [*parsed(result)] == FETCHES
        json.loads(Path("trace.json").read_text())
    else:
        assert "device" in check(result).lower()


@pytest.mark.parametrize("text", TEXTS)
def test_ops_that_nobody_knows(text: str, tmp_path: Path, command: Command) -> None:
    made = unknown_op(text)
    made.node[0].attr[text].s = text.encode()
    file = tmp_path / "model.pbtxt"
    file.write_text(text_format.MessageToString(made))
    result = command("show", file, "--json")
    if result.exit_code == 0:
        assert [*parsed(result)["ops"]] == [text]
    for words in (
        ("show", file),
        ("show", file, "--name", "*"),
        ("show", file, made.node[0].name),
        ("run", file),
        ("explain", file, "x"),
        ("decompile", file),
    ):
        check(command(*words))


def saved_model(text: str) -> SavedModel:
    """A SavedModel that says a text wherever it may."""
    made = SavedModel.FromString((TWO / "saved_model.pb").read_bytes())
    (meta_graph,) = made.meta_graphs
    info = meta_graph.meta_info_def
    info.tensorflow_version = info.tensorflow_git_version = text
    info.tags.append(text)
    signatures = meta_graph.signature_def
    for name in (text, "serving_default"):
        signatures[name].CopyFrom(signatures["scale"])
        signatures[name].method_name = text
        signatures[name].inputs[text].CopyFrom(signatures[name].inputs["x"])
        signatures[name].outputs[text].CopyFrom(signatures[name].outputs["scaled"])
    asset = meta_graph.asset_file_def.add(filename=text)
    asset.tensor_info.name = text
    for one in meta_graph.object_graph_def.nodes:
        if one.WhichOneof("kind") == "variable":
            one.variable.name = text
        for child in one.children:
            child.local_name = f"{child.local_name}{text}"
    secret = meta_graph.graph_def.node.add(name=text, op="Const")
    secret.attr["dtype"].type = secret.attr["value"].tensor.dtype = DataType.DT_STRING
    secret.attr["value"].tensor.string_val.append(text.encode())
    meta_graph.graph_def.node.add(name=f"{text}2", op="ReadFile", input=[text])
    meta_graph.graph_def.node.add(name=f"{text}3", op=text or "Unknown")
    return made


@pytest.mark.parametrize("text", TEXTS)
def test_saved_models(text: str, tmp_path: Path, command: Command, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TWO, "model")
    Path("model/saved_model.pb").write_bytes(saved_model(text).SerializeToString())
    (found,) = parsed(command("show", "model", "--json"))["meta_graphs"]
    assert found["tensorflow_version"] == text
    assert text in found["signature_names"]
    assert {one["name"] for one in found["variables"]} == {text}
    for words in (
        ("show", "model"),
        ("show", "model", "--all"),
        ("show", "model", "--list_ops"),
        ("show", "model", f"--signature_def={text}"),
        ("show", "model", f"--tag_set={text}"),
        ("run", "model", "--random", "--outdir", "out"),
        ("run", "model", f"--input={text}=1"),
        ("run", "model", f"--input_exprs={text}"),
        ("run", "model", f"--inputs={text}"),
        ("freeze", "model", "-o", "frozen.pb"),
        ("freeze", "model", "-o", "frozen.pb", f"--fetch={text}"),
        ("explain", "model", "--jit", "xla"),
        ("decompile", "model", f"--signature_def={text}"),
        ("shapes", "model"),
        ("place", "model"),
    ):
        if "\0" not in "".join(words) and len("".join(words)) < 2000:
            check(command(*words))
    assert {one.name for one in tmp_path.iterdir()} <= {"model", "out", "frozen.pb"}


@pytest.mark.parametrize("text", [text for text in TEXTS if "\0" not in text])
def test_names_that_the_command_line_asks_for(
    text: str, model: Path, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        ("run", model, "--fetch", text),
        ("run", model, "--input", f"{text}=1"),
        ("run", model, "--input", f"x=@{text}"),
        ("explain", model, text),
        ("show", model, text),
        ("show", model, "--scope", text),
        ("run", model, "--random", "--input", f"{text}:1"),
        ("shapes", model, text),
        ("ops", text),
        ("kernels", text),
        ("new", text),
        ("show", text),
        (text,),
        (f"--{text}",),
        ("run", model, f"--{text}"),
    ):
        if len(text) < 1000:
            check(command(*words))


@pytest.mark.parametrize("text", FILE_NAMES)
def test_names_of_files(text: str, tmp_path: Path, command: Command, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"{text}.pb").write_bytes(model().SerializeToString())
    for words in (
        ("show", f"{text}.pb"),
        ("decompile", f"./{text}.pb", "--numpy", "-o", f"./{text}.py", *FETCH),
        ("optimize", f"./{text}.pb", "-o", f"./{text}.pbtxt"),
        ("check", f"./{text}.pb", "--against", f"./{text}.pb"),
        ("history", f"./{text}.pb"),
    ):
        check(command(*words))
    namespace: dict[str, Any] = {"__name__": "program", "__file__": f"./{text}.py"}
    exec(Path(f"{text}.py").read_text("utf-8"), namespace)
    with Session(imported(model())) as session:
        wanted = session.run(FETCHES, {f"{name}:0": value for name, value in FEEDS.items()})
    fetched = dict(zip(namespace["FETCHES"], namespace["model"](*FEEDS.values()), strict=True))
    if "WEIGHTS" in namespace:
        namespace["WEIGHTS"].close()
    np.testing.assert_allclose(fetched["looped:1"], wanted[FETCHES.index("looped:1")], rtol=1e-6)


def strings(value: Any) -> set[str]:
    """All texts of a JSON document."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return set().union(*map(strings, value))
    return {value} if isinstance(value, str) else set()


def library(op: str, text: str, default: str) -> OpList:
    """An op that says a text wherever it may; its default is another in another library."""
    ops = OpList()
    op_def = ops.op.add(name=op, summary=text, description=text)
    op_def.input_arg.add(name="x", type=DataType.DT_FLOAT, description=text)
    attr = op_def.attr.add(name="a", type="string", description=text)
    attr.default_value.s = f"{text}{default}".encode()
    return ops


@pytest.mark.parametrize("text", [text for text in TEXTS if len(text) < 1000])
def test_libraries_of_ops(text: str, tmp_path: Path, command: Command) -> None:
    now, before = tmp_path / "now.pb", tmp_path / "before.pb"
    for op in (text, "Known"):
        now.write_bytes(library(op, text, "2").SerializeToString())
        before.write_bytes(library(op, text, "1").SerializeToString())
        for form in ("text", "json", "markdown", "sarif"):
            printed = check(command("check", now, "--against", before, "--format", form))
            if form in ("json", "sarif") and not printed.startswith("Error"):
                found = json.loads(printed)
                assert op in strings(found) or op.startswith("_"), "which `check` leaves out"
        for words in (("stubs", now), ("history", now), ("history", now, "--json")):
            check(command(*words))
    ast.parse(command("stubs", now).stdout)


def test_names_too_long_for_archives(tmp_path: Path, command: Command) -> None:
    made = model()
    made.node[0].name = "x" * (LONG + 1000)
    for one in made.node:
        one.input[:] = [made.node[0].name if name == "x" else name for name in one.input]
    file = tmp_path / "model.pb"
    file.write_bytes(made.SerializeToString())
    check(command("run", file, "--input", f"{made.node[0].name}=[[1.0]]", "--fetch",
                  made.node[0].name, "--output", tmp_path / "out.npz"))  # fmt: skip
    with np.load(tmp_path / "out.npz") as stored:
        (name,) = stored.files
        assert stored[name] == [[1.0]]
    assert name.startswith("xxx")


def test_a_terminal_gets_our_colours_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = unknown_op("\x1b[31mred\x9b\u202e\r")
    (tmp_path / "model.pbtxt").write_text(text_format.MessageToString(made))
    monkeypatch.chdir(tmp_path)
    printed = CliRunner().invoke(commands, ["show", "model.pbtxt"], color=True).output
    assert "\\x1b[31mred\\x9b\\u202e\\r" in printed
    assert all(c.isprintable() or c == "\n" for c in click.unstyle(printed))
