"""Recorded calls have TensorFlow's values where what is computed in parts is cut into parts of few elements.

Kernels cut large arrays. The recorded ones are small, and so the parts are made small here. A deadline makes kernels
look at the clock after each part.
"""

import importlib
import json
import time
from collections.abc import Iterator

import pytest
from tests.ops.test_recorded_values import CALLS, check_answer

from answer_op_calls import op_call
from opkernel.device import work_clock
from opkernel.device.budget import Budget
from opkernel.kernel import bounded, under_budget

MOST_CALLS = 10
SMALL_PARTS = {
    "array.concat": {"_AT_ONCE": 1},
    "array.shape": {"_AT_ONCE": 2},
    "array.unique_and_bounds": {"_AT_ONCE": 2, "_WIDE": 1},
    "audio": {"_WINDOWS_AT_ONCE": 1, "_SMALL": 1},
    "image.bounding_boxes": {"_AT_ONCE": 1},
    "image.color": {"_AT_ONCE": 1},
    "image.projective_transform": {"_TILE": 2},
    "image.resize": {"AT_ONCE": 2},
    "linalg.lu": {"_PANEL": 1},
    "linalg.matrices": {"LOOK_AFTER": 0},
    "linalg.triangular_and_tridiagonal": {"_BLOCK": 1},
    "lookup.hash_tables": {"_AT_ONCE": 2},
    "math.elementwise": {"_BLOCK": 2, "_IN_BLOCKS_FROM": 1},
    "math.reductions": {"_BLAS_FROM": 1, "_FEW": 1},
    "math.top_k": {"_SORT_ALL_BELOW": 1},
    "nn.avg_pool": {"_SMALL_WINDOW": 1},
    "nn.bias": {"_MANY": 1},
    "nn.fractional_pool": {"_AT_ONCE": 1},
    "nn.pooling": {"_TILE_BYTES": 16},
    "nn.softmax": {"_TILE": 2, "_FEW": 1},
    "nn.windows": {"_SMALL_WINDOW": 1},
    "parsing.feature_tensors": {"_FEW": 0},
    "random.distributions": {"_TILE": 4, "_TILE_OF_SAMPLES": 4},
    "random.multinomial": {"_AT_ONCE": 2},
    "random.sobol": {"_TILE": 2},
    "sparse.cross": {"_AT_ONCE": 1},
    "sparse.matrix": {"_GATHERED": 1},
    "stable_order": {"_FEW": 1},
    "strings.encodings": {"_AT_ONCE": 4},
    "strings.hash_columns": {"_FEW": 1, "_TILE": 2},
    "strings.hashes": {"_BATCH": 2, "_PART": 1},
    "strings.number_format": {"_AT_ONCE": 1, "_BYTES_AT_ONCE": 1},
    "strings.regex": {"_MUCH": 1},
    "strings.substr_and_case": {"_LONG_TEXT": 1},
    "strings.unicode": {"_AT_ONCE": 4},
    "training": {"_TILE": 2, "_TILED_FROM": 1},
}
"""Module constants: what is one part, or from which size on arrays are cut."""


@pytest.fixture(scope="module", autouse=True)
def _small_parts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded, "_PIECE", 3)
        patch.setattr(work_clock, "LOOK_AFTER", 1)
        for name, sizes in SMALL_PARTS.items():
            module = importlib.import_module(f"opkernel.ops.{name}")
            for constant, size in sizes.items():
                patch.setattr(module, constant, size)
        yield


@pytest.mark.parametrize("op", CALLS)
def test_values_and_codes(op: str) -> None:
    calls = [json.loads(line) for line, _ in CALLS[op]]
    largest = sorted(calls, key=lambda call: ("error" in call, -len(str(call["inputs"]))))
    for call in largest[:MOST_CALLS]:
        with under_budget(Budget(deadline=time.monotonic() + 1000)):
            answer = op_call(call)
        check_answer(answer, call)
