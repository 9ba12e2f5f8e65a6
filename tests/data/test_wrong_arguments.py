"""Each argument of each method of datasets, with values of wrong kinds: an error that opkernel raises itself."""

import inspect
import itertools
import linecache
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset, Options

_NUMBERS = Dataset.range(3)
_FOLDER = "a-folder"


def _same(*parts: Any) -> Any:
    return parts[0]


def _is_small(x: Any) -> Any:
    return opkernel.less(x, np.int64(2))


_CALLS: dict[str, dict[str, Any]] = {
    "from_tensors": {"tensors": 1},
    "from_tensor_slices": {"tensors": [1, 2]},
    "range": {},
    "random": {},
    "from_generator": {
        "generator": lambda: [1, 2],
        "output_types": "int64",
        "output_shapes": (),
        "args": (),
    },
    "list_files": {"file_pattern": __file__},
    "zip": {"datasets": (_NUMBERS, _NUMBERS)},
    "concatenate": {"dataset": _NUMBERS},
    "choose_from_datasets": {
        "datasets": [_NUMBERS, _NUMBERS],
        "choice_dataset": Dataset.range(2),
    },
    "sample_from_datasets": {"datasets": [_NUMBERS, _NUMBERS]},
    "counter": {},
    "rejection_resample": {"class_func": _same, "target_dist": [0.25, 0.25, 0.5]},
    "reduce": {"initial_state": np.int64(0), "reduce_func": lambda state, x: state + x},
    "map": {"map_func": _same},
    "filter": {"predicate": _is_small},
    "take_while": {"predicate": _is_small},
    "flat_map": {"map_func": Dataset.range},
    "interleave": {"map_func": Dataset.range},
    "scan": {"initial_state": np.int64(0), "scan_func": lambda state, x: (state, x)},
    "take": {"count": 1},
    "skip": {"count": 1},
    "repeat": {"count": 1},
    "shard": {"num_shards": 2, "index": 0},
    "unique": {},
    "ignore_errors": {},
    "shuffle": {"buffer_size": 2},
    "batch": {"batch_size": 2},
    "padded_batch": {"batch_size": 2},
    "unbatch": {},
    "rebatch": {"batch_size": 2},
    "window": {"size": 2},
    "group_by_window": {"key_func": _same, "reduce_func": lambda _, part: part, "window_size": 2},
    "bucket_by_sequence_length": {
        "element_length_func": lambda _: 1,
        "bucket_boundaries": [3],
        "bucket_batch_sizes": [2, 2],
    },
    "with_options": {"options": Options()},
    "options": {},
    "sparse_batch": {"batch_size": 2, "row_shape": [2]},
    "ragged_batch": {"batch_size": 2},
    "prefetch": {"buffer_size": 2},
    "cache": {},
    "enumerate": {},
    "save": {"path": _FOLDER},
    "snapshot": {"path": _FOLDER},
    "load": {"path": _FOLDER},
    "apply": {"transformation_func": _same},
    "as_numpy_iterator": {},
    "get_single_element": {},
    "cardinality": {},
    "at": {"index": 0},
    "global_shuffle": {},
}
_WRONG: list[Any] = [
    None, 5, -7, "x", b"y", object(), 1.5, [1, 2], {}, {"a": 1}, (), _NUMBERS, np.zeros((2, 2)),
    opkernel.int32, [None], True, 2**70, [object()],
]  # fmt: skip


def _method(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(_NUMBERS.batch(2) if "batch" in name else _NUMBERS, name)
    return found


def _arguments() -> list[tuple[str, str]]:
    return [
        (name, one.name)
        for name in _CALLS
        for one in inspect.signature(_method(name)).parameters.values()
        if one.name not in ("name", "wait") and one.kind is not one.VAR_POSITIONAL
    ]


def test_all_methods_are_tried() -> None:
    methods = {n for n, _ in inspect.getmembers(Dataset, callable) if not n.startswith("_")}
    assert methods - {"make"} <= _CALLS.keys()


@pytest.mark.parametrize(("method", "argument"), _arguments())
def test_wrong_arguments_are_named(
    method: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = [_error_of(method, {**_CALLS[method], argument: wrong}) for wrong in _WRONG]
    assert [error for error in found if not _is_own(error)] == []


def _error_of(method: str, arguments: dict[str, Any]) -> Exception | None:
    try:
        made = _method(method)(**arguments)
        if isinstance(made, Dataset):
            _ = [*itertools.islice(made, 3)]
    except Exception as error:
        return error
    return None


def _is_own(error: Exception | None) -> bool:
    if error is None or isinstance(error, errors.OpError):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(last.filename, last.lineno or 0)
    return isinstance(error, TypeError | ValueError) and line.lstrip().startswith("raise")
