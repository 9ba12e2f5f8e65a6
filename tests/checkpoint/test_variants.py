"""Variants in checkpoints. The data file is TensorFlow's, of `RaggedTensorToVariant` of the rows [[1], [2, 3]]."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleReader, BundleWriter
from opkernel.checkpoint.bundle_variants import read_variants, variants_as_bytes
from opkernel.errors import DataLossError, OpError, UnimplementedError

THEIRS = bytes.fromhex(
    "220a1352616767656454656e736f7256617269616e741a0b08031204120208013a010109c88b8223"
    "0a1352616767656454656e736f7256617269616e741a0c08031204120208023a0202039a47d6c6"
)


def rows(variants: Any) -> list[Any]:
    array = np.empty(len(variants), object)
    array[:] = variants
    splits, values = opkernel.raw_ops.RaggedTensorFromVariant(
        encoded_ragged=array,
        input_ragged_rank=0,
        output_ragged_rank=1,
        Tvalues=opkernel.int32,
        Tsplits=opkernel.int64,
    )
    found: list[Any] = opkernel.ragged.RaggedTensor(values, splits[0]).to_list()
    return found


def test_variants_of_tensorflow() -> None:
    variants, _ = read_variants(THEIRS, 2)
    assert rows(variants) == [[1], [2, 3]]


def test_variants_are_written_and_read(tmp_path: Path) -> None:
    variants = opkernel.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[np.array([0, 1, 3])],
        rt_dense_values=np.array([1, 2, 3], np.int32),
        batched_input=True,
    )
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("v", variants.reshape(2, 1), opkernel.variant)
        writer.add("none", np.empty((0, 3), object), opkernel.variant)
    reader = BundleReader(str(tmp_path / "c"))
    assert (reader.dtype("v"), reader.shape("v").as_list()) == (opkernel.variant, [2, 1])
    assert rows(reader.get_tensor("v").reshape(-1)) == [[1], [2, 3]]
    assert reader.get_tensor("none").shape == (0, 3)


def test_damaged_variants_are_refused() -> None:
    for size in range(len(THEIRS)):
        with pytest.raises(DataLossError):
            read_variants(THEIRS[:size], 2)
    for place in range(len(THEIRS)):
        damaged = THEIRS[:place] + bytes([THEIRS[place] ^ 0x41]) + THEIRS[place + 1 :]
        with pytest.raises(DataLossError):
            read_variants(damaged, 2)
    for count in (1, 3, 1 << 40):
        with pytest.raises(DataLossError):
            read_variants(THEIRS, count)


def test_content_that_is_no_variant_is_refused(tmp_path: Path) -> None:
    data, _ = variants_as_bytes(read_variants(THEIRS, 2)[0], "v")
    assert rows(read_variants(data, 2)[0]) == [[1], [2, 3]]
    with pytest.raises(UnimplementedError, match="v holds 5"):
        variants_as_bytes([5], "v")
    with pytest.raises(OpError), BundleWriter(tmp_path / "c") as writer:
        writer.add("v", np.array([None], object), opkernel.variant)
    assert not list(tmp_path.iterdir())
