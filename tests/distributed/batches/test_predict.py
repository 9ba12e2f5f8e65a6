"""predict: the values of the model called directly, in order, from every kind of data set."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributed.batches.conftest import Told, X, Y

import opkernel
from opkernel.distributed import predict
from opkernel.errors import (
    Code,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnavailableError,
    UnimplementedError,
)

TEXT = [str(number) for number in range(10)]


def joined(batches: Any) -> dict[str, Any]:
    every = [*batches]
    return {name: np.concatenate([one[name] for one in every]) for name in every[0]}


@pytest.mark.parametrize("concurrency", [None, 2])
def test_a_graph_is_mapped_in_order(graph: Path, concurrency: int | None) -> None:
    data = {"x": X, "text": TEXT}
    batches = [*predict(graph, data, batch_size=3, concurrency=concurrency)]
    assert [len(one["y:0"]) for one in batches] == [3, 3, 3, 1]
    found = joined(batches)
    np.testing.assert_array_equal(found["y:0"], Y)
    assert found["number:0"].tolist() == [*range(10)]
    assert found["loud:0"].tolist() == [text.encode() for text in TEXT]


def test_arrays_that_may_not_be_written_to(saved_model: Path) -> None:
    x = X.copy()
    x.setflags(write=False)  # as arrays of Ray's object store are
    found = joined(predict(saved_model, {"x": x}, batch_size=4))
    np.testing.assert_array_equal(found["y"], Y)
    assert (x == X).all()
    assert found["y"].flags.writeable


@pytest.mark.parametrize("concurrency", [None, 1])
def test_a_saved_model_is_mapped_by_its_signature(
    saved_model: Path, concurrency: int | None
) -> None:
    found = joined(predict(saved_model, {"x": X}, batch_size=4, concurrency=concurrency))
    np.testing.assert_array_equal(found["y"], Y)
    named = predict(saved_model / "saved_model.pb", {"x": X}, signature="serving_default")
    np.testing.assert_array_equal(joined(named)["y"], Y)


def test_data_sets_of_every_kind(saved_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, rows in (("b", X[7:]), ("a", X[:7])):
        np.savez(folder / f"{name}.npz", x=rows)
    mappings = [{"x": X[:7]}, {"x": X[7:7]}, {"x": X[7:]}]
    for data in (mappings, iter(mappings), folder, {"x:0": X.astype(np.int64)}, {"x": X.tolist()}):
        np.testing.assert_array_equal(joined(predict(saved_model, data, batch_size=4))["y"], Y)
    assert len(joined(predict(saved_model, folder / "b.npz"))["y"]) == 3
    assert [*predict(saved_model, {"x": X[:0]})] == []


@pytest.mark.parametrize("concurrency", [None, 2])
@pytest.mark.parametrize("form", ["plain", "compressed", "fortran"])
def test_arrays_in_files(graph: Path, tmp_path: Path, form: str, concurrency: int | None) -> None:
    x = np.asfortranarray(X) if form == "fortran" else X
    save = np.savez_compressed if form == "compressed" else np.savez
    save(tmp_path / "in.npz", x=x, text=np.array(TEXT))
    found = joined(predict(graph, tmp_path / "in.npz", batch_size=3, concurrency=concurrency))
    np.testing.assert_array_equal(found["y:0"], Y)
    assert found["loud:0"].tolist() == [text.encode() for text in TEXT]


def test_a_file_that_is_written_anew(graph: Path, tmp_path: Path) -> None:
    for factor in (1, 2):
        np.savez_compressed(tmp_path / "in.npz", x=factor * X, text=np.array(TEXT))
        found = joined(predict(graph, tmp_path / "in.npz"))
        np.testing.assert_array_equal(found["y:0"], factor * Y)


def test_a_table_gives_its_columns(saved_model: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": [*range(10)], "x": [[*row] for row in X.astype(float)]})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    batches = [*predict(saved_model, tmp_path / "x.parquet", batch_size=4)]
    assert [len(one["y"]) for one in batches] == [4, 4, 2]
    np.testing.assert_array_equal(joined(batches)["y"], Y)


def test_a_table_needs_its_library(
    saved_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(OpError, match=r"pip install 'opkernel\[parquet\]'") as caught:
        next(predict(saved_model, tmp_path / "x.parquet"))
    assert caught.value.code is Code.UNIMPLEMENTED


def test_ray_needs_its_library(saved_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'opkernel\[ray\]'"):
        predict(saved_model, {"x": X}, workers="ray")


@pytest.mark.parametrize(("concurrency", "most"), [(None, 1), (1, 3)])
def test_few_batches_are_under_way(saved_model: Path, concurrency: int | None, most: int) -> None:
    taken = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield {"x": X}

    with predict(saved_model, rows(), concurrency=concurrency) as batches:
        next(batches)
        assert taken == most


@pytest.mark.parametrize("concurrency", [None, 1])
def test_rows_that_fail_are_set_aside(graph: Path, concurrency: int | None) -> None:
    text = ["0", "1", "two", "3", "4", "five", "6", "7", "8", "nine"]
    data = {"x": X, "text": text}
    found = predict(graph, data, batch_size=3, concurrency=concurrency, on_error="skip")
    values = joined(found)
    assert values["number:0"].tolist() == [0, 1, 3, 4, 6, 7, 8]
    np.testing.assert_array_equal(values["y:0"][2], Y[3])
    assert [(row, code) for row, code, _ in found.skipped] == [
        (2, Code.INVALID_ARGUMENT), (5, Code.INVALID_ARGUMENT), (9, Code.INVALID_ARGUMENT),
    ]  # fmt: skip
    assert "could not correctly convert string: two" in found.skipped[0][2]
    strict = predict(graph, data, batch_size=2, concurrency=concurrency)
    assert next(strict)["number:0"].tolist() == [0, 1]
    with pytest.raises(InvalidArgumentError, match=r"Row 2: .*convert string: two"):
        next(strict)


def test_outputs_have_a_row_for_each_row(tmp_path: Path) -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None, 3], name="x")
        opkernel.raw_ops.Max(input=x, axis=[0, 1], name="most")
    opkernel.save_graph(graph, tmp_path / "most.pb")
    with pytest.raises(InvalidArgumentError, match=r"Output 'most:0' has shape \[\] for 1 rows"):
        next(predict(tmp_path / "most.pb", {"x": X}))


WRONG: dict[str, tuple[Any, str]] = {
    "missing": ({"x": X}, "has no 'text'; the model takes 'x', 'text'"),
    "unknown": ({"x": X, "txet": TEXT}, "no input 'txet'; perhaps you mean text"),
    "lengths": ({"x": X, "text": TEXT[:4]}, "rows: 'x' has 10, 'text' has 4"),
    "dtype": ({"x": np.array(TEXT), "text": TEXT}, "'x' has dtype <U1, and the model takes float"),
    "no strings": ({"x": X, "text": X[:, 0]}, "'text' has dtype float32, and takes strings"),
    "mixed": ({"x": X, "text": [*TEXT[:9], None]}, "strings, and has NoneType among"),
    "shape": ({"x": X[:, :2], "text": TEXT}, r"shape \[10,2\], and the model takes \[\?,3\]"),
    "scalar": ({"x": 3, "text": TEXT}, "'x' is a scalar"),
    "jagged": ({"x": [[1], [1, 2]], "text": TEXT}, "'x' is no array"),
    "batches": ([X], "Expected a mapping of names to arrays, got ndarray"),
    "nothing": (3, "or a path, got int"),
}


@pytest.mark.parametrize("what", WRONG)
def test_data_that_does_not_fit(what: str, graph: Path) -> None:
    data, message = WRONG[what]
    with pytest.raises(InvalidArgumentError, match=message):
        next(predict(graph, data))


def test_files_that_are_no_data(graph: Path, saved_model: Path, tmp_path: Path) -> None:
    cases: list[tuple[Any, type[OpError], str]] = [
        (tmp_path / "nowhere.npz", NotFoundError, "There is no file .*nowhere.npz"),
        (graph, InvalidArgumentError, "graph.pb is a binary GraphDef; rows come from"),
        (saved_model, NotFoundError, "has no .npz, .npy, .parquet, .csv"),
    ]
    for data, kind, message in cases:
        with pytest.raises(kind, match=message):
            predict(graph, data)
    np.savez(tmp_path / "x.npz", x=X)
    whole = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataLossError, match="Cannot read arrays"):
        next(predict(graph, tmp_path / "x.npz"))
    np.savez(tmp_path / "x.npz", x=X, text=np.array([{}] * 10))
    with pytest.raises(DataLossError, match="Python objects"):
        next(predict(graph, tmp_path / "x.npz"))
    np.savez(tmp_path / "x.npz", x=X, text=np.array("1"))
    with pytest.raises(InvalidArgumentError, match="'text' is a scalar"):
        next(predict(graph, tmp_path / "x.npz"))


def test_wrong_models_and_options(graph: Path, saved_model: Path, tmp_path: Path) -> None:
    cases: list[tuple[Path, dict[str, Any], type[OpError], str]] = [
        (tmp_path / "nowhere", {}, NotFoundError, "nowhere"),
        (saved_model, {"signature": "other"}, NotFoundError, "it has serving_default"),
        (graph, {"signature": "other"}, InvalidArgumentError, "neither signatures nor tags"),
        (graph, {"batch_size": 0}, InvalidArgumentError, "batch_size is 0"),
        (graph, {"concurrency": 0}, InvalidArgumentError, "concurrency 0"),
        (graph, {"on_error": "ignore"}, InvalidArgumentError, "may be 'raise' or 'skip'"),
    ]
    for model, options, kind, message in cases:
        with pytest.raises(kind, match=message):
            predict(model, {"x": X}, **options)


@pytest.mark.parametrize("code", [-1, -2])
def test_a_process_that_ends_is_told(told: Told, code: int) -> None:
    x = np.array([1, 2, 3, code], np.float32)
    found = predict(
        told.model, {"x": x}, batch_size=1, concurrency=1, libraries=[told.library.stem]
    )
    with pytest.raises(UnavailableError, match="worker process ended"):
        list(found)


def test_closing_ends_what_is_under_way(told: Told) -> None:
    x = np.array([1, -4, -4, -4], np.float32)
    library = [told.library.stem]
    with predict(told.model, {"x": x}, batch_size=1, concurrency=1, libraries=library) as found:
        assert next(found)["y:0"].tolist() == [2]
    assert not Path(f"{told.library}.slept").exists(), "nobody waited for the batches under way"
