import json

import pytest

HISTORY = """\
op {
  name: "Mul"
}
op {
  name: "Scale"
  attr {
    name: "by"
    type: "string"
    allowed_values {
      list {
        s: "one"
        s: "two"
      }
    }
  }
}
op {
  name: "Scale"
  attr {
    name: "by"
    type: "string"
    allowed_values {
      list {
        s: "two"
      }
    }
  }
}
"""
NEW = 'op {\n  name: "Div"\n}\nop {\n  name: "Mul"\n  is_commutative: true\n}\n'


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.pbtxt"
    path.write_text(HISTORY)
    return path


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.pbtxt"
    path.write_text(NEW)
    return path


def test_showing(command, history):
    assert command("history", history).output.splitlines() == [
        "2 ops",
        "  op     definitions  last change",
        "  Mul    1",
        "  Scale  2            by: -'one'",
    ]
    assert json.loads(command("history", history, "--json").output)[1] == {
        "op": "Scale",
        "definitions": 2,
        "last change": "by: -'one'",
    }


def test_refused_changes(command, history):
    (found,) = json.loads(command("history", history, "--refused", "--json").output)
    assert (found["op"], found["definition"], found["line"]) == ("Scale", 2, 17)
    assert found["rule"] == "attr-values-stricter"


def test_adding(command, history, new, tmp_path):
    out = tmp_path / "out.pbtxt"
    done = command("history", history, "--add", new, "--out", out)
    assert done.exit_code == 0
    assert [line.split() for line in done.output.splitlines()] == [
        ["2", "new", "definitions"],
        ["op", "is"],
        ["Div", "new"],
        ["Mul", "changed"],
    ]
    first, mul = HISTORY.split("}\n", 1)[0] + "}\n", NEW[NEW.index('op {\n  name: "Mul"') :]
    div = NEW[: NEW.index('op {\n  name: "Mul"')]
    assert out.read_text() == div + first + mul + HISTORY[len(first) :]
    assert history.read_text() == HISTORY


def test_nothing_is_written_without_out(command, history, new):
    assert command("history", history, "--add", new).output.startswith("2 new definitions\n")
    assert history.read_text() == HISTORY


def test_a_new_file(command, new, tmp_path):
    out = tmp_path / "first.pb.gz"
    assert command("history", out, "--add", new, "--out", out).exit_code == 0
    assert command("history", out).output.startswith("2 ops\n")
    assert command("history", out, "--add", new).output == "0 new definitions\n"


def test_what_breaks_graphs_is_not_added(command, history, tmp_path):
    new, out = tmp_path / "new.pbtxt", tmp_path / "out.pbtxt"
    new.write_text('op {\n  name: "Scale"\n}\n')
    done = command("history", history, "--add", new, "--out", out)
    assert done.exit_code == 1
    assert done.output == (
        "Error: INVALID_ARGUMENT: Incompatible Op change: Scale: Attr 'by' removed\n"
    )
    assert not out.exists()


def test_files_that_hold_something_else(command, tmp_path):
    assert command("history", tmp_path / "none").exit_code == 1
    (tmp_path / "other").write_text("hello")
    done = command("history", tmp_path / "other")
    assert done.exit_code == 1
    assert "is no OpList, neither in text nor in binary format" in done.output


@pytest.mark.shared
def test_the_history_of_tensorflow(command, shared):
    lines = command("history", shared / "facts/ops_history_v2.pbtxt.xz").output.splitlines()
    assert lines[0] == "1,563 ops"
    assert lines[3].split() == ["Abs", "4", "T:", "+int8", "+int16"]
