"""predict by the workers of a Ray cluster: as by processes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributed.batches.conftest import Told, X, Y
from tests.distributed.batches.test_predict import TEXT, joined

from opkernel.distributed import predict
from opkernel.errors import Code, InvalidArgumentError, UnavailableError

pytestmark = [
    pytest.mark.usefixtures("ray"),
    pytest.mark.ray,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*"),  # of its own names
]


def test_values_and_failed_rows_in_order(graph: Path) -> None:
    text = [*TEXT[:5], "five", *TEXT[6:]]
    data = {"x": X, "text": text}
    found = predict(graph, data, batch_size=3, workers="ray", concurrency=2, on_error="skip")
    values = joined(found)
    np.testing.assert_array_equal(values["y:0"], np.delete(Y, 5, axis=0))
    assert values["number:0"].tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert [(row, code) for row, code, _ in found.skipped] == [(5, Code.INVALID_ARGUMENT)]
    strict = predict(graph, data, batch_size=3, workers="ray", concurrency=1)
    with pytest.raises(InvalidArgumentError, match=r"Row 5: .*convert string: five"):
        list(strict)


def test_files_and_parts(saved_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, rows in (("b", X[7:]), ("a", X[:7])):
        np.savez(folder / f"{name}.npz", x=rows)
    options: dict[str, Any] = {"batch_size": 2, "output": tmp_path / "out"}
    np.testing.assert_array_equal(
        joined(predict(saved_model, folder, workers="ray", **options))["y"], Y
    )
    for number in (1, 4):
        (tmp_path / "out" / f"part-{number:05}.npz").unlink()
    again = predict(saved_model, folder, workers="ray", **options)
    np.testing.assert_array_equal(joined(again)["y"], Y)
    assert (again.batches, again.computed) == (6, 2)
    here = predict(saved_model, folder, **options)
    np.testing.assert_array_equal(joined(here)["y"], Y)
    assert here.computed == 0


def test_a_table_is_read_by_the_workers(saved_model: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"x": [[*row] for row in X.astype(float)]})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=3)
    found = predict(saved_model, tmp_path / "x.parquet", batch_size=4, workers="ray", concurrency=2)
    np.testing.assert_array_equal(joined(found)["y"], Y)


def test_a_worker_that_is_lost(told: Told) -> None:
    x = np.array([1, 2, 3, -2], np.float32)
    options: dict[str, Any] = {"concurrency": 1, "libraries": [told.library.stem]}
    found = predict(told.model, {"x": x[:3]}, batch_size=1, workers="ray", **options)
    assert joined(found)["y:0"].tolist() == [2, 3, 4]
    found = predict(told.model, {"x": x}, batch_size=1, workers="ray", **options)
    with pytest.raises(UnavailableError, match="worker of Ray ended 3 times"):
        list(found)
