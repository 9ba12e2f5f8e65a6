"""Text and single arrays as data sets: the values of the model called directly, and what bad lines say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributed.batches.conftest import X, Y

import opkernel
from opkernel import Graph, raw_ops, save_graph
from opkernel.distributed import predict
from opkernel.errors import Code, DataLossError, InvalidArgumentError

ROWS = [(1, 0.5, "a,b", True), (-2, float("nan"), 'say "x"', False), (3, -1e30, "", True)]
CSV = """\
id,count,weight,text,flag

7,1,0.5,"a,b",true
8,-2,nan,"say ""x""\",0
9,3,-1e30,,1
"""


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    """Outputs of four types that tell which inputs came."""
    with Graph().as_default() as graph:
        types = {"count": opkernel.int16, "text": opkernel.string, "flag": opkernel.bool}
        for name, dtype in types.items():
            x = opkernel.placeholder(dtype, [None], name=name)
            raw_ops.Identity(input=x, name=f"same_{name}")
        weight = opkernel.placeholder(opkernel.float64, [None, 1], name="weight")
        raw_ops.Identity(input=weight, name="same_weight")
    save_graph(graph, tmp_path / "typed.pb")
    return tmp_path / "typed.pb"


def joined(batches: Any) -> dict[str, Any]:
    every = [*batches]
    return {name: np.concatenate([one[name] for one in every]) for name in every[0]}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def json_lines() -> str:
    names = ("count", "weight", "text", "flag")
    return "\n\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in ROWS)


@pytest.mark.parametrize("concurrency", [None, 2])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "ndjson"])
def test_values_get_the_types_of_the_inputs(
    typed: Path, tmp_path: Path, ending: str, concurrency: int | None
) -> None:
    text = {"csv": CSV, "tsv": CSV.replace(",", "\t").replace('"a\tb"', "a,b")}
    path = written(tmp_path / f"rows.{ending}", text.get(ending, json_lines()))
    found = joined(predict(typed, path, batch_size=2, concurrency=concurrency))
    assert found["same_count:0"].tolist() == [1, -2, 3]
    assert found["same_count:0"].dtype == np.int16
    np.testing.assert_array_equal(found["same_weight:0"], [[0.5], [np.nan], [-1e30]])
    assert found["same_text:0"].tolist() == [b"a,b", b'say "x"', b""]
    assert found["same_flag:0"].tolist() == [True, False, True]


def test_tensors_of_json_lines(saved_model: Path, tmp_path: Path) -> None:
    lines = [json.dumps({"x": row.tolist()}) for row in X]
    found = predict(saved_model, written(tmp_path / "x.jsonl", "\n".join(lines)), batch_size=4)
    np.testing.assert_array_equal(joined(found)["y"], Y)


@pytest.mark.parametrize("concurrency", [None, 2])
@pytest.mark.parametrize("order", ["C", "F"])
def test_one_input_needs_no_name(
    saved_model: Path, tmp_path: Path, order: Any, concurrency: int | None
) -> None:
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))
    bare = written(tmp_path / "x.jsonl", "\n".join(json.dumps(row.tolist()) for row in X))
    for path in (tmp_path / "x.npy", bare):
        found = predict(saved_model, path, batch_size=4, concurrency=concurrency)
        np.testing.assert_array_equal(joined(found)["y"], Y)


def test_one_array_for_several_inputs(typed: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(
        InvalidArgumentError, match=r"x.npy is one input, and the model takes 4: 'count'"
    ):
        predict(typed, tmp_path / "x.npy")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_that_lacks_a_column(typed: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    if ending == "csv":
        written(path, "id,count,wait\n1,2,3\n")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"id": [1], "count": [2], "wait": [3]})
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    with pytest.raises(InvalidArgumentError) as caught:
        predict(typed, path)
    assert caught.value.message == (
        f"{path} has no column 'text', 'flag', 'weight'; it has the columns 'id', 'count', 'wait', and the "
        f"model takes 'count', 'text', 'flag', 'weight'"
    )


BAD_LINES = {
    "7,1.5,0,t,1": "line 2, 'count': '1.5' is not a value of type int16",
    "7,1_0,0,t,1": "line 2, 'count': '1_0' is not a value of type int16",
    "7,70000,0,t,1": "line 2, 'count': A JSON Value is not of expected type: int16",
    "7,1,much,t,1": "line 2, 'weight': 'much' is not a value of type float64",
    "7,1,0,t,maybe": "line 2, 'flag': 'maybe' is not a value of type bool",
    "7,1,0": "line 2 has 3 values, and the header names 5 columns",
    '{"count": 1}': "line 1, 'text': there is no 'text'; there are 'count'",
    '{"count": "1"}': "line 1, 'count': JSON Value: .* is not of expected type: int16",
    '{"count": 1': "line 1 is not JSON",
    "[" * 100_000: "line 1 is not JSON",
    '{"count": [[1], [1, 2]]}': "line 1, 'count': Encountered list at unexpected size",
}


@pytest.mark.parametrize("line", BAD_LINES)
@pytest.mark.parametrize("concurrency", [None, 1])
def test_a_bad_line_is_a_row_that_fails(
    typed: Path, tmp_path: Path, line: str, concurrency: int | None
) -> None:
    if line.startswith("7"):
        path = written(tmp_path / "rows.csv", f"{CSV.splitlines()[0]}\n{line}\n9,3,1,t,1\n")
    else:
        good = json_lines().splitlines()[-1]
        path = written(tmp_path / "rows.jsonl", f"{line}\n{good}\n")
    with pytest.raises(InvalidArgumentError, match=f"Row 0: .*rows.*, {BAD_LINES[line]}"):
        [*predict(typed, path, concurrency=concurrency)]
    found = predict(typed, path, concurrency=concurrency, on_error="skip")
    assert joined(found)["same_count:0"].tolist() == [3]
    ((row, code, _),) = found.skipped
    assert (row, code) == (0, Code.INVALID_ARGUMENT)


BAD_FILES: dict[str, tuple[bytes, Any, str]] = {
    "latin.csv": (b"text\n\xff\n", DataLossError, "Cannot read .*utf-8"),
    "quote.csv": (b'count,text,flag,weight\n1,"a,1,2\n', DataLossError, "Cannot read"),
    "twice.csv": (b"a,b,a\n1,2,3\n", InvalidArgumentError, "two columns are named 'a'"),
    "empty.csv": (b"", InvalidArgumentError, "it has the columns none"),
    "text.txt": (b"count text\n1 a\n", InvalidArgumentError, "a text file; rows come from"),
    "cut.npy": (b"\x93NUMPY\x01\x00\x76\x00{'descr'", InvalidArgumentError, "is one input"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(typed: Path, tmp_path: Path, name: str) -> None:
    data, kind, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(kind, match=message):
        [*predict(typed, tmp_path / name)]


def test_a_damaged_array(saved_model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    for size in (20, len(whole) - 1):
        (tmp_path / "x.npy").write_bytes(whole[:size])
        with pytest.raises(DataLossError, match="Cannot read arrays"):
            [*predict(saved_model, tmp_path / "x.npy")]


def test_no_rows(typed: Path, tmp_path: Path) -> None:
    assert [*predict(typed, written(tmp_path / "rows.csv", CSV.splitlines()[0]))] == []
    assert [*predict(typed, written(tmp_path / "rows.jsonl", "\n"))] == []
