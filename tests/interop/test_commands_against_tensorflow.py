"""`opkernel coverage` and `opkernel run` of models that an installed TensorFlow saves, and graphs that it freezes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.interop.calls import Call, difference, ours, part_of, plain
from tests.interop.model_names import OBJECTS, RANDOM_SESSIONS, SESSIONS

import opkernel
from opkernel.cli.commands import commands

pytestmark = pytest.mark.tensorflow


def invoked(*words: str) -> str:
    done = CliRunner().invoke(commands, [*words])
    assert done.exit_code == 0, done.output
    return done.output


def served(calls: list[Call]) -> Call:
    """The first call of a signature."""
    return next(call for call in calls if call.path.startswith("signatures."))


@pytest.mark.parametrize("name", [*OBJECTS, *SESSIONS])
def test_nothing_that_a_model_needs_is_missing(saved: Any, name: str) -> None:
    directory, _ = saved(name)
    found = json.loads(invoked("coverage", str(directory), "--json"))
    assert not [row["op"] for row in found["ops"] if row["run_by"] == "nothing"]
    if "Every op can run." not in invoked("coverage", str(directory)):
        pytest.fail(f"coverage finds something missing in {name}")


RUN = [
    "adjusted_images",
    "boxes",
    "discretization",
    "draws",
    "draws_with_seeds",
    "features",
    "generators",
    "initializers",
    "int8_keras",
    "keras_audio",
    "quantized_kernels",
    "random_rotation",
    "resizing_antialias",
    "strings",
    "strings_and_numbers",
    "tables_of_files",
    "text_classifier",
    "text_to_tf_idf",
    "trained_with_fake_quantization",
]


@pytest.mark.parametrize("name", RUN)
def test_the_command_gives_what_a_signature_gives(
    answers: Any, saved: Any, tmp_path: Path, name: str
) -> None:
    """A process begins with the model's first step: so does TensorFlow's session."""
    directory, calls = saved(name)
    call = served(calls)
    expected = answers.session_answers(str(directory), [call])[0]
    words = ["--dir", str(directory), "--signature_def", call.path.partition(".")[2]]
    for key, value in call.kwargs.items():
        words += ["--input", f"{key}={as_json(value)}"]
    invoked("run", *words, "--outdir", str(tmp_path))
    for key, value in expected.items():
        found = np.load(tmp_path / f"{key}.npy", allow_pickle=True)
        if value.dtype == object:
            found = found.astype("S").astype(object)
        assert not difference(plain(found), value), key


def as_json(value: Any) -> str:
    return json.dumps(value.tolist(), default=lambda data: data.decode("utf-8"))


FROZEN = [
    "adjusted_images",
    "boxes",
    "convolutional",
    "discretization",
    "keras_audio",
    "normalization",
    "resizing_bicubic",
    "stateless_draws",
    "strings",
    "strings_and_numbers",
    "trained_with_fake_quantization",
]


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_graphs_give_what_the_signature_gives(
    tf: Any, answers: Any, saved: Any, tmp_path: Path, name: str
) -> None:
    from tensorflow.python.framework import convert_to_constants

    directory, calls = saved(name)
    call = served(calls)
    loaded = tf.saved_model.load(str(directory))
    theirs = part_of(loaded, call.path)
    frozen = convert_to_constants.convert_variables_to_constants_v2(theirs)
    file = tmp_path / "frozen.pb"
    file.write_bytes(frozen.graph.as_graph_def().SerializeToString())
    names = dict(zip(sorted(theirs.structured_outputs), frozen.outputs, strict=True))
    feeds = {f"{key}:0": value for key, value in call.kwargs.items()}
    with opkernel.Session(opkernel.load_graph(file)) as session:
        found = session.run({key: one.name for key, one in names.items()}, feeds)
    expected = plain(theirs(**answers.theirs(dict(call.kwargs))))
    assert not difference(plain(found), expected)


@pytest.mark.parametrize("name", RANDOM_SESSIONS)
def test_a_new_session_draws_the_same_numbers_from_the_start(
    answers: Any, saved: Any, name: str
) -> None:
    directory, calls = saved(name)
    expected = answers.session_answers(str(directory), calls)
    for load in (opkernel.load_as_session, opkernel.load_as_session, opkernel.load):
        model: Any = load(directory)
        for call, result in zip(calls, expected, strict=True):
            found = plain(part_of(model, call.path)(**ours(dict(call.kwargs))))
            assert not difference(found, result)
