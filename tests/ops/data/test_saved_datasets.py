"""Datasets in files: TensorFlow's files are read, nothing half-done is loaded, and permissions hold.

The files below were written by TensorFlow 2.21: three elements with a number `n` and its text `s`.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset
from opkernel.proto import SnapshotMetadataRecord

_SPEC = "aa031c0a0c0a017312078a0204120018070a0c0a016e12078a020412001809"
_SAVED: dict[str, dict[str, str]] = {
    "": {
        "1/00000000.shard/00000000.snapshot": "0e00000000000000c5e5693f0809120022080000000000000000882b95ea08000000"
        "00000000ff86240f08071200220201300c834ee80e00000000000000c5e5693f0809120022080200000000000000194f125f080000"
        "0000000000ff86240f08071200220201321a45a746",
        "1/00000001.shard/00000000.snapshot": "0e00000000000000c5e5693f0809120022080100000000000000a0bddf5408000000"
        "00000000ff86240f0807120022020131bb674fe6",
    },
    "GZIP": {
        "1/00000000.shard/00000000.snapshot": "1f8b0800000000000003e2638080a34f33ed393885189438a0020c1dda535fc138ff"
        "db54f839d881b24c8c063ccd7e2ff8307431424516ecbd1f824597e1ee74ff6798ba98a02292fe42f158741949b92e7703083000c1"
        "24e7c1a2000000",
    },
    "SNAPPY": {
        "1/00000000.shard/00000000.snapshot": "00000058a201040e00090124c5e5693f0809120022080910140000882b95ea110d3c"
        "ff86240f08071200220201300c834ee846360000010d370ca0bddf544a36001031bb674fe646360000020d360c194f125f4a360010"
        "321a45a746",
    },
}
_VERSION_1 = {
    "": "1a000000000000000a0e08091200220800000000000000000a0808071200220201301a000000000000000a0e0809120022080100"
    "0000000000000a0808071200220201311a000000000000000a0e08091200220802000000000000000a080807120022020132",
    "GZIP": "1f8b0800000000000003936280002e3e0e4e2106250e06189f83831dc8676234904253c188aec2105d0513ba0a23005d41e3"
    "7366000000",
    "SNAPPY": "0c000000000000000a04120018080a04120018081200000000000000103c000000000000000008071200220201300c000000"
    "000000000a04120018080a04120018081200000000000000103c010000000000000008071200220201310c000000000000000a0412"
    "0018080a04120018081200000000000000103c02000000000000000807120022020132",
}
_FIRST_ELEMENTS = [(0, b"0"), (1, b"1"), (2, b"2")]
ELEMENTS: dict[str, Any] = {
    "output_types": [opkernel.int64, opkernel.string],
    "output_shapes": [[], []],
}


def write(folder: Path, compression: str, **metadata: Any) -> str:
    files = {name: bytes.fromhex(text) for name, text in _SAVED[compression].items()}
    files["dataset_spec.pb"] = bytes.fromhex(_SPEC)
    facts = {"run_id": "1", "version": 2, "dtype": [9, 7], "num_elements": 3, "finalized": True}
    files["snapshot.metadata"] = SnapshotMetadataRecord(**facts | metadata).SerializeToString()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(folder)


def pairs(dataset: Dataset) -> list[tuple[int, bytes]]:
    return [(int(one["n"]), one["s"]) for one in dataset]


def texts(count: int) -> Dataset:
    return Dataset.range(count).map(lambda n: {"n": n, "s": raw_ops.AsString(input=n)})


@pytest.mark.parametrize("compression", _SAVED)
def test_what_tensorflow_has_saved_is_loaded(compression: str, tmp_path: Path) -> None:
    dataset = Dataset.load(write(tmp_path, compression), compression=compression)
    assert list(dataset.element_spec) == ["n", "s"]
    assert len(dataset) == 3
    assert sorted(pairs(dataset)) == _FIRST_ELEMENTS


@pytest.mark.parametrize("compression", _VERSION_1)
def test_files_of_version_1_are_read(compression: str, tmp_path: Path) -> None:
    (tmp_path / "00000000.snapshot").write_bytes(bytes.fromhex(_VERSION_1[compression]))
    made = raw_ops.SnapshotDatasetReader(
        shard_dir=str(tmp_path), start_index=1, compression=compression, version=1, **ELEMENTS
    )
    spec = (opkernel.TensorSpec([], opkernel.int64), opkernel.TensorSpec([], opkernel.string))
    found = [(int(number), text) for number, text in Dataset(made, spec)]
    assert found == _FIRST_ELEMENTS[1:]


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB", "SNAPPY"])
def test_what_is_saved_is_loaded(compression: str | None, tmp_path: Path) -> None:
    texts(300).save(tmp_path, compression)
    assert pairs(Dataset.load(tmp_path, compression=compression)) == [
        (n, b"%d" % n) for n in range(300)
    ]
    texts(0).save(tmp_path, compression)
    assert pairs(Dataset.load(tmp_path, compression=compression)) == []


def test_shards(tmp_path: Path) -> None:
    texts(5).save(tmp_path, shard_func=lambda one: one["n"] % 2)
    loaded = Dataset.load(tmp_path, reader_func=lambda shards: shards.flat_map(lambda one: one))
    assert [n for n, _ in pairs(loaded)] == [0, 2, 4, 1, 3]
    with pytest.raises(errors.InvalidArgumentError, match="must return a scalar int64"):
        texts(5).save(tmp_path, shard_func=lambda one: one["s"])


def test_a_save_that_fails_leaves_what_was_saved_before(tmp_path: Path) -> None:
    texts(3).save(tmp_path)
    failing = Dataset.range(9).map(
        lambda n: {
            "n": n,
            "s": raw_ops.CheckNumerics(tensor=1 / (5 - opkernel.cast(n, "float32")), message="s"),
        }
    )
    with pytest.raises(errors.InvalidArgumentError):
        failing.save(tmp_path)
    assert pairs(Dataset.load(tmp_path)) == _FIRST_ELEMENTS
    assert not [*tmp_path.rglob("*tempstate*")]


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ({"finalized": False}, errors.DataLossError),
        ({"run_id": "../1"}, errors.DataLossError),
        ({"run_id": ""}, errors.DataLossError),
        ({"run_id": "2"}, errors.NotFoundError),
        ({"version": 7}, errors.InvalidArgumentError),
    ],
)
def test_half_done_and_damaged_datasets_are_refused(
    damage: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    write(tmp_path, "", **damage)
    with pytest.raises(error):
        _ = [*Dataset.load(tmp_path)]


@pytest.mark.parametrize("cut", [1, 12, 40, 60, 107])
@pytest.mark.parametrize("compression", _SAVED)
def test_files_that_are_cut_short(cut: int, compression: str, tmp_path: Path) -> None:
    write(tmp_path, compression)
    (path,) = tmp_path.glob("1/00000000.shard/*")
    path.write_bytes(path.read_bytes()[:cut])
    try:
        found = pairs(Dataset.load(tmp_path, compression=compression))
    except errors.DataLossError:
        return
    assert set(found) <= set(_FIRST_ELEMENTS)


def test_there_must_be_something_to_load(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError):
        Dataset.load(tmp_path)
    with pytest.raises(errors.InvalidArgumentError, match="Unsupported compression 'BZIP'"):
        texts(1).save(tmp_path, "BZIP")
    write(tmp_path, "")
    spec = {name: opkernel.TensorSpec([], opkernel.float32) for name in "ns"}
    with pytest.raises(errors.InvalidArgumentError, match="Data type mismatch at component 0"):
        _ = [*Dataset.load(tmp_path, element_spec=spec)]


def test_elements_are_saved_as_they_pass(tmp_path: Path) -> None:
    source = texts(6)
    shard_func = opkernel.function(lambda n, s: n % 2).get_concrete_function(
        opkernel.TensorSpec([], opkernel.int64), opkernel.TensorSpec([], opkernel.string)
    )
    with opkernel.Graph().as_default() as graph:
        shard_func.graph.add_to(graph)
        variant = raw_ops.SaveDatasetV2(
            input_dataset=texts(6).variant_tensor,
            path=str(tmp_path),
            shard_func_other_args=[],
            shard_func=shard_func.graph.reference,
            **ELEMENTS,
        )
        iterator = opkernel.data.make_initializable_iterator(Dataset(variant, source.element_spec))
        element = iterator.get_next()
        state = raw_ops.SerializeIterator(resource_handle=iterator._handle, external_state_policy=0)
        back = raw_ops.DeserializeIterator(resource_handle=iterator._handle, serialized=state)
    with opkernel.Session(graph, permissions=opkernel.Permissions(write=[tmp_path])) as session:
        session.run(iterator.initializer)
        for number in range(6):
            assert session.run(element)["n"] == number
            assert not (tmp_path / "snapshot.metadata").exists()
            if number == 3:
                session.run(back)
        with pytest.raises(errors.OutOfRangeError):
            session.run(element)
    (tmp_path / "dataset_spec.pb").write_bytes(bytes.fromhex(_SPEC))
    assert sorted(pairs(Dataset.load(tmp_path))) == [(n, b"%d" % n) for n in range(6)]


def test_a_distributed_snapshot(tmp_path: Path) -> None:
    """Its metadata are text; each file in `chunks` has elements."""
    (tmp_path / "chunks").mkdir()
    for name, content in zip(("chunk_1_0_2", "chunk_0_1_1"), _SAVED[""].values(), strict=True):
        (tmp_path / "chunks" / name).write_bytes(bytes.fromhex(content))
    spec = "".join(f"\\{byte:03o}" for byte in bytes.fromhex(_SPEC))
    (tmp_path / "snapshot.metadata").write_text(f'element_spec: "{spec}"\n')
    with pytest.raises(errors.InternalError, match="still being written"):
        Dataset.load(tmp_path)
    (tmp_path / "DONE").touch()
    found = Dataset.load(tmp_path, reader_func=lambda chunks: chunks.flat_map(lambda one: one))
    assert pairs(found) == [(0, b"0"), (2, b"2"), (1, b"1")]
    names = raw_ops.ListSnapshotChunksDataset(
        snapshot_path=str(tmp_path), output_types=[opkernel.string], output_shapes=[[]]
    )
    listed = Dataset(names, opkernel.TensorSpec([], opkernel.string))
    assert [os.path.basename(one) for one in listed] == [b"chunk_1_0_2", b"chunk_0_1_1"]
    (tmp_path / "ERROR").write_text("no space")
    with pytest.raises(errors.InternalError, match="no space"):
        Dataset.load(tmp_path)


def test_a_graph_saves_only_where_it_may(tmp_path: Path) -> None:
    with opkernel.Graph().as_default() as graph:
        saved = Dataset.range(3).save(tmp_path / "out")
    with opkernel.Session(graph, permissions=opkernel.Permissions(write=[tmp_path])) as session:
        session.run(saved)
    assert [int(one) for one in Dataset.load(tmp_path / "out")] == [0, 1, 2]
    with opkernel.Graph().as_default() as text:
        opkernel.import_graph_def(graph.as_graph_def(), name="")
    with opkernel.Session(text) as session, pytest.raises(errors.PermissionDeniedError):
        session.run(text.get_operation_by_name(saved.name))


def test_long_elements_are_cut_into_blocks(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 3, (4, 50_000))
    Dataset.from_tensor_slices(rows).save(tmp_path, "SNAPPY")
    (path,) = tmp_path.glob("*/*/*.snapshot")
    assert path.stat().st_size < rows.nbytes / 2
    found = [*Dataset.load(tmp_path, compression="SNAPPY")]
    np.testing.assert_array_equal(found, rows)
