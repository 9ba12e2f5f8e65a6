"""`opkernel run --random` draws what nothing feeds; --repeat tells how long warm steps take."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import PLACEHOLDERS, Command

from opkernel import Graph, raw_ops, save_graph
from opkernel.cli.profile import times_as_json


def values(command: Command, *arguments: Any) -> dict[str, Any]:
    """The results of a run with --random, by name."""
    done = command("run", *arguments, "--random", "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.output)
    return found


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_inputs_of_every_type_are_drawn(command: Command, model: Path, name: str) -> None:
    dtype, shape = PLACEHOLDERS[name]
    given = () if shape is not None else ("--input", f"{name}:2,?")
    (result,) = values(command, model, "--fetch", f"{name}_out", *given).values()
    assert result["dtype"] == dtype.tf_name
    assert result["shape"] == ([2, 1] if shape is None else [1, 3] if name == "x" else [])


def test_unknown_sizes_are_given_or_1(command: Command, model: Path) -> None:
    fetch = "--fetch", "x_out"
    assert values(command, model, *fetch)["x_out:0"]["shape"] == [1, 3]
    drawn = values(command, model, *fetch, "--input", "x:4,?")["x_out:0"]
    assert drawn["shape"] == [4, 3]
    numbers = np.array(drawn["value"])
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert len({*numbers.flat}) == 12


def test_what_is_given_is_fed(command: Command, model: Path) -> None:
    found = values(command, model, "--fetch", "top:0", "--input", "n=2", "--input", "x:4,3")
    assert found["top:0"]["shape"] == [4, 2]


def test_every_run_draws_the_same(command: Command, model: Path) -> None:
    one, other = (values(command, model, "--fetch", "x_out") for _ in range(2))
    assert one == other


def test_defaults_are_kept(command: Command, tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        rate = raw_ops.PlaceholderWithDefault(input=[7.0], shape=[1], name="rate")
        raw_ops.Identity(input=rate, name="out")
    save_graph(graph, tmp_path / "rate.pb")
    assert values(command, tmp_path / "rate.pb")["out:0"]["value"] == [7.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fetch", "text_out"], "the shape of text:0 is not known; give it as"),
        (["--fetch", "x_out", "--input", "x:2,4"], "INVALID_ARGUMENT"),
        (["--fetch", "x_out", "--input", "x:a"], "expected NAME:SHAPE"),
        (["--fetch", "x_out", "--input", "x:1000000000000,3"], "RESOURCE_EXHAUSTED"),
    ],
)
def test_what_cannot_be_drawn(
    command: Command, model: Path, arguments: list[str], message: str
) -> None:
    done = command("run", model, "--random", *arguments)
    assert done.exit_code in (1, 2)
    assert message in done.output


def test_resources_cannot_be_drawn(command: Command, text_model: Callable[[str], Path]) -> None:
    path = text_model(
        'node { name: "r" op: "Placeholder" attr { key: "dtype" value { type: DT_RESOURCE } }'
        '  attr { key: "shape" value { shape { } } } }'
        'node { name: "out" op: "Identity" input: "r"'
        '  attr { key: "T" value { type: DT_RESOURCE } } }'
    )
    done = command("run", path, "--random")
    assert done.exit_code == 2
    assert "r:0 is of type resource, of which no value can be drawn" in done.output


def test_shapes_are_of_use_with_random_only(command: Command, model: Path) -> None:
    done = command("run", model, "--input", "x:2,3", "--fetch", "x_out")
    assert done.exit_code == 2
    assert "expected NAME=VALUE" in done.output


def test_the_first_step_is_in_no_percentile() -> None:
    seconds = [9.0, *(n / 1000 for n in range(1, 102))]
    assert times_as_json(seconds) == {
        "count": 102,
        "first_ms": 9000.0,
        "others_ms": pytest.approx(
            {"p50": 51.0, "p90": 91.0, "p99": 100.0, "mean": 51.0, "min": 1.0}
        ),
    }
