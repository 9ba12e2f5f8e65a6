"""Pipelines drawn at random over ragged and sparse elements, of up to four stages, from TensorFlow's or opkernel's `data`."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

_MOST_ELEMENTS = 40
_DTYPES = {
    "int64": lambda r: r.randint(-9, 9),
    "int32": lambda r: r.randint(-9, 9),
    "float32": lambda r: r.randint(-9, 9) / 2,
    "bool": lambda r: r.random() < 0.5,
    "string": lambda r: r.choice([b"", b"a", b"bc"]),
}


class Kind(NamedTuple):
    """A component of elements as it is drawn.

    Attributes:
        name: ragged, sparse or dense.
        dtype: The type of the values.
        rank: Of a ragged one the levels of rows, of others the rank.
        inner: The dense dimensions of the values of a ragged one.
        splits: The type of its splits.
    """

    name: str
    dtype: str
    rank: int
    inner: tuple[int, ...]
    splits: str


class Drawing:
    """The stages, in terms of a library: `opkernel` or `tensorflow`; files stand in a folder."""

    def __init__(self, library: Any, seed: int, folder: str) -> None:
        self._folder, self._places = folder, 0
        self.library, self.random = library, random.Random(seed)
        self.datasets = library.data.Dataset
        self.is_tensorflow = library.__name__ == "tensorflow"
        self.ragged_tensor = (library if self.is_tensorflow else library.ragged).RaggedTensor
        library.random.set_seed(seed + 1)

    def place(self) -> str:
        """Where a stage writes its files."""
        self._places += 1
        return f"{self._folder}/{self._places}"

    def number(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def values(self, dtype: str, shape: tuple[int, ...]) -> Any:
        count = int(np.prod(shape))
        drawn = [_DTYPES[dtype](self.random) for _ in range(count)]
        return np.array(drawn, object if dtype == "string" else dtype).reshape(shape)

    def kind(self) -> Kind:
        r = self.random
        name = r.choice(["ragged", "ragged", "sparse", "sparse", "dense"])
        rank = r.randint(1, 2) if name == "ragged" else r.randint(0 if name == "dense" else 1, 3)
        inner = r.choice([(), (), (2,)])
        return Kind(name, r.choice([*_DTYPES]), rank, inner, r.choice(["int32", "int64"]))

    def structure(self) -> Any:
        """Kinds of components in a structure."""
        form = self.number(0, 4)
        if form <= 2:
            return self.kind()
        if form == 3:
            return self.kind(), self.kind()
        return {"b": self.kind(), "a": (self.kind(),)}

    def component(self, kind: Kind, rows: int) -> Any:
        if kind.name == "ragged":
            splits: list[Any] = []
            count = rows
            for _ in range(kind.rank):
                splits.append(np.cumsum([0, *[self.number(0, 3) for _ in range(count)]]))
                count = int(splits[-1][-1])
            flat = self.values(kind.dtype, (count, *kind.inner))
            typed = [one.astype(kind.splits) for one in splits]
            return self.ragged_tensor.from_nested_row_splits(flat, typed)
        shape = (rows, 2, 3)[: kind.rank]
        if kind.name == "dense":
            return self.values(kind.dtype, shape)
        places = [*np.ndindex(*shape)]
        chosen = sorted(self.random.sample(places, self.number(0, len(places))))
        indices = np.array(chosen, np.int64).reshape(len(chosen), kind.rank)
        values = self.values(kind.dtype, (len(chosen),))
        return self.library.sparse.SparseTensor(indices, values, np.array(shape, np.int64))

    def element(self, structure: Any, rows: int) -> Any:
        return mapped(lambda kind: self.component(kind, rows), structure)

    def source(self) -> Any:
        structure = self.structure()
        rows, way = self.number(1, 4), self.number(0, 3)
        if way == 0:
            return self.datasets.from_tensors(self.element(structure, rows))
        if way == 1:
            return self.datasets.from_tensor_slices(self.element(structure, rows))
        made = self.datasets.from_tensors(self.element(structure, rows))
        for _ in range(self.number(1, 3)):
            rows = rows if way == 2 else self.number(0, 4)
            made = made.concatenate(self.datasets.from_tensors(self.element(structure, rows)))
        return made

    def measure(self, *parts: Any) -> Any:
        """How many values the components have, in all."""
        total: Any = self.library.constant(0, self.library.int64)
        for part in leaves(parts):
            values = getattr(part, "flat_values", getattr(part, "values", part))
            count = self.library.cast(self.library.size(values), self.library.int64)
            total = total + count
        return total

    def pipeline(self, names: list[str]) -> Any:
        """The pipeline; the names of its stages are added to `names`, also of one that is refused."""
        dataset = self.source()
        for _ in range(self.number(1, 4)):
            names.append(self.random.choice(sorted(STAGES)))
            dataset = STAGES[names[-1]](self, dataset)
        return dataset


def mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of drawn kinds, specs or components with a function applied to each."""
    if isinstance(structure, Mapping):
        return {key: mapped(function, part) for key, part in structure.items()}
    if type(structure) is tuple:
        return tuple([mapped(function, part) for part in structure])
    return function(structure)


def leaves(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [leaf for key in sorted(structure) for leaf in leaves(structure[key])]
    if type(structure) is tuple:
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]


def only(parts: tuple[Any, ...]) -> Any:
    """What a function of an element was called with: the element."""
    return parts[0] if len(parts) == 1 else parts


def _changed(d: Drawing, x: Any) -> Any:
    """A map that makes new components of those that it gets."""
    return x.map(lambda *parts: (only(parts), d.measure(*parts)))


def _other_values(d: Drawing, x: Any) -> Any:
    def other(part: Any) -> Any:
        if hasattr(part, "with_flat_values"):
            return part.with_flat_values(d.library.zeros_like(part.flat_values))
        if hasattr(part, "dense_shape"):
            zeros = d.library.zeros_like(part.values)
            return d.library.sparse.SparseTensor(part.indices, zeros, part.dense_shape)
        return part

    return x.map(lambda *parts: mapped(other, only(parts)))


def _windows(d: Drawing, x: Any) -> Any:
    windows = x.window(
        d.number(1, 3), d.number(1, 3), d.number(1, 2), d.random.choice([False, True])
    )
    is_batched = d.number(0, 1)

    def flat(*parts: Any) -> Any:
        inner = mapped(lambda one: one.batch(2) if is_batched else one, only(parts))
        return d.datasets.zip(inner) if isinstance(inner, tuple | dict) else inner

    return windows.flat_map(flat)


def _buckets(d: Drawing, x: Any) -> Any:
    has_padding = d.number(0, 3) == 0
    return x.bucket_by_sequence_length(
        lambda *parts: d.library.cast(d.measure(*parts), d.library.int32),
        [3, 6],
        [2, 1, 3],
        no_padding=not has_padding,
    )


def _chosen(d: Drawing, x: Any) -> Any:
    choices = [d.number(0, 1) for _ in range(d.number(1, 6))]
    other = x.map(lambda *parts: only(parts)).repeat(2)
    choice = d.datasets.from_tensor_slices(np.array(choices, np.int64))
    return d.datasets.choose_from_datasets([x, other], choice)


def _saved(d: Drawing, x: Any) -> Any:
    folder = d.place()
    x.save(folder)
    return d.datasets.load(folder)


def _scanned(d: Drawing, x: Any) -> Any:
    def step(state: Any, *parts: Any) -> Any:
        element = only(parts)
        return state + d.measure(element), (element, state)

    return x.scan(np.int64(0), step)


def _grouped(d: Drawing, x: Any) -> Any:
    divisor, size = d.number(2, 3), d.number(1, 3)
    is_batched = d.number(0, 1)
    return x.group_by_window(
        lambda *parts: d.measure(*parts) % divisor,
        lambda _, w: w.batch(2) if is_batched else w.take(2),
        size,
    )


def _filtered(d: Drawing, x: Any) -> Any:
    divisor = d.number(2, 3)
    return x.filter(lambda *parts: d.library.equal(d.measure(*parts) % divisor, 0))


def _taken_while(d: Drawing, x: Any) -> Any:
    limit = d.number(1, 9)
    return x.take_while(lambda *parts: d.measure(*parts) < limit)


def _interleaved(d: Drawing, x: Any) -> Any:
    count, cycle, block = d.number(1, 3), d.number(1, 3), d.number(1, 2)
    calls = d.random.choice([None, 1])
    return x.interleave(
        lambda *parts: d.datasets.from_tensors(only(parts)).repeat(count),
        cycle,
        block,
        num_parallel_calls=calls,
    )


def _sliced(d: Drawing, x: Any) -> Any:
    return x.flat_map(lambda *parts: d.datasets.from_tensor_slices(only(parts)))


def _batched(d: Drawing, x: Any) -> Any:
    calls = d.random.choice([None, None, 2])
    return x.batch(d.number(1, 3), d.random.choice([False, True]), num_parallel_calls=calls)


def _sparsely_batched(d: Drawing, x: Any) -> Any:
    """Components in variants, which TensorFlow refuses at the first element only, stay as they are."""
    is_dense = all(type(one).__name__ == "TensorSpec" for one in leaves(x.element_spec))
    return x.sparse_batch(2, [4, 2][: d.number(1, 2)]) if is_dense else x


def _resampled(d: Drawing, x: Any) -> Any:
    return x.rejection_resample(
        lambda *parts: d.measure(*parts) % 2,
        [0.5, 0.5],
        d.random.choice([None, [0.3, 0.7]]),
        seed=3,
    )


STAGES: dict[str, Callable[[Drawing, Any], Any]] = {
    "batch": _batched,
    "batch again": _batched,
    "bucket_by_sequence_length": _buckets,
    "cache": lambda d, x: x.cache(),
    "cache in files": lambda d, x: x.cache(d.place()),
    "choose_from_datasets": _chosen,
    "concatenate": lambda d, x: x.concatenate(x.map(lambda *parts: only(parts))),
    "concatenate others": lambda d, x: x.concatenate(d.source()),
    "enumerate": lambda d, x: x.enumerate(3),
    "filter": _filtered,
    "flat_map": _sliced,
    "group_by_window": _grouped,
    "interleave": _interleaved,
    "map": _changed,
    "map values": _other_values,
    "padded_batch": lambda d, x: x.padded_batch(2),
    "prefetch": lambda d, x: x.prefetch(2),
    "ragged_batch": lambda d, x: x.ragged_batch(d.number(1, 3), d.random.choice([False, True])),
    "rebatch": lambda d, x: x.rebatch(
        d.random.choice([1, 2, [2, 1]]), d.random.choice([False, True])
    ),
    "rejection_resample": _resampled,
    "repeat": lambda d, x: x.repeat(2),
    "save": _saved,
    "scan": _scanned,
    "shard": lambda d, x: x.shard(2, d.number(0, 1)),
    "shuffle": lambda d, x: x.shuffle(3, 7),
    "skip": lambda d, x: x.skip(1),
    "snapshot": lambda d, x: x.snapshot(d.place()),
    "sparse_batch": _sparsely_batched,
    "take": lambda d, x: x.take(2),
    "take_while": _taken_while,
    "unbatch": lambda d, x: x.unbatch(),
    "unique": lambda d, x: x.unique(),
    "window": _windows,
    "zip": lambda d, x: d.datasets.zip((x, x.skip(1))),
}


def component(value: Any) -> Any:
    """A component as lists and the names of its types."""
    if hasattr(value, "nested_row_splits"):
        parts = [np.asarray(one) for one in (value.flat_values, *value.nested_row_splits)]
        return "ragged", *map(_listed, parts)
    if hasattr(value, "dense_shape"):
        parts = [np.asarray(one) for one in (value.indices, value.values, value.dense_shape)]
        return "sparse", *map(_listed, parts)
    return _listed(np.asarray(value))


def _listed(array: Any) -> Any:
    return "string" if array.dtype.kind in "OS" else str(array.dtype), array.tolist()


def spec_of(spec: Any) -> Any:
    """The spec of a component: its kind, shape, type, and of ragged ones the levels of rows and the type of splits."""
    if type(spec).__name__ == "DatasetSpec":
        return "dataset", mapped(spec_of, spec.element_spec)
    shape = None if spec.shape.rank is None else spec.shape.as_list()
    dtype = getattr(spec.dtype, "tf_name", None) or spec.dtype.name
    if hasattr(spec, "ragged_rank"):
        splits = spec.row_splits_dtype
        name = getattr(splits, "tf_name", None) or splits.name
        return "ragged", shape, dtype, spec.ragged_rank, name
    return type(spec).__name__, shape, dtype


KINDS: dict[str, Any] = {
    "ragged": Kind("ragged", "int64", 1, (), "int64"),
    "ragged of two levels": Kind("ragged", "string", 2, (), "int32"),
    "ragged of pairs": Kind("ragged", "float32", 1, (2,), "int64"),
    "sparse": Kind("sparse", "int64", 2, (), "int64"),
    "sparse of rank 3": Kind("sparse", "string", 3, (), "int64"),
    "mixed": {
        "b": Kind("ragged", "int32", 1, (), "int64"),
        "a": (Kind("dense", "int64", 2, (), "int64"), Kind("sparse", "float32", 2, (), "int64")),
    },
}
"""The elements of `stage_account`."""


class Account(NamedTuple):
    """What a pipeline gives in one of the libraries.

    Attributes:
        stages: Its stages, and the name of the error that the last one raised.
        spec: Its element_spec.
        elements: Its elements, and what ended them: END, or the name of the error.
    """

    stages: list[str]
    spec: Any
    elements: list[Any]


def account(library: Any, seed: int) -> Account:
    """Draw a pipeline, and pass over it."""
    names: list[str] = []

    def draw(drawing: Drawing) -> Any:
        return drawing.pipeline(names)

    return _account(library, seed, draw, names)


def stage_account(library: Any, stage: str, kind: str) -> Account:
    """What a stage gives for four elements of a kind, which have three rows each."""

    def draw(drawing: Drawing) -> Any:
        given = [drawing.element(KINDS[kind], 3) for _ in range(4)]
        dataset = drawing.datasets.from_tensors(given[0])
        for element in given[1:]:
            dataset = dataset.concatenate(drawing.datasets.from_tensors(element))
        return STAGES[stage](drawing, dataset)

    return _account(library, 5, draw, [stage])


def _account(library: Any, seed: int, draw: Callable[[Drawing], Any], names: list[str]) -> Account:
    with tempfile.TemporaryDirectory() as folder:
        try:
            dataset = draw(Drawing(library, seed, folder))
        except (TypeError, ValueError, library.errors.OpError) as error:
            return Account([*names, type(error).__name__], None, [])
        spec = mapped(spec_of, dataset.element_spec)
        return Account(names, spec, elements_of(library, dataset))


def elements_of(library: Any, dataset: Any) -> list[Any]:
    """The elements, and what ended them; NO PASS where it cannot begin."""
    found: list[Any] = []
    try:
        elements = iter(dataset)
    except library.errors.OpError:
        return ["NO PASS"]
    while len(found) < _MOST_ELEMENTS:
        try:
            found.append(mapped(component, next(elements)))
        except StopIteration:
            return [*found, "END"]
        except (TypeError, ValueError, library.errors.OpError) as error:
            return [*found, type(error).__name__]
    return found
