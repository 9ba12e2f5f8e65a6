"""What `pipelines.py` measures: pipelines of `tf.data`, their inputs, and how their elements are taken.

A pipeline is a function of a module, `opkernel` or `tensorflow`, and of the inputs. Both modules take the same calls, so
that both compute the same. Files stand in the folder of `models.CACHE`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from catalogue_rows import EXAMPLES, JPEGS, Inputs, examples, parse, strings_of
from models import CACHE

Step = Callable[[], object]

FOLDER = CACHE / "pipelines"
REAL, TRIVIAL = 0.5, 0.2
_FEW, _MANY = 2_000, 20_000


def in_for(system: Any, dataset: Any) -> Step:
    """A step that takes all elements in Python's loop."""

    def step() -> None:
        for _ in dataset:
            pass

    return step


def in_session(system: Any, make: Callable[[], Any]) -> Step:
    """A step that takes all elements by IteratorGetNext in a session."""
    v1 = system.compat.v1 if hasattr(system, "compat") else system
    make_iterator = getattr(v1, "data", system.data).make_initializable_iterator
    with v1.Graph().as_default() as graph:
        iterator = make_iterator(make())
        element = iterator.get_next()
        session = v1.Session(graph=graph)
        next_of = session.make_callable(element)

    def step() -> None:
        session.run(iterator.initializer)
        try:
            while True:
                next_of()
        except system.errors.OutOfRangeError:
            pass

    return step


class Row(NamedTuple):
    """A row of the table: the ratio of speeds that it aims at, its pipeline, its inputs, and what takes the elements."""

    aim: float
    pipeline: Callable[..., Any]
    inputs: Callable[[], Inputs] = list
    taken: Callable[[Any, Any], Step] = in_for


def step_of(name: str, system: Any, inputs: Inputs) -> Step:
    """The step of a row: a pass over all elements."""
    row = ROWS[name]
    if row.taken is in_session:
        return in_session(system, partial(row.pipeline, system, *inputs))
    return row.taken(system, row.pipeline(system, *inputs))


# Numbers


def _range(system: Any, count: int = _MANY) -> Any:
    return system.data.Dataset.range(count)


def _mapped(system: Any) -> Any:
    return _range(system).map(lambda x: x + 1)


def _filtered(system: Any) -> Any:
    kept = _range(system).filter(lambda x: system.equal(x % 3, 0))
    return kept.batch(100)


def _reduced(system: Any, dataset: Any) -> Step:
    zero = np.int64(0)
    return lambda: dataset.reduce(zero, lambda total, x: total + x)


def _combined(system: Any) -> Any:
    first, second = _range(system), _range(system, _MANY // 2).skip(10).repeat()
    return system.data.Dataset.zip((first, second)).take(_MANY - 10).batch(100)


def _windows(system: Any) -> Any:
    windows = _range(system, _FEW).window(10, shift=5, drop_remainder=True)
    return windows.flat_map(lambda window: window.batch(10)).batch(10)


def _datasets(system: Any, method: str, **options: Any) -> Any:
    def ten(x: Any) -> Any:
        return system.data.Dataset.range(10).map(lambda y: x * 10 + y)

    return getattr(_range(system, _FEW), method)(ten, **options).batch(100)


# Tensors


def _images() -> Inputs:
    random = np.random.default_rng(0)
    return [
        random.integers(0, 256, (_MANY, 28, 28), np.uint8),
        random.integers(0, 10, _MANY, np.int64),
    ]


def _shuffled(system: Any, images: Any, labels: Any) -> Any:
    pairs = system.data.Dataset.from_tensor_slices((images, labels))
    return pairs.shuffle(1000, seed=1).batch(32)


def _scaled(system: Any, images: Any, labels: Any) -> Any:
    def scale(image: Any, label: Any) -> Any:
        return system.cast(image, system.float32) / 255.0, system.one_hot(label, 10)

    pairs = system.data.Dataset.from_tensor_slices((images, labels))
    return pairs.shuffle(1000, seed=1).map(scale).batch(32).prefetch(2)


# Files


def _files(name: str, write: Callable[[str], object]) -> Inputs:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / name
    if not path.exists():
        write(str(path))
    return [strings_of([str(path).encode()])]


def _write_records(records: Callable[[], list[Any]], path: str) -> None:
    import opkernel

    with opkernel.io.TFRecordWriter(path) as writer:
        for record in records():
            writer.write(record)


def _some_examples() -> list[Any]:
    return [*examples()[0][: EXAMPLES // 5]]


def _write_lines(path: str) -> None:
    random = np.random.default_rng(0)
    words = ["Tensor", "flow", "PIPE", "line", "of", "12", "words", "and", "3.5", "Kernels"]
    chosen = random.integers(0, len(words), (_MANY, 12)).tolist()
    with open(path, "w") as file:
        file.writelines(" ".join(words[i] for i in line) + "\n" for line in chosen)


def _write_table(path: str) -> None:
    random = np.random.default_rng(0)
    with open(path, "w") as file:
        for number, floats in enumerate(random.random((_MANY, 8), np.float32).tolist()):
            texts = ",".join(f"{one:.6g}" for one in floats)
            file.write(f"{number},{texts},name {number % 100}\n")


def _parsed_batches(system: Any, path: Any) -> Any:
    def parsed(serialized: Any) -> Any:
        return tuple(parse(system.raw_ops, serialized).dense_values)

    return system.data.TFRecordDataset(path).batch(64).map(parsed)


def _batched_parses(system: Any, path: Any) -> Any:
    return system.data.TFRecordDataset(path).map(partial(_parse_one, system.raw_ops)).batch(64)


def _parse_one(ops: Any, serialized: Any) -> Any:
    parsed = ops.ParseSingleExample(
        serialized=serialized,
        dense_defaults=[np.empty(0, np.int64), np.empty(0, object), np.empty(0, np.float32)],
        num_sparse=0,
        sparse_keys=[],
        dense_keys=["label", "name", "values"],
        sparse_types=[],
        dense_shapes=[[], [], [8]],
    )
    return tuple(parsed.dense_values)


def _words_of(ops: Any, lines: Any) -> Any:
    lowered = ops.StringLower(input=lines, encoding="")
    plain = ops.StaticRegexReplace(input=lowered, pattern="[0-9.]+", rewrite="#")
    return ops.StringSplitV2(input=plain, sep=b" ", maxsplit=-1).values


def _lines(system: Any, path: Any) -> Any:
    def words(line: Any) -> Any:
        return _words_of(system.raw_ops, system.expand_dims(line, 0))

    return system.data.TextLineDataset(path).map(words).batch(64)


def _batches_of_lines(system: Any, path: Any) -> Any:
    lines = system.data.TextLineDataset(path)
    return lines.batch(64).map(partial(_words_of, system.raw_ops))


def _padded(system: Any, path: Any) -> Any:
    def words(line: Any) -> Any:
        ops = system.raw_ops
        return ops.StringSplitV2(input=system.expand_dims(line, 0), sep=b"i", maxsplit=-1).values

    return system.data.TextLineDataset(path).map(words).padded_batch(64, padded_shapes=[None])


def _table(system: Any, path: Any) -> Any:
    data = system.data
    csv = data.CsvDataset if hasattr(data, "CsvDataset") else data.experimental.CsvDataset
    types = [system.int64, *[system.float32] * 8, system.string]
    return csv(path, types).batch(64)


# Photographs


def _photographs(system: Any, *files: Any, **options: Any) -> Any:
    ops = system.raw_ops

    def small(file: Any) -> Any:
        image = ops.ExpandDims(input=ops.DecodeJpeg(contents=file, channels=3), axis=0)
        return ops.ResizeBilinear(images=image, size=[224, 224])[0]

    stacked = system.stack(files)
    return system.data.Dataset.from_tensor_slices(stacked).map(small, **options).batch(10)


_RECORDS = partial(_files, "examples.tfrecord", partial(_write_records, _some_examples))
_LINES = partial(_files, "lines.txt", _write_lines)
_TABLE = partial(_files, "table.csv", _write_table)

ROWS = {
    "range": Row(TRIVIAL, _range),
    "range.batch(1000)": Row(TRIVIAL, lambda s: _range(s, 100_000).batch(1000)),
    "range.map(x + 1)": Row(TRIVIAL, _mapped),
    "range.map(x + 1).batch(32)": Row(TRIVIAL, lambda s: _mapped(s).batch(32)),
    "range.map(x + 1), IteratorGetNext": Row(TRIVIAL, _mapped, taken=in_session),
    "range.filter.batch": Row(TRIVIAL, _filtered),
    "range, reduce": Row(TRIVIAL, _range, taken=_reduced),
    "range.batch(32).prefetch": Row(TRIVIAL, lambda s: _range(s).batch(32).prefetch(2)),
    "zip, take, skip, repeat, batch": Row(TRIVIAL, _combined),
    "window, flat_map, batch": Row(TRIVIAL, _windows),
    "flat_map of 10": Row(TRIVIAL, partial(_datasets, method="flat_map")),
    "interleave of 10": Row(TRIVIAL, partial(_datasets, method="interleave", cycle_length=4)),
    "images.shuffle.batch": Row(REAL, _shuffled, _images),
    "images.shuffle.map(scale).batch.prefetch": Row(REAL, _scaled, _images),
    "records.batch.map(parse)": Row(REAL, _parsed_batches, _RECORDS),
    "records.map(parse).batch": Row(REAL, _batched_parses, _RECORDS),
    "lines.batch.map(string ops)": Row(REAL, _batches_of_lines, _LINES),
    "lines.map(string ops).batch": Row(REAL, _lines, _LINES),
    "lines.map(split).padded_batch": Row(REAL, _padded, _LINES),
    "csv.batch": Row(REAL, _table, _TABLE),
    "jpegs.map(decode, resize).batch": Row(REAL, _photographs, JPEGS),
    "jpegs.map(the same, 2 calls in parallel).batch": Row(
        REAL, partial(_photographs, num_parallel_calls=2), JPEGS
    ),
}
