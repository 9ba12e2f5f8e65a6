"""Checkpoints beside TensorFlow: the same bytes for objects of any structure, and both restore the other's."""

from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.object_graphs import everything
from tests.training.optimizer_formulas import CASES, FIRST, NAMES, RATE, gradients

from opkernel import Checkpoint, Module, Variable, optimizers

pytestmark = pytest.mark.tensorflow

TYPES: list[Any] = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64]
TYPES += [
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.bool_,
]

names = st.text("abz_./A0", min_size=1, max_size=4)
arrays = st.builds(
    lambda dtype, shape, seed: np.random.default_rng(seed).integers(0, 2, shape).astype(dtype),
    st.sampled_from(TYPES),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(0, 9),
)
texts = st.lists(st.binary(max_size=200), max_size=3)
plans = st.recursive(
    st.tuples(st.just("variable"), arrays)
    | st.tuples(st.just("strings"), texts)
    | st.tuples(st.just("shared"), st.integers(0, 5))
    | st.tuples(st.just("constant"), st.integers()),
    lambda inner: (
        st.tuples(st.just("module"), st.dictionaries(names, inner, max_size=3))
        | st.tuples(st.just("dict"), st.dictionaries(names, inner, max_size=3))
        | st.tuples(st.just("list"), st.lists(inner, max_size=3))
        | st.tuples(st.just("tuple"), st.lists(inner, max_size=3))
    ),
    max_leaves=12,
)
"""What objects are made of: names of kinds, each with what it takes."""


class Library(NamedTuple):
    """The classes of a library."""

    module: Any
    variable: Any
    checkpoint: Any
    strings: Any


def libraries(tf: Any) -> list[Library]:
    """TensorFlow and opkernel."""
    return [
        Library(
            tf.Module, tf.Variable, tf.train.Checkpoint, lambda texts: tf.constant(texts, tf.string)
        ),
        Library(Module, Variable, Checkpoint, lambda texts: np.array(texts, object)),
    ]


def built(plan: Any, library: Library, made: list[Any]) -> Any:
    """The objects of a plan, of one library; `made` gets the variables."""
    kind, content = plan
    if kind in ("variable", "strings"):
        value = library.strings(content) if kind == "strings" else content
        made.append(library.variable(value, name=f"v{len(made)}"))
        return made[-1]
    if kind == "shared":
        return made[content % len(made)] if made else 0
    if kind in ("list", "tuple"):
        items = [built(part, library, made) for part in content]
        return items if kind == "list" else tuple(items)
    if kind == "constant":
        return content
    parts = {name: built(part, library, made) for name, part in content.items()}
    return parts if kind == "dict" else module_of(parts, library)


def module_of(parts: Any, library: Library) -> Any:
    owner: Any = library.module()
    for name, part in parts.items():
        setattr(owner, f"m{name}", part)
    return owner


def clear(variable: Any) -> None:
    value = variable.numpy()
    variable.assign(np.full_like(value, b"" if value.dtype == object else 0))


@given(st.dictionaries(names, plans, min_size=1, max_size=4))
@settings(max_examples=150)
def test_bytes_are_those_of_tensorflow(tf: Any, tmp_path_factory: Any, plan: Any) -> None:
    directory, paths, roots = tmp_path_factory.mktemp("checkpoint"), [], []
    for library in libraries(tf):
        made = list[Any]()
        root = built(("module", plan), library, made)
        prefix = str(directory / library.module.__module__)
        paths.append(library.checkpoint(model=root).save(prefix))
        roots.append((library, root, made))
    for suffix in (".index", ".data-00000-of-00001"):
        theirs, ours = (Path(path + suffix).read_bytes() for path in paths)
        assert theirs == ours
    for (library, root, made), path in zip(roots, reversed(paths), strict=True):
        values = [variable.numpy() for variable in made]
        for variable in made:
            clear(variable)
        found = library.checkpoint(model=root).restore(path)
        assert found == [] if library.checkpoint is Checkpoint else found.assert_consumed()
        for variable, value in zip(made, values, strict=True):
            np.testing.assert_array_equal(variable.numpy(), value)


def test_bytes_are_those_of_tensorflow_for_everything(tf: Any, tmp_path: Path) -> None:
    written = []
    for library in libraries(tf):
        model = everything(library.module, library.variable)
        step = library.variable(np.int64(7), name="step")
        prefix = str(tmp_path / library.module.__module__)
        path = library.checkpoint(model, step=step).save(prefix)
        written.append(Path(f"{path}.index").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_trainings_go_on_in_the_other_library(
    tf: Any, tmp_path: Path, name: str, arguments: Any, formula: Any, constants: Any
) -> None:
    """Each library trains for three steps, and the other one takes the next two."""
    first, second = gradients(6).astype(np.float32).reshape(2, 3, 3, 2)

    def trained(library: Library, of_library: Any, path: str | None, grads: Any) -> Any:
        model: Any = library.module()
        model.w = library.variable(FIRST.astype(np.float32))
        optimizer = getattr(of_library, name)(RATE, **arguments)
        checkpoint = library.checkpoint(model=model, optimizer=optimizer)
        optimizer.build([model.w])
        if path is not None:
            checkpoint.restore(path)
        for grad in grads:
            optimizer.apply_gradients([(library.strings(grad), model.w)])
        return model.w.numpy(), checkpoint.save(str(tmp_path / library.module.__module__))

    theirs, ours = (library._replace(strings=np.asarray) for library in libraries(tf))
    theirs = theirs._replace(strings=tf.constant)
    whole, _ = trained(ours, optimizers, None, [*first, *second])
    _, path = trained(theirs, tf.keras.optimizers, None, first)
    from_keras, _ = trained(ours, optimizers, path, second)
    _, path = trained(ours, optimizers, None, first)
    to_keras, _ = trained(theirs, tf.keras.optimizers, path, second)
    np.testing.assert_allclose(from_keras, whole, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(to_keras, whole, rtol=1e-4, atol=1e-5)
