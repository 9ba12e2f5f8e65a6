"""Recorded calls of TensorFlow give their recorded values when they are compiled, too."""

from collections import Counter

import pytest
from tests.xla.recorded import VECTORS, has_kernel, vectors_of, verdict

from opkernel.types import as_dtype
from opkernel.xla import global_xla_op_registry

pytestmark = [pytest.mark.jax, pytest.mark.shared]

FAMILIES = (
    *("advisories", "array", "dataflow", "image", "linalg", "math", "nn", "other", "quantized"),
    *("random", "sparse"),
)
CALLS = 2
"""Calls of each op: as many as there is time for. `recorded.py` runs all."""


def is_of_numbers(vector):
    """Whether XLA computes with the types of a call."""
    names = [*vector.input_dtypes, *vector.output_dtypes]
    flat = [name for one in names for name in (one if isinstance(one, list) else [one])]
    types = global_xla_op_registry().supported_types("XLA_CPU_JIT")
    return all(as_dtype(name) in types for name in flat)


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_of_a_family(family):
    seen: Counter[str] = Counter()
    problems = []
    for vector in vectors_of(None, VECTORS / f"{family}.jsonl.xz"):
        if seen[vector.op] >= CALLS or vector.error or not is_of_numbers(vector):
            continue
        if not has_kernel(vector.op) or {vector.op, vector.id} & NOT_COMPARED.keys():
            continue
        seen[vector.op] += 1
        found = verdict(vector)
        if found != "right":
            problems.append(f"{vector.op} {vector.id}: {found}")
    assert seen
    assert problems == []


NOT_COMPARED = {
    "142db1c3b12f3b57": "an equation of Einsum that TensorFlow refuses in graphs alone",
    "d8cf6467f2c63b8b": "an equation of Einsum that TensorFlow refuses in graphs alone",
    "NonMaxSuppressionV3": "the size of the output depends on values",
    "NonMaxSuppressionV4": "the size of the output depends on values, unless it is padded",
    "StatelessParameterizedTruncatedNormal": "programs draw other numbers, as TensorFlow's do",
    "Svd": "the signs of the vectors are open",
    "Unique": "the size of the output depends on values",
    "UniqueV2": "the size of the output depends on values",
    "Where": "the size of the output depends on values",
}
