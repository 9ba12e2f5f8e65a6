"""Commands on SavedModels that TensorFlow saved (`saved_models/record.py`): shown, run, frozen."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command
from tests.drawing.page_reader import read_page

import opkernel
from opkernel.proto import Example, SavedModel

MODELS = Path(__file__).parent / "saved_models"
TWO, ONE, META = MODELS / "two", MODELS / "one", MODELS / "meta" / "model.ckpt.meta"
ANSWERS = json.loads((MODELS / "answers.json").read_text())
X = (np.arange(6, dtype=np.float32).reshape(2, 3) / 4).tolist()
GIVEN = np.arange(8, dtype=np.float32).reshape(2, 4).tolist()


def json_of(command: Command, *arguments: object) -> Any:
    done = command(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[Callable[[SavedModel], None]], Path]:
    """A copy of the model of TF2 after a change of its message."""

    def change(by: Callable[[SavedModel], None]) -> Path:
        folder = tmp_path / "changed"
        shutil.copytree(TWO, folder)
        file = folder / "saved_model.pb"
        message = SavedModel.FromString(file.read_bytes())
        by(message)
        file.write_bytes(message.SerializeToString())
        (folder / "fingerprint.pb").unlink()
        return folder

    return change


def rename_relu(message: SavedModel) -> None:
    """Have the function of serving_default use an op that nobody has."""
    for function in message.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            if node.op == "Relu":
                node.op = "AnOpOfMyOwn"


# show


def test_a_model_of_tf2_is_shown_whole(command: Command) -> None:
    facts = json_of(command, "show", TWO)
    assert facts["kind"] == "a SavedModel directory"
    assert facts["fingerprint"]["saved_model_checksum"].isdecimal()
    (found,) = facts["meta_graphs"]
    assert found["tags"] == ["serve"]
    assert found["tensorflow_version"] == "2.21.0"
    assert {one["name"]: one["shape"] for one in found["variables"]} == {
        "kernel": [3, 2],
        "bias": [2],
        "steps": [],
    }
    assert [one["name"] for one in found["variables"] if not one["trainable"]] == ["steps"]
    assert sum(one["bytes"] for one in found["variables"]) == 40
    assert found["assets"] == [
        {"tensor": "asset_path_initializer:0", "file": "assets/words.txt", "bytes": 10}
    ]
    assert found["python_functions"]["scale"] == ["(x: float32[?], factor: float32[])"]


def test_a_signature_is_shown_as_its_signature_def_has_it(command: Command) -> None:
    found = json_of(command, "show", "--dir", TWO, "--signature_def", "serving_default")
    assert {key: one for key, one in found.items() if key not in ("runs", "beside")} == {
        "signature": "serving_default",
        "method": "tensorflow/serving/predict",
        "inputs": [
            {"name": "x", "tensor": "serving_default_x:0", "dtype": "float32", "shape": [None, 3]}
        ],
        "outputs": [
            {
                "name": "scores",
                "tensor": "StatefulPartitionedCall_3:0",
                "dtype": "float32",
                "shape": [None, 2],
            },
            {
                "name": "sum",
                "tensor": "StatefulPartitionedCall_3:1",
                "dtype": "float32",
                "shape": [None],
            },
        ],
        "defaults": [],
    }
    printed = command("show", TWO, "--tag_set", "serve", "--signature_def", "serving_default")
    assert printed.output.splitlines()[:5] == [
        "Signature serving_default (tensorflow/serving/predict)",
        "          name    type     shape  tensor",
        "  input   x       float32  [?,3]  serving_default_x:0",
        "  output  scores  float32  [?,2]  StatefulPartitionedCall_3:0",
        "  output  sum     float32  [?]    StatefulPartitionedCall_3:1",
    ]


def test_what_a_model_asks_for(command: Command) -> None:
    (found,) = json_of(command, "show", TWO)["meta_graphs"]
    asked = {one["op"]: (one["what"], one["needed_by"]) for one in found["asks_for"]}
    assert asked == {"ReadFile": ("read files", ["peek"]), "PyFunc": ("run Python", ["ask"])}
    assert found["not_runnable"].keys() == {"PyFunc"}
    assert found["used"]["PyFunc"]["needed_by"] == ["ask"]
    printed = command("show", TWO).output
    assert "These signatures run: count, look_up, peek, scale, serving_default" in printed


def test_a_file_that_stands_in_the_model_is_named(command: Command, changed: Any) -> None:
    def read_a_file(message: SavedModel) -> None:
        graph = message.meta_graphs[0].graph_def
        node = graph.node.add(name="secret", op="Const")
        node.attr["dtype"].type = opkernel.string
        node.attr["value"].tensor.dtype = opkernel.string
        node.attr["value"].tensor.tensor_shape.SetInParent()
        node.attr["value"].tensor.string_val.append(b"/etc/passwd")
        graph.node.add(name="read", op="ReadFile", input=["secret"])

    found = json_of(command, "show", changed(read_a_file))["meta_graphs"][0]["asks_for"]
    assert [one["files"] for one in found if one["op"] == "ReadFile"] == [["/etc/passwd"]]


@pytest.mark.parametrize("name", ["", "/etc/words"])
def test_a_file_that_an_attr_names_is_named(command: Command, changed: Any, name: str) -> None:
    def sample(message: SavedModel) -> None:
        node = message.meta_graphs[0].graph_def.node.add(
            name="s", op="FixedUnigramCandidateSampler"
        )
        node.attr["vocab_file"].s = name.encode()

    found = json_of(command, "show", changed(sample))["meta_graphs"][0]["asks_for"]
    asked = [(one["what"], one["files"]) for one in found if one["op"].startswith("FixedUnigram")]
    assert asked == ([("read files", [name])] if name else [])


def test_tags_choose_a_meta_graph(command: Command) -> None:
    facts = json_of(command, "show", "--dir", ONE)
    assert [one["tags"] for one in facts["meta_graphs"]] == [["serve"], ["serve", "train"]]
    names = {"serve": ["numbers", "predict"], "train,serve": ["step"]}
    for tags, signatures in names.items():
        facts = json_of(command, "show", ONE, "--tag_set", tags)
        shown = [one for one in facts["meta_graphs"] if "signatures" in one]
        assert [[s["signature"] for s in one["signatures"]] for one in shown] == [signatures]
    facts = json_of(command, "show", ONE, "--all")
    shown = [[s["signature"] for s in one["signatures"]] for one in facts["meta_graphs"]]
    assert shown == [["numbers", "predict"], ["step"]]
    printed = command("show", ONE, "--all").output
    assert len(printed.split("\nMetaGraph ")) == 3
    assert printed.index("numbers, predict\n") < printed.index("  serve,train")
    done = command("show", ONE, "--tag_set", "gpu")
    assert done.exit_code == 1
    assert "no MetaGraph with the tags {gpu}; it has {serve}, {serve, train}" in done.output


def test_without_a_default_tag_set_the_choice_is_shown(command: Command, changed: Any) -> None:
    def add_another(message: SavedModel) -> None:
        message.meta_graphs.add().CopyFrom(message.meta_graphs[0])
        for tag, graph in zip(("cpu", "tpu"), message.meta_graphs, strict=True):
            graph.meta_info_def.tags[:] = [tag]

    folder = changed(add_another)
    printed = command("show", folder)
    assert printed.exit_code == 0
    assert printed.output.endswith("\n--tag_set shows one of them, --all shows all.\n")
    done = command("run", folder)
    assert (
        "has several MetaGraphs: choose one by its tags, of {cpu}, {tpu} (--tag_set" in done.output
    )
    assert command("run", folder, "--tag_set", "tpu", "--random").exit_code == 0


@pytest.mark.parametrize("form", ["file", "tar.gz", "zip"])
def test_other_forms_of_a_saved_model(command: Command, tmp_path: Path, form: str) -> None:
    if form == "file":
        path = TWO / "saved_model.pb"
    else:
        path = Path(
            shutil.make_archive(
                str(tmp_path / "two"), {"tar.gz": "gztar"}.get(form, form), MODELS, "two"
            )
        )
    (found,) = json_of(command, "show", path)["meta_graphs"]
    assert found["tensorflow_version"] == "2.21.0"
    ran = json_of(command, "run", path, "--input", f"x={X}")
    assert ran["scores"]["value"] == ANSWERS["two"]["scores"]


def test_nodes_of_a_saved_model_and_of_its_functions(command: Command) -> None:
    done = command("show", "--dir", TWO, "--op", "MatMul")
    assert "__inference___call___26/matmul" in done.output
    (facts,) = json_of(command, "show", "--dir", TWO, "__inference___call___26/matmul")
    assert facts["op"] == "MatMul"
    assert facts["inputs"][0]["tensor"] == "x:0"


def test_ops_alone(command: Command) -> None:
    ops = {one["op"]: one for one in json_of(command, "show", TWO, "--list_ops")}
    assert ops["MatMul"] == {"op": "MatMul", "nodes": 1, "not_runnable": None}
    assert ops["PyFunc"]["not_runnable"] == "needs a function of a program"


def test_a_drawing_of_a_saved_model(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "model.html"
    assert command("show", TWO, "--html", page).exit_code == 0
    program, *_ = read_page(page.read_text("utf-8"))
    assert program.nodes["serving_default_x"]["outputs"] == ["float32 [?,3]"]


# run


@pytest.mark.parametrize(
    "arguments",
    [
        [TWO, "--input", f"x={X}"],
        [
            "--dir",
            TWO,
            "--tag_set",
            "serve",
            "--input_exprs",
            "x=np.reshape(np.arange(6) / 4, (2, 3))",
        ],
        [f"--dir={TWO}", "--signature_def=serving_default", f"--input_exprs=x={X}"],
    ],
)
def test_a_signature_runs(command: Command, arguments: list[object]) -> None:
    ran = json_of(command, "run", *arguments)
    assert ran["scores"] == {
        "dtype": "float32",
        "shape": [2, 2],
        "value": ANSWERS["two"]["scores"],
    }
    assert ran["sum"]["value"] == ANSWERS["two"]["sum"]


def test_tables_are_filled_from_assets(command: Command) -> None:
    words = 'words=["sat", "dog", "a"]'
    ran = json_of(command, "run", TWO, "--signature_def", "look_up", "--input", words)
    assert ran["ids"]["value"] == ANSWERS["two"]["ids"]


def test_models_of_tf1_run_after_their_initialisation(command: Command) -> None:
    serve = ["--dir", ONE, "--tag_set", "serve", "--signature_def"]
    ran = json_of(command, "run", *serve, "predict", "--input", f"x={GIVEN}")
    np.testing.assert_allclose(ran["y"]["value"], ANSWERS["one"]["y"], rtol=1e-6)
    ran = json_of(command, "run", *serve, "numbers", "--input", 'word=["b", "z"]')
    assert ran["number"]["value"] == ANSWERS["one"]["number"]


def test_a_meta_graph_is_restored_from_the_checkpoint_beside_it(command: Command) -> None:
    ran = json_of(command, "run", META, "--input", f"x={GIVEN}", "--fetch", "y")
    checkpoint = opkernel.load_checkpoint(META.with_suffix(""))
    np.testing.assert_allclose(ran["y:0"]["value"], np.array(GIVEN) @ checkpoint.get("w"), rtol=1e-6)  # fmt: skip


def test_arrays_of_files_go_in_and_come_out(command: Command, tmp_path: Path) -> None:
    np.savez(tmp_path / "given.npz", x=np.ones(3, np.float32), f=np.float32(2))
    given = f"x={tmp_path / 'given.npz'}[x];factor={tmp_path / 'given.npz'}[f]"
    out = tmp_path / "new" / "out"
    words = ["run", "--dir", TWO, "--signature_def", "scale", "--inputs", given, "--outdir", out]
    assert command(*words).output == f"scaled  float32[3]\nwritten to {out / 'scaled.npy'}\n"
    np.testing.assert_array_equal(np.load(out / "scaled.npy"), np.full(3, 2, np.float32))
    refused = command(*words)
    assert refused.exit_code == 2
    assert f"{out / 'scaled.npy'} exists; --overwrite replaces it" in refused.output
    assert command(*words, "--overwrite").exit_code == 0


def test_examples_are_serialized(command: Command) -> None:
    rows = "words=[{'age': [22, 24], 'name': ['a']}, {'weight': [0.5]}]"
    chosen = ["--signature_def", "look_up", "--input_examples", rows]
    ran = json_of(command, "run", TWO, *chosen, "--fetch", "ids", "--fetch", "look_up_words")
    assert ran["ids"]["value"] == [-1, -1]
    first, second = (
        Example.FromString(text.encode().decode("unicode_escape").encode("latin-1"))
        for text in ran["look_up_words:0"]["value"]
    )
    assert [*first.features.feature["age"].int64_list.value] == [22, 24]
    assert [*first.features.feature["name"].bytes_list.value] == [b"a"]
    assert [*second.features.feature["weight"].float_list.value] == [0.5]


def test_outputs_and_tensors_by_name(command: Command) -> None:
    ran = json_of(command, "run", TWO, "--input", f"x={X}", "--fetch", "sum", "--fetch", "scores")
    assert [*ran] == ["sum", "scores"]
    fed = f"serving_default_x:0={X}"
    ran = json_of(command, "run", TWO, "--input", fed, "--fetch", "StatefulPartitionedCall_3:1")
    assert ran["StatefulPartitionedCall_3:1"]["value"] == ANSWERS["two"]["sum"]


def test_random_inputs_repeats_and_profiles(command: Command) -> None:
    ran = json_of(command, "run", TWO, "--random", "--input", "x:5,3", "--repeat", 2, "--profile")
    assert ran["results"]["scores"]["shape"] == [5, 2]
    ops = {node["op"] for node in ran["profile"]["nodes"]}
    assert ops == {"_FusedMatMul", "Sum", "IdentityN"}, "variables are constants by then"


def test_state_lasts_for_the_steps_of_a_run(command: Command) -> None:
    for _ in range(2):  # nothing is kept between runs
        ran = json_of(command, "run", TWO, "--signature_def", "count", "--repeat", 3)
        assert ran["results"]["steps"]["value"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--signature_def", "scale", "--input", "x=[1]"],
         "signature 'scale' needs factor float32[]: --input factor=VALUE, or --random"),
        (["--input", "z=1"],
         "has no input 'z', and the graph no such tensor; its inputs are x float32[?,3]"),
        (["--input", f"x={X}", "--fetch", "score"],
         "its outputs are scores float32[?,2], sum float32[?] (did you mean scores?)"),
        (["--signature_def", "scales"],
         "the model has no signature 'scales'; it has ask, count, look_up, peek, scale, serving_default"),
        (["--input", f"x={X}", "--input_exprs", f"x={X}"], "is fed twice"),
        (["--input_exprs", "x=open('/etc/passwd')"], "open"),
        (["--signature_def", "ask", "--input", "x=1"], "PyFunc"),
    ],
)  # fmt: skip
def test_what_is_said_of_wrong_inputs(command: Command, arguments: list[str], message: str) -> None:
    done = command("run", TWO, *arguments)
    assert done.exit_code in (1, 2)
    assert message.split(" (did")[0] in done.output


def test_files_are_read_where_that_is_allowed(command: Command, tmp_path: Path) -> None:
    folder, other = tmp_path / "data", tmp_path / "other"
    for one in (folder, other):
        one.mkdir()
        (one / "note.txt").write_text("hello")
    (folder / "link.txt").symlink_to(other / "note.txt")
    peek = ["run", TWO, "--signature_def", "peek"]
    asked = [*peek, "--input", f"path={folder / 'note.txt'}"]
    refused = command(*asked)
    assert refused.exit_code == 1
    assert f"--allow-read {folder}" in refused.output
    assert json_of(command, *asked, "--allow-read", folder)["content"]["value"] == "hello"
    assert command(*asked, "--allow-read", other).exit_code == 1
    assert command(*asked, "--allow-write", folder).exit_code == 1
    for outside in (folder / "link.txt", folder / ".." / "other" / "note.txt"):
        done = command(*peek, "--input", f"path={outside}", "--allow-read", folder)
        assert "PERMISSION_DENIED" in done.output
    assert "does not exist" in command(*asked, "--allow-read", tmp_path / "typo").output


def test_files_are_written_where_that_is_allowed(command: Command, tmp_path: Path) -> None:
    with opkernel.Graph().as_default() as graph:
        opkernel.raw_ops.WriteFile(
            filename=str(tmp_path / "out" / "x.txt"), contents="hi", name="write"
        )
    opkernel.save_graph(graph, tmp_path / "write.pb")
    words = ["run", tmp_path / "write.pb", "--fetch", "write"]
    assert f"--allow-write {tmp_path / 'out'}" in command(*words).output
    assert command(*words, "--allow-write", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "x.txt").read_text() == "hi"


def test_an_op_of_ones_own(command: Command, changed: Any, tmp_path: Path) -> None:
    folder = changed(rename_relu)
    printed = command("show", folder)
    assert printed.exit_code == 0
    assert "Not runnable yet: AnOpOfMyOwn, PyFunc (unknown ops: --library" in printed.output
    assert "AnOpOfMyOwn  __inference___call___26/Relu  serving_default" in printed.output
    scaled = [folder, "--signature_def", "scale", "--input", "x=[1]", "--input", "factor=3"]
    assert json_of(command, "run", *scaled)["scaled"]["value"] == [3]
    refused = command("run", folder, "--input", f"x={X}")
    assert refused.exit_code == 1
    where = "'AnOpOfMyOwn' in __inference___call___26/Relu (needed by serving_default)"
    assert f"The model uses {where}" in refused.output
    assert "--library names the file or module" in refused.output
    (tmp_path / "of_my_own.py").write_text(
        "import numpy as np\nimport opkernel\n"
        "opkernel.register_op('AnOpOfMyOwn', inputs=['features: T'], outputs=['activations: T'],\n"
        "    attrs=['T: type'], shape_fn=lambda c: c.set_output(0, c.input(0)))\n"
        "@opkernel.register_kernel('AnOpOfMyOwn', device='CPU')\n"
        "def relu(features):\n    return np.maximum(features, 0)\n"
    )
    library = ["--library", tmp_path / "of_my_own.py"]
    ran = json_of(command, "run", folder, "--input", f"x={X}", *library)
    assert ran["scores"]["value"] == ANSWERS["two"]["scores"]


def test_a_model_without_signatures(command: Command, changed: Any) -> None:
    folder = changed(lambda message: message.meta_graphs[0].ClearField("signature_def"))
    assert "No signatures" in command("show", folder).output
    done = command("run", folder)
    assert (done.exit_code, done.output.count("\n")) == (2, 3)
    assert f"model = opkernel.load({str(folder)!r})" in done.output


# freeze, optimize, decompile, and what looks at graphs


def test_a_frozen_model_gives_the_same(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "frozen.pb"
    report = json_of(command, "freeze", TWO, "-o", out)
    assert [(one["name"], one["tensor"]) for one in report["inputs"]] == [
        ("x", "serving_default_x:0")
    ]
    tensors = {one["name"]: one["tensor"] for one in report["outputs"]}
    assert [*tensors] == ["scores", "sum"]
    ops = {op.type for op in opkernel.load_graph(out).get_operations()}
    assert not ops & {"VarHandleOp", "ReadVariableOp", "RestoreV2", "HashTableV2"}
    ran = json_of(command, "run", out, "--input", f"serving_default_x={X}")
    assert ran[tensors["scores"]]["value"] == ANSWERS["two"]["scores"]


@pytest.mark.parametrize(
    ("model", "name", "given", "fed"),
    [
        ([TWO, "--signature_def", "look_up"], "two/ids", ["sat", "dog", "a"], "look_up_words"),
        ([ONE, "--tag_set", "serve", "--signature_def", "numbers"], "one/number", ["b", "z"], "word"),
    ],
)  # fmt: skip
def test_a_frozen_model_keeps_its_tables(
    command: Command, tmp_path: Path, model: list[object], name: str, given: list[str], fed: str
) -> None:
    out = tmp_path / "frozen.pb"
    report = json_of(command, "freeze", *model, "-o", out)
    (tensor,) = [one["tensor"] for one in report["outputs"]]
    init = [part for one in report["run_first"] for part in ("--init", one)]
    feed = f"{fed}={json.dumps(given)}"
    ran = json_of(command, "run", out, "--input", feed, "--fetch", tensor, *init)
    which, key = name.split("/")
    assert ran[tensor]["value"] == ANSWERS[which][key]


def test_meta_graphs_and_graphs_are_frozen_with_a_checkpoint(
    command: Command, tmp_path: Path
) -> None:
    prefix = META.with_suffix("")
    expected = np.array(GIVEN) @ opkernel.load_checkpoint(prefix).get("w")
    from opkernel.proto import MetaGraphDef

    graph = tmp_path / "graph.pb"
    opkernel.save_graph(MetaGraphDef.FromString(META.read_bytes()).graph_def, graph)
    alone = tmp_path / "model.meta"
    shutil.copy(META, alone)
    for model in ([META], [graph, "--checkpoint", prefix], [alone, "--checkpoint", prefix]):
        out = tmp_path / "frozen.pb"
        assert command("freeze", *model, "-o", out, "--fetch", "y").exit_code == 0
        ran = json_of(command, "run", out, "--input", f"x={GIVEN}", "--fetch", "y")
        np.testing.assert_allclose(ran["y:0"]["value"], expected, rtol=1e-6)
    done = command("freeze", graph, "-o", tmp_path / "no.pb", "--fetch", "y")
    assert "FAILED_PRECONDITION" in done.output
    assert not (tmp_path / "no.pb").exists()


def test_what_changes_a_variable_is_not_frozen(command: Command, tmp_path: Path) -> None:
    done = command("freeze", TWO, "--signature_def", "count", "-o", tmp_path / "no.pb")
    assert done.exit_code == 1
    assert "Variable 'steps' cannot become a constant" in done.output
    assert not (tmp_path / "no.pb").exists()


def test_an_optimized_model_gives_the_same(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "fast.pb"
    assert command("optimize", TWO, "-o", out).exit_code == 0
    ran = json_of(command, "run", out, "--input", f"serving_default_x={X}",
                  "--fetch", "StatefulPartitionedCall_3:0")  # fmt: skip
    (scores,) = ran.values()
    assert scores["value"] == ANSWERS["two"]["scores"]


def test_a_decompiled_model_gives_the_same(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "program.py"
    assert command("decompile", TWO, "--numpy", "-o", out).exit_code == 0
    program: dict[str, Any] = {"__name__": "program", "__file__": str(out)}
    exec(out.read_text("utf-8"), program)
    scores, _ = program["model"](np.array(X, np.float32))
    assert scores.tolist() == ANSWERS["two"]["scores"]


def test_other_commands_look_at_the_graph(command: Command, tmp_path: Path) -> None:
    shapes = json_of(command, "shapes", "--dir", ONE, "--tag_set", "serve", "y:0")
    assert {one["name"]: one["shape"] for one in shapes}["y:0"] == [None, 2]
    node = "__inference___call___26/matmul"
    assert json_of(command, "explain", TWO, node)["op"] == "MatMul"
    placed = json_of(command, "place", TWO)["nodes"]
    assert {"serving_default_x", "kernel"} <= {one["name"] for one in placed}
    rows = {one["op"]: one for one in json_of(command, "ops", "--needed-by", TWO)}
    assert rows["PyFunc"]["nodes"] == 1
    ops = tmp_path / "ops.pbtxt"
    ops.write_text('op { name: "Mine" }')
    done = command("check", ops, "--against", ops, "--graphs", TWO)
    assert done.exit_code == 0


@pytest.mark.parametrize("option", ["--tag_set", "--signature_def"])
def test_a_graph_has_no_parts_to_choose(command: Command, model: Path, option: str) -> None:
    done = command("show", model, option, "serve")
    assert done.exit_code == 2
    told = f"{option} serve: it chooses a part of a SavedModel, and {model} is a binary GraphDef"
    assert told in done.output


# damaged files


def test_damaged_models_are_told_with_the_file(command: Command, tmp_path: Path) -> None:
    data = (TWO / "saved_model.pb").read_bytes()
    for number, content in enumerate((data[: len(data) // 2], b"", data[:100] + b"\xff" * 50)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "saved_model.pb").write_bytes(content)
        for verb in ("show", "run", "shapes", "place"):
            done = command(verb, folder)
            assert done.exit_code == 1
            assert f"Error: DATA_LOSS: {folder / 'saved_model.pb'}" in done.output


def test_a_model_without_its_variables_is_shown(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "alone"
    folder.mkdir()
    shutil.copy(TWO / "saved_model.pb", folder)
    shown = command("show", folder)
    assert shown.exit_code == 0
    assert "missing" in shown.output
    done = command("run", folder, "--input", f"x={X}")
    assert done.exit_code == 1


def test_variables_of_another_model_are_told(command: Command, changed: Any) -> None:
    folder = changed(lambda message: None)
    shutil.copy(TWO / "fingerprint.pb", folder)
    shutil.copy(ONE / "variables" / "variables.index", folder / "variables")
    done = command("run", folder, "--input", f"x={X}")
    assert done.exit_code == 1
    assert "variables.index is not the one that was saved with" in done.output
    assert "Key kernel/.ATTRIBUTES/VARIABLE_VALUE not found in checkpoint" in done.output


def test_a_signature_without_its_tensor(command: Command, changed: Any) -> None:
    def lose(message: SavedModel) -> None:
        message.meta_graphs[0].signature_def["scale"].outputs["scaled"].name = "gone:0"

    folder = changed(lose)
    assert command("show", folder).exit_code == 0
    done = command("run", folder, "--signature_def", "scale", "--random")
    assert "DATA_LOSS" in done.output
    assert "signature 'scale' needs 'gone:0' for 'scaled', which the graph lacks" in done.output


def test_an_archive_that_leads_outside(command: Command, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar.gz", "w:gz") as archive:
        archive.add(TWO / "saved_model.pb", "../saved_model.pb")
    done = command("show", tmp_path / "evil.tar.gz")
    assert done.exit_code == 1
    assert "would lie outside" in done.output


def test_names_lead_to_no_other_directory(command: Command, changed: Any, tmp_path: Path) -> None:
    def name_it(message: SavedModel) -> None:
        outputs = message.meta_graphs[0].signature_def["scale"].outputs
        outputs["../../evil"].CopyFrom(outputs["scaled"])

    out = tmp_path / "a" / "b"
    done = command("run", changed(name_it), "--signature_def", "scale", "--random", "--outdir", out)
    assert done.exit_code == 0
    assert sorted(one.name for one in out.iterdir()) == [".._.._evil.npy", "scaled.npy"]
