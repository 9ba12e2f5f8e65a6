"""Models of all forms, saved by an installed TensorFlow, give what its own loaders give."""

from typing import Any

import numpy as np
import pytest
from tests.interop.calls import Call, difference, ours, part_of, plain
from tests.interop.model_names import GENERAL, OBJECTS, SESSIONS

import opkernel
from opkernel import raw_ops
from opkernel.gradients import IndexedSlices
from opkernel.training import Variable

pytestmark = pytest.mark.tensorflow

F32 = np.float32
BFLOAT16 = {"mixed_precision": 2e-2}
"""TensorFlow's fused kernels round sums of bfloat16 once, ours after each op."""


def pairs(tf: Any, model: Any, theirs: Any) -> dict[int, tuple[Any, Any]]:
    """The objects that both loaded, by their numbers, where the same names lead to them."""
    objects = model.saved_objects
    found, waiting = {0: (model, theirs)}, [0]
    while waiting:
        number = waiting.pop()
        for name, child in objects.children(number).items():
            other = found[number][1]._lookup_dependency(name)
            if child not in found and other is not None:
                found[child] = objects.get(child), other
                waiting.append(child)
    return found


def variables(tf: Any, model: Any, theirs: Any) -> list[tuple[Any, Any]]:
    both = pairs(tf, model, theirs)
    return [both[number] for number in sorted(both) if isinstance(both[number][1], tf.Variable)]


def test_every_model_is_tried(answers: Any) -> None:
    assert sorted(answers.OBJECTS) == OBJECTS
    assert sorted(answers.SESSIONS) == SESSIONS


@pytest.mark.parametrize("name", OBJECTS)
def test_calls_and_the_state_after_them_are_equal(
    tf: Any, answers: Any, saved: Any, name: str
) -> None:
    directory, calls = saved(name)
    theirs, model = tf.saved_model.load(str(directory)), opkernel.load(directory)
    for call in calls:
        found = plain(part_of(model, call.path)(*ours([*call.args]), **ours(dict(call.kwargs))))
        expected = answers.answer(theirs, call)
        assert not difference(found, expected, BFLOAT16.get(name, 1e-5)), call.path
    for mine, other in variables(tf, model, theirs):
        assert not difference(plain(mine.numpy()), plain(other.numpy())), mine.name


@pytest.mark.parametrize("name", GENERAL)
def test_variables_and_signatures_are_described_alike(tf: Any, saved: Any, name: str) -> None:
    directory, _ = saved(name)
    theirs, model = tf.saved_model.load(str(directory)), opkernel.load(directory)
    for mine, other in variables(tf, model, theirs):
        assert f"{mine.name}:0" == other.name
        assert (mine.trainable, mine.dtype.tf_name) == (other.trainable, other.dtype.name)
        assert sizes(mine.shape) == sizes(other.shape)
    if isinstance(getattr(theirs, "variables", None), list | tuple):
        for kind in ("variables", "trainable_variables"):
            listed = [f"{one.name}:0" for one in getattr(model, kind)]
            assert listed == [one.name for one in getattr(theirs, kind)]
    assert sorted(theirs.signatures) == [*model.signatures]
    for key, signature in model.signatures.items():
        _, inputs = theirs.signatures[key].structured_input_signature
        assert described(signature.inputs) == {
            spec.name: (sizes(spec.shape), spec.dtype.name) for spec in inputs.values()
        }
        assert described(signature.outputs) == {
            name: (sizes(spec.shape), spec.dtype.name)
            for name, spec in theirs.signatures[key].structured_outputs.items()
        }


def sizes(shape: Any) -> list[int | None] | None:
    return None if shape.rank is None else shape.as_list()


def described(specs: Any) -> dict[str, Any]:
    return {name: (sizes(spec.shape), spec.dtype.tf_name) for name, spec in specs.items()}


def floats(value: Any) -> list[Any]:
    """The tensors of a result that a loss may sum."""
    if isinstance(value, dict):
        return [one for key in sorted(value) for one in floats(value[key])]
    if isinstance(value, list | tuple):
        return [one for part in value for one in floats(part)]
    dtype = getattr(value, "dtype", None)
    return [value] if getattr(dtype, "tf_name", getattr(dtype, "name", "")) == "float32" else []


DIFFERENTIABLE = [
    "control_flow",
    "convolutional",
    "convolutional_1d_3d",
    "custom_gradient",
    "cycle",
    "dense",
    "exported_endpoints",
    "gradients_of_functions",
    "gru_with_mask",
    "linear",
    "lstm",
    "nested_modules",
    "shared_names",
    "signatures",
    "simple_rnn",
    "small_convolutional",
    "transformer",
    "classifier_of_images",
    "features",
    "speech_features",
    "text_classifier",
    "text_to_ragged",
    "trained_with_fake_quantization",
]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_through_loaded_functions_are_equal(
    tf: Any, answers: Any, saved: Any, name: str
) -> None:
    directory, calls = saved(name)
    theirs, model = tf.saved_model.load(str(directory)), opkernel.load(directory)
    trained = [
        (mine, other)
        for mine, other in variables(tf, model, theirs)
        if mine.trainable and other.dtype == tf.float32
    ]
    tried = 0
    for call in [one for one in calls if not one.path.startswith("signatures")]:
        with tf.GradientTape() as tape:
            args = answers.theirs([*call.args]), answers.theirs(dict(call.kwargs))
            parts = floats(part_of(theirs, call.path)(*args[0], **args[1]))
            if not parts:
                continue
            loss = sum(tf.reduce_sum(tf.square(part)) for part in parts)
        expected = tape.gradient(loss, [other for _, other in trained])
        assert_gradients(model, call, [mine for mine, _ in trained], loss, expected)
        tried += 1
    assert tried


def assert_gradients(
    model: Any, call: Call, trained: list[Variable], loss: Any, expected: list[Any]
) -> None:
    def squares(*args: Any, **kwargs: Any) -> Any:
        parts = floats(part_of(model, call.path)(*args, **kwargs))
        sums = [
            raw_ops.Sum(input=p * p, axis=np.arange(p.shape.rank, dtype=np.int32)) for p in parts
        ]
        return sum(sums[1:], sums[0])

    found_loss, found = opkernel.value_and_grad(squares, trained)(
        *ours([*call.args]), **ours(dict(call.kwargs))
    )
    np.testing.assert_allclose(found_loss, loss.numpy(), rtol=1e-4, atol=1e-5)
    for variable, mine, other in zip(trained, found, expected, strict=True):
        if other is None:
            assert mine is None or not np.any(dense(mine, variable)), variable.name
            continue
        np.testing.assert_allclose(
            dense(mine, variable),
            dense(other, variable),
            rtol=2e-3,
            atol=2e-4 * max(1.0, float(np.abs(dense(other, variable)).max(initial=0))),
            err_msg=f"{call.path}: {variable.name}",
        )


def dense(gradient: Any, variable: Variable) -> Any:
    if hasattr(gradient, "indices") and not isinstance(gradient, IndexedSlices):
        result = np.zeros([size or 0 for size in variable.shape.as_list()], F32)
        np.add.at(result, np.asarray(gradient.indices), np.asarray(gradient.values))
        return result
    return np.asarray(gradient)


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_give_what_sessions_of_tensorflow_give(
    answers: Any, saved: Any, name: str
) -> None:
    directory, calls = saved(name)
    expected = answers.session_answers(str(directory), calls)
    model = opkernel.load(directory)
    for call, result in zip(calls, expected, strict=True):
        found = plain(part_of(model, call.path)(**ours(dict(call.kwargs))))
        assert not difference(found, result), call.path
