"""Every provider gives what the reference kernels give. A new one joins by registering."""

from typing import Any

import numpy as np
import pytest

from opkernel.kernel import KernelProvider, register_kernel, registered_providers
from opkernel.kernel.registry.provider import REFERENCE
from opkernel.opdef import global_op_registry
from opkernel.providers.blas import convolutions, im2col, products
from opkernel.testing import CheckFailure, check_provider
from opkernel.testing.product_calls import has_product_calls, product_calls
from opkernel.testing.provider_check import check_provider_on_call, ops_of_provider
from opkernel.types import float32, string

PROVIDERS = [one for one in registered_providers() if one.name != REFERENCE]
PIXELS = np.linspace(0, 1, 2 * 5 * 4 * 3, dtype=np.float32).reshape(2, 5, 4, 3)
PROJECTED = {
    "attrs": {"dtype": float32, "interpolation": "BILINEAR"},
    "inputs": {
        "images": PIXELS,
        "transforms": np.array([[1, 0.25, -1, 0.5, 1, 0, 0.125, 0]], np.float32),
        "output_shape": np.array([3, 6], np.int32),
    },
}
GIVEN: dict[str, dict[str, Any]] = {
    "AdjustHue": {"inputs": {"images": PIXELS}},
    "AdjustSaturation": {"inputs": {"images": PIXELS}},
    "ImageProjectiveTransformV2": PROJECTED,
    "ImageProjectiveTransformV3": PROJECTED,
    "Fingerprint": {"inputs": {"method": np.array(b"farmhash64", object)}},
    "SparseCrossHashed": {
        "attrs": {"N": 1, "sparse_types": [string], "dense_types": []},
        "inputs": {
            "indices": np.array([[0, 0]]),
            "values": np.array([b"a"], object),
            "shapes": np.array([1, 1]),
            "salt": np.array([137, 173]),
        },
    },
    "StringToHashBucketStrong": {"attrs": {"key": [-1, 2]}},
}
"""What drawn calls would hardly hit."""
DRAWN_IN_VAIN = {
    "CTCLoss",
    "CropAndResizeGradBoxes",
    "DecodeCSV",
    "DeserializeManySparse",
    "DeserializeSparse",
    "Dilation2DBackpropFilter",
    "Dilation2DBackpropInput",
    "DrawBoundingBoxesV2",
    "ExperimentalParseExampleDataset",
    "FractionalAvgPoolGrad",
    "FractionalMaxPoolGrad",
    "ParseExampleDataset",
    "ParseExampleDatasetV2",
    "ParseExampleV2",
    "ParseSequenceExample",
    "ParseSequenceExampleV2",
    "ParseSingleExample",
    "ParseSingleSequenceExample",
    "SparseAdd",
    "SparseMatrixSparseMatMul",
    "SparseSlice",
    "SparseSliceGrad",
    "SparseSparseMaximum",
    "SparseSparseMinimum",
    "StatefulRandomBinomial",
    "StatelessParameterizedTruncatedNormal",
    "StatelessRandomBinomial",
    "StatelessRandomGammaV3",
}
"""Ops that refuse nearly all drawn calls; tests of their loops compare them."""
CASES = [
    (one.name, op) for one in PROVIDERS for op in ops_of_provider(one) if op not in DRAWN_IN_VAIN
]


@pytest.fixture(autouse=True)
def small_kernels_everywhere(monkeypatch):
    """As on processors for which OpenBLAS has them: so all of `blas` is tested on all machines."""
    for module in (products, im2col):
        monkeypatch.setattr(module, "has_small_kernels", lambda: True)


@pytest.mark.parametrize(("provider", "op"), CASES)
def test_the_same_as_the_reference(provider, op):
    (report,) = check_provider(provider, ops=[op], max_examples=8, **GIVEN.get(op, {}))
    assert report.ran >= 2


def test_the_calls_reach_every_algorithm_of_convolutions(monkeypatch):
    reached = set()

    def noting(name, weights_for, compute):
        def noted(*args):
            reached.add(name)
            return compute(*args)

        return weights_for, noted

    algorithms = [noting(f"{g.__module__}.{g.__name__}", f, g) for f, g in convolutions._ALGORITHMS]
    monkeypatch.setattr(convolutions, "_ALGORITHMS", algorithms)
    for call in product_calls("Conv2D", 24):
        check_provider_on_call("blas", call)
    beginning = "opkernel.providers.blas."
    assert {name.removeprefix(beginning) for name in reached} == {
        "winograd.convolve",
        "im2col.convolve_by_panels",
        "im2col.convolve_by_lines",
    }


def wrong(kernel, **declared):
    """A provider that is not registered, whose kernel of MatMul is this one."""
    provider = KernelProvider("wrong")
    declared = {"types": {"T": [float32]}, "factory": True, **declared}
    register_kernel("MatMul", device="CPU", registry=provider.kernels, **declared)(kernel)
    return provider


def reference(*, transpose_a, transpose_b):
    return lambda a, b: (a.T if transpose_a else a) @ (b.T if transpose_b else b)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda: lambda a, b: a @ b, "refuses it with|raises ValueError|disagree"),
        (lambda: lambda a, b: a @ b + 1, "raises|disagree"),
    ],
)
def test_wrong_results_are_found(kernel, message):
    with pytest.raises(CheckFailure, match=message):
        check_provider(wrong(kernel), max_examples=20)


def test_a_wrong_result_for_large_matrices_is_found():
    def kernel(*, transpose_a, transpose_b):
        multiply = reference(transpose_a=transpose_a, transpose_b=transpose_b)
        return lambda a, b: multiply(a, b) * (2 if a.size > 10_000 else 1)

    with pytest.raises(CheckFailure, match="disagree on output 0"):
        check_provider(wrong(kernel), max_examples=20)


def test_product_calls_are_valid_and_many():
    registry = global_op_registry()
    for op in filter(has_product_calls, registry.names()):
        calls = list(product_calls(op, 30))
        assert len(calls) == 30
        assert len({str(call) for call in calls}) > 25
