import json
import os
import subprocess
from pathlib import Path

import pytest

OPS = """\
from opkernel import register_op
from opkernel.opdef import unknown_shape

print("not to be seen")
register_op(
    "CheckedScale",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: {half, float}", "by: float = 1.0"],
    shape_fn=unknown_shape,
)
"""
STRICTER = OPS.replace("{half, float}", "{float}")
GRAPH = """
node { name: "x" op: "Placeholder" }
node { name: "good" op: "CheckedScale" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "bad" op: "CheckedScale" input: "x" attr { key: "T" value { type: DT_HALF } } }
"""
FINDING = (
    "Attr 'T' has a stricter set of allowed values; from [DT_HALF, DT_FLOAT] to [DT_FLOAT]",
    "Graphs whose CheckedScale nodes set attr 'T' to DT_HALF no longer load.",
)


def git(*arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository whose only commit holds `src/checked_ops/scale.py`; the working directory."""
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "src/checked_ops"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from checked_ops import scale\n")
    (package / "scale.py").write_text(OPS)
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    return tmp_path


@pytest.fixture
def scale(project):
    return project / "src/checked_ops/scale.py"


def test_nothing_changed(command, project):
    done = command("check", "checked_ops", "--against", "main")
    assert done.exit_code == 0
    assert done.output == ("checked_ops against main: nothing breaks\n  1 op, 0 new, 0 changed\n")


def test_a_break(command, scale):
    scale.write_text(STRICTER)
    done = command("check", "checked_ops", "--against", "main")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        "checked_ops against main: 1 change breaks graphs",
        "  1 op, 0 new, 1 changed",
        "",
        f"{Path('src/checked_ops/scale.py')}:5: CheckedScale",
        f"  error[attr-values-stricter] {FINDING[0]}",
        f"    {FINDING[1]}",
    ]


@pytest.mark.parametrize("target", ["src/checked_ops", "src/checked_ops/scale.py"])
def test_targets_that_are_paths(command, scale, target):
    scale.write_text(STRICTER)
    done = command("check", target, "--against", "HEAD")
    assert "scale.py:5: CheckedScale" in done.output
    assert done.exit_code == 1


def test_from_another_folder(command, scale, monkeypatch):
    scale.write_text(STRICTER)
    monkeypatch.chdir(scale.parent)
    assert command("check", "scale.py", "--against", "HEAD").exit_code == 1


def test_the_working_tree_is_left_alone(command, project):
    before = sorted(project.rglob("*")), (project / ".git/index").read_bytes()
    command("check", "checked_ops", "--against", "main")
    assert (sorted(project.rglob("*")), (project / ".git/index").read_bytes()) == before
    assert (
        subprocess.run(["git", "status", "--short"], check=True, capture_output=True).stdout == b""
    )


def test_the_old_module_sees_old_modules(command, project, scale):
    """What a module imports comes from the reference as well, installed for editing or not."""
    (scale.parent / "types.py").write_text("TYPES = '{half, float}'\n")
    scale.write_text(
        "from checked_ops.types import TYPES\n" + OPS.replace("{half, float}", '" + TYPES + "')
    )
    git("add", "-A")
    git("commit", "-q", "-m", "two")
    (scale.parent / "types.py").write_text("TYPES = '{float}'\n")
    done = command("check", "checked_ops", "--against", "HEAD")
    assert FINDING[0] in done.output


def test_removed_and_new_ops(command, scale):
    scale.write_text(OPS.replace("CheckedScale", "CheckedOther"))
    done = command("check", "checked_ops", "--against", "main", "--format", "json")
    report = json.loads(done.output)
    assert report["added"] == ["CheckedOther"]
    assert [(f["op"], f["rule"], f["file"], f["line"]) for f in report["findings"]] == [
        ("CheckedScale", "op-removed", str(Path("src/checked_ops/scale.py")), None)
    ]
    assert done.exit_code == 1


def test_a_module_that_was_not_there(command, project):
    (project / "src/more_ops.py").write_text(OPS)
    done = command("check", "more_ops", "--against", "main")
    assert done.exit_code == 0
    assert done.output.endswith("1 op, 1 new, 0 changed, more_ops is not there in main\n")


def test_graphs(command, project, scale):
    scale.write_text(STRICTER)
    (project / "g.pbtxt").write_text(GRAPH)
    (project / "h.pbtxt").write_text(GRAPH.replace("DT_HALF", "DT_FLOAT"))
    graphs = ("--graphs", "g.pbtxt", "h.pbtxt")
    done = command("check", "checked_ops", "--against", "main", *graphs)
    assert done.output.endswith(f"    {FINDING[1]}\n    g.pbtxt: 1 node: bad\n")
    done = command("check", "checked_ops", "--against", "main", "--graphs", "h.pbtxt")
    assert done.output.endswith(f"    {FINDING[1]}\n    No node of h.pbtxt is hit.\n")
    assert done.exit_code == 1


def test_callers_only(command, scale):
    scale.write_text(OPS.replace('"x: T"', '"images: T"'))
    done = command("check", "checked_ops", "--against", "main")
    assert done.exit_code == 0
    assert "checked_ops against main: 1 change breaks callers\n" in done.output
    assert "  warning[input-renamed] Input 0 renamed from 'x' to 'images'\n" in done.output
    assert command("check", "checked_ops", "--against", "main", "--strict").exit_code == 1


def test_json(command, scale):
    scale.write_text(STRICTER)
    done = command("check", "checked_ops", "--against", "main", "--format", "json")
    assert json.loads(done.output) == {
        "target": "checked_ops",
        "against": "main",
        "breaks_graphs": True,
        "ops": 1,
        "added": [],
        "changed": ["CheckedScale"],
        "findings": [
            {
                "op": "CheckedScale",
                "rule": "attr-values-stricter",
                "level": "error",
                "fact": FINDING[0],
                "impact": FINDING[1],
                "file": str(Path("src/checked_ops/scale.py")),
                "line": 5,
                "hits": {},
            }
        ],
        "graphs": [],
    }


def test_markdown(command, scale):
    scale.write_text(STRICTER.replace("x: T", "z: T"))
    done = command("check", "checked_ops", "--against", "main", "--format", "markdown")
    lines = done.output.splitlines()
    assert lines[0] == (
        "### `checked_ops` against `main`: 1 change breaks graphs, 1 change breaks callers"
    )
    assert lines[4:6] == ["| | op | change | matters for |", "|---|---|---|---|"]
    assert [line.split(" | ")[0] for line in lines[6:]] == ["| ❌", "| ⚠️"]
    assert r"to \[DT\_FLOAT\]<br>`attr-values-stricter`" in lines[6]


# The properties that SARIF 2.1.0 allows and, behind `!`, demands of the objects that we write.
SARIF = {
    "": "$schema !version !runs",
    "runs": "!tool originalUriBaseIds columnKind results",
    "runs/tool": "!driver",
    "runs/tool/driver": "!name semanticVersion rules",
    "runs/tool/driver/rules": "!id shortDescription defaultConfiguration",
    "runs/tool/driver/rules/shortDescription": "!text",
    "runs/tool/driver/rules/defaultConfiguration": "level",
    "runs/originalUriBaseIds": "%SRCROOT%",
    "runs/originalUriBaseIds/%SRCROOT%": "uri",
    "runs/results": ("ruleId ruleIndex level !message locations partialFingerprints properties"),
    "runs/results/message": "text",
    "runs/results/locations": "physicalLocation logicalLocations",
    "runs/results/locations/physicalLocation": "!artifactLocation region",
    "runs/results/locations/physicalLocation/artifactLocation": "uri uriBaseId",
    "runs/results/locations/physicalLocation/region": "startLine",
    "runs/results/locations/logicalLocations": "name kind",
    "runs/results/partialFingerprints": "opChange/v1",
    "runs/results/properties": "target against",
}


def check_sarif(value, path=""):
    if isinstance(value, list):
        for item in value:
            check_sarif(item, path)
    elif isinstance(value, dict):
        words = SARIF[path].split()
        assert value.keys() <= {word.lstrip("!") for word in words}, path
        assert value.keys() >= {word[1:] for word in words if word.startswith("!")}, path
        for key, item in value.items():
            check_sarif(item, f"{path}/{key}".lstrip("/"))


def test_sarif(command, project, scale):
    scale.write_text(STRICTER + OPS[OPS.index("register_op(\n") :].replace("Scale", "New"))
    (project / "g.pbtxt").write_text(GRAPH)
    arguments = ("checked_ops", "--against", "main", "--format", "sarif", "--graphs", "g.pbtxt")
    done = command("check", *arguments)
    assert done.exit_code == 1
    log = json.loads(done.output)
    check_sarif(log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "attr-values-stricter"
    assert result["level"] == rule["defaultConfiguration"]["level"] == "error"
    assert result["message"]["text"].endswith("no longer load.\ng.pbtxt: bad")
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/checked_ops/scale.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 5},
    }
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{project.resolve().as_uri()}/"


def test_sarif_of_no_finding(command, project):
    done = command("check", "checked_ops", "--against", "main", "--format", "sarif")
    log = json.loads(done.output)
    check_sarif(log)
    assert log["runs"][0]["results"] == []
    assert done.exit_code == 0


def test_op_lists_in_files(command, project):
    assert command("history", "none", "--add", "checked_ops", "--out", "ops.pbtxt").exit_code == 0
    git("add", "-A")
    git("commit", "-q", "-m", "ops")
    ops = project / "ops.pbtxt"
    ops.write_text("\n\n" + ops.read_text().replace("        type: DT_HALF\n", ""))
    for reference in ("HEAD", "main"):
        done = command("check", "ops.pbtxt", "--against", reference)
        assert done.exit_code == 1
        assert "ops.pbtxt:3: CheckedScale" in done.output
    done = command("check", "ops.pbtxt", "--against", "HEAD~1")
    assert done.exit_code == 0
    assert done.output.endswith("1 new, 0 changed, ops.pbtxt is not there in HEAD~1\n")


def test_a_module_against_a_file(command, project, scale):
    command("history", "none", "--add", "checked_ops", "--out", "ops.pbtxt")
    assert command("check", "checked_ops", "--against", "ops.pbtxt").exit_code == 0
    scale.write_text(STRICTER)
    assert command("check", "checked_ops", "--against", "ops.pbtxt").exit_code == 1
    scale.write_text("")
    done = command("check", "checked_ops", "--against", "ops.pbtxt")
    assert f"\n{Path('src/checked_ops/__init__.py')}: CheckedScale\n" in done.output


def test_the_target_of_the_project(command, project):
    (project / "pyproject.toml").write_text('[tool.opkernel]\nops = "checked_ops"\n')
    done = command("check", "--against", "main")
    assert done.output.startswith("checked_ops against main: nothing breaks")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none", "--against", "main"], "there is no module or file 'none'"),
        (["no/ne", "--against", "main"], "there is no module or file 'no/ne'"),
        (["checked_ops"], "Missing option '--against'"),
        (["--against", "main"], "which ops? Name a module or file, or set tool.opkernel.ops"),
        (["checked_ops", "--against", "none"], "'none' is neither a file nor a git reference in"),
        (["checked_ops", "--against", "--all"], "'--all' is neither a file nor a git reference in"),
        (["checked_ops", "more", "--against", "main"], "one TARGET, and 'more' is a second"),
        (["src/empty.py", "--against", "main"], "'src/empty.py' registers no ops"),
    ],
)
def test_wrong_use(command, project, arguments, message):
    (project / "src/empty.py").write_text("")
    done = command("check", *arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_a_module_outside_of_any_repository(command, tmp_path):
    (tmp_path / "loose_ops.py").write_text(OPS)
    done = command("check", tmp_path / "loose_ops.py", "--against", "main")
    assert done.exit_code == 2
    assert (
        f"'main' is neither a file nor a git reference: {tmp_path.resolve()} is in no git repository"
        in done.output
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero ("),
        ("import none.such", "ModuleNotFoundError: No module named 'none'"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit('stop')", "the process ended (1): stop"),
        (OPS.replace("T: {", "T: {{"), "T: {{half"),
    ],
)
def test_modules_that_cannot_be_imported(command, scale, code, message):
    scale.write_text(code)
    done = command("check", "checked_ops", "--against", "main")
    assert done.exit_code == 2
    assert "FAILED_PRECONDITION: Importing 'checked_ops' failed: " in done.output
    assert message in done.output
    scale.write_text(OPS)


def test_an_old_module_that_cannot_be_imported(command, scale):
    scale.write_text("1 / 0")
    git("commit", "-q", "-a", "-m", "broken")
    scale.write_text(OPS)
    done = command("check", "checked_ops", "--against", "HEAD")
    assert done.exit_code == 2
    place = os.path.join("src", "checked_ops", "scale.py")
    assert "Importing 'checked_ops' at HEAD failed: ZeroDivisionError" in done.output
    assert f"({place}, line 1)" in done.output


def test_in_a_git_hook(command, scale, monkeypatch):
    """Git tells its hooks about the repository in variables that must not lead elsewhere."""
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    scale.write_text(STRICTER)
    assert command("check", "checked_ops", "--against", "HEAD").exit_code == 1


@pytest.mark.shared
def test_tensorflows_ops_against_their_history(command, shared):
    history = shared / "facts/ops_history_v2.pbtxt.xz"
    done = command("check", history, "--against", history)
    assert done.exit_code == 0
    assert "nothing breaks\n  1,563 ops, 0 new, 0 changed\n" in done.output
    done = command("check", shared / "facts/tf_ops.pbtxt", "--against", history, "--format", "json")
    # TensorFlow took these defaults away after its history was last written.
    assert {(f["op"], f["rule"]) for f in json.loads(done.output)["findings"]} == {
        ("XlaSparseActivationsUnstack", "default-removed"),
        ("XlaSparseGradientsStack", "default-removed"),
    }
