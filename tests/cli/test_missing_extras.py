"""Extras that are not installed are named before anything runs: by `show`, `coverage`, `doctor`, and by `load`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import opkernel
from opkernel import TensorSpec, libraries, raw_ops
from opkernel.cli.commands import commands
from opkernel.kernel.missing_extras import missing_extras
from opkernel.ops.strings import regex
from opkernel.proto import NodeDef

PUNCTUATION = r"""[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']"""
"""What Keras' TextVectorization removes by default."""
BEYOND_PYTHON = "(a|b){2,3}"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No library that kernels need is installed."""
    for module in ("PIL", "re2", "scipy", "simplejpeg"):
        monkeypatch.setitem(sys.modules, module, None)
    regex.compiled_pattern.cache_clear()
    yield
    regex.compiled_pattern.cache_clear()


def node(op: str, **texts: str) -> NodeDef:
    found = NodeDef(name=op.lower(), op=op, input=["x"])
    for name, text in texts.items():
        found.attr[name].s = text.encode()
    return found


def replacing(pattern: str) -> NodeDef:
    return node("StaticRegexReplace", pattern=pattern, rewrite="")


def test_what_every_step_needs_and_what_some_inputs_need() -> None:
    nodes = [replacing(BEYOND_PYTHON), node("DecodeImage"), node("Relu"), node("DecodeGif")]
    assert [one.as_json() for one in missing_extras([*nodes, node("Betainc")])] == [
        {"extra": "image", "ops": ["DecodeGif"], "certain": True},
        {"extra": "scipy", "ops": ["Betainc"], "certain": True},
        {"extra": "strings", "ops": ["StaticRegexReplace"], "certain": True},
        {"extra": "image", "ops": ["DecodeImage"], "certain": False},
    ]


def test_a_pattern_that_python_matches_needs_nothing() -> None:
    assert missing_extras([replacing(PUNCTUATION), replacing("[0-9]+")]) == []
    (one,) = missing_extras([replacing(PUNCTUATION), replacing(BEYOND_PYTHON)])
    assert str(one) == (
        "needs opkernel[strings]: StaticRegexReplace (pip install 'opkernel[strings]')"
    )


def test_nothing_is_missing_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "is_installed", lambda module: True)
    assert missing_extras([node("DecodeGif"), replacing(BEYOND_PYTHON)]) == []


def test_wrong_patterns_and_unknown_ops_are_not_the_affair_of_extras() -> None:
    assert missing_extras([replacing("[z-a]"), node("AnOpOfMyOwn")]) == []


class Cleaning(opkernel.Module):
    """A model that replaces a pattern in a text."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self._pattern = pattern

    @opkernel.function(input_signature=[TensorSpec([None], opkernel.string, name="text")])
    def __call__(self, text: Any) -> Any:
        return {"y": raw_ops.StaticRegexReplace(input=text, pattern=self._pattern, rewrite="")}


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[str], Path]:
    """Saves the model with a pattern."""

    def save(pattern: str) -> Path:
        module = Cleaning(pattern)
        opkernel.save(module, tmp_path / "model", signatures={"serving_default": module.__call__})
        return tmp_path / "model"

    return save


def test_commands_name_the_extra(saved: Callable[[str], Path]) -> None:
    path = saved(BEYOND_PYTHON)

    def text(command: str) -> tuple[str, int]:
        done = CliRunner().invoke(commands, [command, str(path)])
        return done.stdout, done.exit_code

    sentence = "It needs opkernel[strings]: StaticRegexReplace (pip install 'opkernel[strings]')."
    for command, status in (("show", 0), ("coverage", 0), ("doctor", 1)):
        printed, exit_code = text(command)
        assert sentence in printed.replace("\n", " ")
        assert "Every op can run." not in printed
        assert exit_code == status
    done = CliRunner().invoke(commands, ["doctor", str(path), "--json"])
    facts = json.loads(done.stdout)
    assert facts["not_runnable"] == {}
    assert facts["missing_extras"] == [
        {"extra": "strings", "ops": ["StaticRegexReplace"], "certain": True}
    ]


def test_commands_say_that_every_op_can_run(saved: Callable[[str], Path]) -> None:
    path = saved(PUNCTUATION)
    for command in ("show", "coverage", "doctor"):
        done = CliRunner().invoke(commands, [command, str(path)])
        assert done.exit_code == 0, done.output
        assert "Every op can run.\n" in done.stdout


@pytest.mark.parametrize("load", [opkernel.load, opkernel.load_as_session])
def test_load_warns_before_anything_runs(
    saved: Callable[[str], Path], caplog: pytest.LogCaptureFixture, load: Callable[..., Any]
) -> None:
    path = saved(BEYOND_PYTHON)
    with caplog.at_level(logging.WARNING, "opkernel.libraries"):
        load(path)
    (record,) = caplog.records
    assert "model/saved_model.pb needs opkernel[strings]: StaticRegexReplace" in record.getMessage()


def test_what_may_be_needed_does_not_stop_a_model(tmp_path: Path) -> None:
    with opkernel.Graph().as_default() as graph:
        data = raw_ops.Placeholder(dtype=opkernel.string, shape=[], name="data")
        raw_ops.DecodePng(contents=data, name="image")
    opkernel.save_graph(graph, tmp_path / "png.pb")
    done = CliRunner().invoke(commands, ["doctor", str(tmp_path / "png.pb")])
    assert done.exit_code == 0
    assert "Every op can run." in done.stdout
    assert "It may need, depending on its inputs, opkernel[image]: DecodePng" in done.stdout


def test_an_extra_for_speed_is_named_by_doctor_and_explain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opkernel.providers.LOOPS.is_available", lambda: False)
    monkeypatch.setattr("opkernel.kernel.registry.provider._default", None)
    graph = opkernel.Graph()
    with graph.as_default():
        boxes = opkernel.placeholder(opkernel.float32, [None, 4], name="boxes")
        raw_ops.NonMaxSuppressionV2(
            boxes=boxes, scores=boxes[:, 0], max_output_size=3, iou_threshold=0.5, name="kept"
        )
    file = tmp_path / "boxes.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    done = CliRunner().invoke(commands, ["doctor", str(file)])
    assert done.exit_code == 0
    words = (
        "It runs faster with opkernel[numba]: NonMaxSuppressionV2 (pip install 'opkernel[numba]')."
    )
    assert words in done.output
    done = CliRunner().invoke(commands, ["explain", str(file), "kept", "--json"])
    (loops,) = [one for one in json.loads(done.output)["providers"] if one["name"] == "loops"]
    assert loops["verdict"] == "not available here: pip install 'opkernel[numba]'"
