"""What opkernel writes TensorFlow reads, and the other way round; both write the same bytes."""

import itertools
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import opkernel
from opkernel.checkpoint import BundleWriter, TensorSlice
from opkernel.checkpoint.slices import SlicesWriter

pytestmark = pytest.mark.tensorflow

IN_V1 = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "float16", "float32"),
    *("float64", "complex64", "complex128"),
)
PLAIN = (*IN_V1, "uint32", "uint64")
EXTENDED = ("bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4")
NO_SLICES = ("uint16", "uint32", "uint64", "float16")
"""Of these TensorFlow restores whole tensors alone."""

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
KEYS = st.text(
    st.characters(min_codepoint=1, max_codepoint=0x2FF), min_size=1, max_size=12
) | st.sampled_from(["a", "a/b", "layer_with_a_long_name/kernel/Adam", "é", "\x01", "\x7f"])


@st.composite
def values(draw: Any, names: tuple[str, ...]) -> Any:
    """An array of one of the types."""
    name, shape = draw(st.sampled_from(names)), draw(SHAPES)
    if name == "string":
        strings = st.binary(max_size=5) | st.sampled_from([b"\0", b"x" * 300])
        return draw(arrays.arrays(object, shape, elements=strings, fill=st.nothing()))
    if name in EXTENDED:
        dtype = np.dtype(getattr(ml_dtypes, name))
        numbers = draw(arrays.arrays(np.int8, shape, elements=st.integers(0, 7)))
        return numbers.astype(dtype)
    return draw(arrays.arrays(np.dtype(name), shape))


@st.composite
def partitions(draw: Any, names: tuple[str, ...]) -> tuple[Any, list[tuple[str, TensorSlice, Any]]]:
    """An array, and slices of it that cover it, each with its spec, shape and slice."""
    name = draw(st.sampled_from(names))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    whole = draw(arrays.arrays(np.dtype(name), shape))
    axis = draw(st.integers(0, len(shape) - 1))
    cuts = sorted({0, shape[axis], *draw(st.lists(st.integers(0, shape[axis]), max_size=3))})
    parts = []
    for start, end in itertools.pairwise(cuts):
        texts = ["-"] * len(shape)
        texts[axis] = f"{start},{end - start}"
        spec = TensorSlice.parse(":".join(texts))
        parts.append((f"{' '.join(map(str, shape))} {spec}", spec, whole[spec.index()]))
    return whole, draw(st.permutations(parts))


CHECKPOINTS = st.tuples(
    st.dictionaries(KEYS, values((*PLAIN, *EXTENDED, "string")), min_size=1, max_size=5),
    st.none() | partitions(tuple(name for name in PLAIN if name not in NO_SLICES)),
)
OF_V1 = st.tuples(
    st.dictionaries(KEYS, values((*IN_V1, "string")), min_size=1, max_size=5),
    st.none() | partitions(("float32", "int32", "complex64")),
)
Checkpoint = tuple[dict[str, Any], Any]
fewer_examples = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def same(found: Any, expected: Any) -> bool:
    """Equal to the last bit."""
    if isinstance(found, bytes):
        return bool(expected.shape == () and found == expected.item())
    found = np.asarray(found)
    if expected.dtype == object:
        return found.shape == expected.shape and found.tolist() == expected.tolist()
    bits = found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    return bool(bits and found.shape == expected.shape)


def tensor(tf: ModuleType, value: Any) -> Any:
    if value.dtype == object:
        return tf.constant(value.tolist(), tf.string, value.shape)
    return tf.constant(value)


def all_of(content: Checkpoint) -> tuple[list[str], list[str], list[Any]]:
    """Names, slices and values of a checkpoint, in the order of names, as Savers give them."""
    named, parted = content
    rows = [(name, "", value) for name, value in named.items()]
    if parted is not None:
        rows += [("parted variable", spec, part) for spec, _, part in parted[1]]
    rows.sort(key=lambda row: row[0].encode())
    return tuple(map(list, zip(*rows, strict=True)))  # type: ignore[return-value]


def write(prefix: Path, content: Checkpoint) -> None:
    with BundleWriter(prefix) as writer:
        slices = {} if content[1] is None else {spec: one for spec, one, _ in content[1][1]}
        for name, spec, value in zip(*all_of(content), strict=True):
            if spec:
                writer.add_slice(name, content[1][0].shape, slices[spec], value)
            else:
                writer.add(name, value)


def files(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


@fewer_examples
@given(CHECKPOINTS)
def test_v2(tf: ModuleType, content: Checkpoint) -> None:
    expected = content[0] | ({} if content[1] is None else {"parted variable": content[1][0]})
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        write(Path(ours) / "c", content)
        names, slices, tensors = all_of(content)
        tf.raw_ops.SaveV2(
            prefix=f"{theirs}/c",
            tensor_names=[name.encode() for name in names],
            shape_and_slices=slices,
            tensors=[tensor(tf, value) for value in tensors],
        )
        assert files(Path(ours)) == files(Path(theirs))
        with opkernel.load_checkpoint(f"{theirs}/c") as checkpoint:
            assert checkpoint.keys() == sorted(expected, key=str.encode)
            for name, value in expected.items():
                assert same(checkpoint.get(name), value)
        reader = tf.train.load_checkpoint(f"{ours}/c")
        assert {*reader.get_variable_to_shape_map()} == {*expected}
        for name, value in expected.items():
            assert same(reader.get_tensor(name), value)


@fewer_examples
@given(OF_V1)
def test_v1(tf: ModuleType, content: Checkpoint) -> None:
    named, parted = content
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        writer = SlicesWriter(f"{ours}/c")
        names, slices, tensors = all_of(content)
        specs = {} if parted is None else {spec: one for spec, one, _ in parted[1]}
        for name, spec, value in zip(names, slices, tensors, strict=True):
            shape = parted[0].shape if spec else value.shape
            writer.add(name, shape, specs[spec] if spec else TensorSlice.whole(value.ndim), value)
        writer.finish()
        tf.raw_ops.SaveSlices(
            filename=f"{theirs}/c",
            tensor_names=[name.encode() for name in names],
            shapes_and_slices=slices,
            data=[tensor(tf, value) for value in tensors],
        )
        assert files(Path(ours)) == files(Path(theirs))
        with opkernel.load_checkpoint(f"{theirs}/c") as checkpoint:
            for name, value in named.items():
                assert same(checkpoint.get(name), value)
            if parted is not None:
                assert same(checkpoint.get("parted variable"), parted[0])


@fewer_examples
@given(partitions(("float32", "int64", "bool")), st.data())
def test_slices_of_slices(tf: ModuleType, parted: Any, data: Any) -> None:
    whole = parted[0]
    texts = []
    for size in whole.shape:
        start = data.draw(st.integers(0, size - 1))
        length = data.draw(st.integers(1, size - start))
        texts.append(data.draw(st.sampled_from(["-", f"{start},{length}"])))
    spec = TensorSlice.parse(":".join(texts))
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "c", ({}, parted))
        found = tf.raw_ops.RestoreV2(
            prefix=f"{folder}/c",
            tensor_names=["parted variable"],
            shape_and_slices=[f"{' '.join(map(str, whole.shape))} {spec}"],
            dtypes=[whole.dtype],
        )[0]
        with opkernel.load_checkpoint(f"{folder}/c") as checkpoint:
            ours = checkpoint.get_slice("parted variable", spec)
        assert same(found, np.ascontiguousarray(whole[spec.index()]))
        assert same(ours, np.ascontiguousarray(whole[spec.index()]))


def test_an_index_of_many_blocks(tf: ModuleType, tmp_path: Path) -> None:
    """Keys of 3,000 tensors fill more than one block of 256 KiB."""
    named = {f"{i:04d}/{'scope/' * 20}": np.int32(i) for i in range(3000)}
    for one in ("ours", "theirs"):
        (tmp_path / one).mkdir()
    write(tmp_path / "ours" / "c", (named, None))
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "theirs" / "c"),
        tensor_names=[*named],
        shape_and_slices=[""] * len(named),
        tensors=[tf.constant(value) for value in named.values()],
    )
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")


def test_strings_of_many_sizes(tf: ModuleType, tmp_path: Path) -> None:
    value = np.array([b"", b"\0" * 3, b"x" * (1 << 20), b"y" * 127, b"z" * 128], object)
    write(tmp_path / "c", ({"s": value}, None))
    assert same(tf.train.load_checkpoint(str(tmp_path / "c")).get_tensor("s"), value)


def test_merged_checkpoints_have_the_same_bytes(tf: ModuleType, tmp_path: Path) -> None:
    parts = {
        "one": ({"a": np.arange(3)}, None),
        "two": ({"b": np.array([b"s"], object)}, None),
        "three": ({"c": np.zeros((0, 2), np.float32)}, None),
    }
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
        for name, content in parts.items():
            write(tmp_path / folder / name, content)
    names = [*parts]
    opkernel.checkpoint.merge_bundles(
        [str(tmp_path / "ours" / name) for name in names], str(tmp_path / "ours" / "whole")
    )
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / "theirs" / name) for name in names],
        destination_prefix=str(tmp_path / "theirs" / "whole"),
    )
    assert files(tmp_path / "ours") == files(tmp_path / "theirs")
