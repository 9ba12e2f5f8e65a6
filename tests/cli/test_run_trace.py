"""`opkernel run` with --repeat, --profile and --trace."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.runtime.engines.own_engine import OwnEngine, registered

FEEDS = ("--input", "x=[[1,2,3],[6,5,4]]", "--input", "n=2", "--fetch", "top:0")


def test_repeat_times_the_steps(command: Command, model: Path):
    done = command("run", model, *FEEDS, "--repeat", 3)
    assert done.exit_code == 0, done.output
    assert re.search(
        r"^first step [\d.,]+ ms; the other 2: p50 [\d.]+, p90 [\d.]+, p99 [\d.]+, mean [\d.]+, "
        r"min [\d.]+ ms$",
        done.output,
        re.MULTILINE,
    )
    once = command("run", model, *FEEDS, "--repeat", 1)
    assert re.search(r"^first step [\d.,]+ ms$", once.output, re.MULTILINE)
    assert "first step" not in command("run", model, *FEEDS).output


def test_the_profile_names_ops_and_nodes(command: Command, model: Path):
    done = command("run", model, *FEEDS, "--profile", "--repeat", 4)
    assert done.exit_code == 0, done.output
    assert "top:0  float32[2,2]" in done.output
    took = r"Kernels took [\d.]+ ms of [\d.]+ ms in the median of the 3 steps after"
    assert re.search(took, done.output)
    assert re.search(r"^ +ms +share  calls  us a call +output  op$", done.output, re.MULTILINE)
    assert re.search(
        r"^ +[\d.]+  100\.0%      1 +[\d.]+  32 bytes  TopKV2$", done.output, re.MULTILINE
    )
    assert re.search(r"^ +[\d.]+  100\.0%      1  TopKV2  top$", done.output, re.MULTILINE)


def test_a_profile_takes_a_few_steps_where_these_change_nothing(command: Command, model: Path):
    assert "the 5 steps after the first" in command("run", model, *FEEDS, "--profile").output


def test_steps_of_which_nothing_is_recorded_have_no_times(
    command: Command, text_model: Callable[[str], Path]
):
    done = command("run", text_model(COUNTER), "--fetch", "one", "--profile", "--repeat", 2)
    assert done.exit_code == 0, done.output
    assert "Kernels took 0.000 ms of 0.000 ms in the median of the 1 step after" in done.output


def test_steps_with_effects_are_not_repeated_for_a_profile(
    command: Command, text_model: Callable[[str], Path]
):
    counting = text_model(COUNTER)
    arguments = ("run", counting, "--init", "init", "--fetch", "add", "--profile")
    once = command(*arguments)
    assert once.exit_code == 0, once.output
    assert "\n1.\n" in once.output
    assert "in the first step; --repeat N" in once.output
    assert "\n3.\n" in command(*arguments, "--repeat", 3).output


COUNTER = """
    node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape {} } } }
    node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
    node { name: "init" op: "Assign" input: "v" input: "zero" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "add" op: "AssignAdd" input: "v" input: "one" attr { key: "T" value { type: DT_FLOAT } } }
"""


def test_json_has_it_all_beside_the_results(command: Command, model: Path):
    done = command("run", model, *FEEDS, "--profile", "--repeat", 2, "--json")
    told = json.loads(done.output)
    assert told["results"]["top:0"]["value"] == [[3.0, 2.0], [6.0, 5.0]]
    assert told["steps"]["count"] == 2
    assert told["steps"]["first_ms"] > 0
    latencies = told["steps"]["others_ms"]
    assert list(latencies) == ["p50", "p90", "p99", "mean", "min"]
    assert len({*latencies.values()}) == 1, "it is one step"
    (node,) = told["profile"]["nodes"]
    assert (node["node"], node["op"], node["calls"], node["output_bytes"]) == (
        "top",
        "TopKV2",
        1,
        32,
    )
    profile = told["profile"]
    assert profile["kernels_ms"] == pytest.approx(node["ms"])
    assert latencies["p50"] == pytest.approx(profile["step_ms"])
    assert profile["step_ms"] >= profile["kernels_ms"]


@pytest.mark.parametrize(
    ("file", "options", "is_json"),
    [
        ("trace.perfetto", (), False),
        ("trace", (), False),
        ("trace.json", (), True),
        ("trace.json", ("--trace-format", "perfetto"), False),
        ("trace.bin", ("--trace-format", "chrome"), True),
    ],
)
def test_the_format_of_a_trace_goes_by_its_name(
    command: Command, model: Path, tmp_path: Path, file, options, is_json
):
    path = tmp_path / file
    done = command("run", model, *FEEDS, "--trace", path, *options)
    assert done.exit_code == 0, done.output
    assert f"written to {path}" in done.output
    data = path.read_bytes()
    assert b"TopKV2" in data
    if is_json:
        assert {event["ph"] for event in json.loads(data)["traceEvents"]} >= {"X", "M"}
    else:
        assert data[0] == 0x0A  # a field 1, of bytes: the first packet


def test_the_environment_names_a_trace_too(
    command: Command, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPKERNEL_TRACE", str(tmp_path / "trace.json"))
    assert command("run", model, *FEEDS).exit_code == 0
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_traces_can_be_had_of_sanitized_steps(command: Command, model: Path, tmp_path: Path):
    path = tmp_path / "trace.json"
    done = command("run", model, *FEEDS, "--trace", path, "--sanitize")
    assert done.exit_code == 0, done.output
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    assert "TopKV2" in names


def test_a_trace_that_cannot_be_written_is_refused_before_anything_runs(
    command: Command, model: Path, tmp_path: Path
):
    done = command("run", model, *FEEDS, "--trace", tmp_path / "nowhere" / "trace.json")
    assert done.exit_code == 2
    assert "there is no directory" in done.output
    assert command("run", model, *FEEDS, "--repeat", 0).exit_code == 2


@pytest.mark.shared
def test_models_with_control_flow_have_traces(command: Command, shared: Path, tmp_path: Path):
    folder = shared / "models" / "v1_control_flow"
    manifest = json.loads((folder / "manifest.json").read_text())
    feeds = [f"--input={name}=@{folder / 'case.npz'}:feed:{name}" for name in manifest["feeds"]]
    fetches = [f"--fetch={name}" for name in manifest["fetches"]]
    path = tmp_path / "trace.json"
    done = command("run", folder / "graph.pb", *feeds, *fetches, "--trace", path, "--profile")
    assert done.exit_code == 0, done.output
    events = json.loads(path.read_text())["traceEvents"]
    turns = [event for event in events if event.get("args", {}).get("node") == "while/while/MatMul"]
    assert len(turns) == 15


def test_auto_says_what_it_tried_and_chose(command: Command, model: Path):
    with registered(OwnEngine(ops=())):
        done = command("run", model, *FEEDS, "--repeat", 2, "--jit", "auto")
        told = json.loads(
            command("run", model, *FEEDS, "--repeat", 2, "--jit", "auto", "--json").output
        )
        limited = command("run", model, *FEEDS, "--repeat", 2, "--jit", "auto", "--timeout", 60)
    assert re.search(
        r"^auto: no engine takes .*: kernels since step \d+$", done.output, re.MULTILINE
    ), done.output
    assert told["auto"]["chosen"] == "plan"
    assert "auto: steps with a limit of time or memory try no engines" in limited.output
    assert "auto:" not in command("run", model, *FEEDS, "--repeat", 2).output


def test_an_engine_that_was_named_is_named_in_what_was_found_out(command: Command, model: Path):
    options = "--repeat", 2, "--jit", "own"
    with registered(OwnEngine(ops=())):
        done = command("run", model, *FEEDS, *options)
        limited = command("run", model, *FEEDS, *options, "--timeout", 60)
        told = json.loads(command("run", model, *FEEDS, *options, "--json").output)
    assert re.search(r"^own: no engine takes .*: kernels since", done.output, re.MULTILINE)
    assert re.search(r"^own: steps with a limit", limited.output, re.MULTILINE)
    assert told["auto"]["jit"] == "own"


@pytest.mark.parametrize(
    ("name", "group"), [("--jit", "Speed:"), ("--fetch", "Outputs:"), ("--random", "Inputs:")]
)
def test_the_help_of_run_has_groups(command: Command, name: str, group: str):
    lines = command("run", "--help").output.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith(f"  {name} "))
    titles = [line for line in lines[:place] if line.endswith(":") and not line.startswith(" ")]
    assert titles[-1] == group


def test_the_list_of_commands_is_not_cut(command: Command):
    listed = " ".join(command("--help").output.partition("Commands:")[2].split())
    assert "..." not in listed
    assert "Check that changed ops still take the graphs that were made for them." in listed
