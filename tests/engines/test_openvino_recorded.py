"""Recorded calls of TensorFlow, compiled by OpenVINO: the same values; for NaN and infinities, too, but for marked ops."""

from collections import Counter

import numpy as np
import pytest
from tests.engines.recorded import is_finite, verdict
from tests.xla.recorded import VECTORS, vectors_of

from opkernel.engines.openvino import OpenVinoEngine
from opkernel.engines.openvino.op_rule import rules

pytest.importorskip("openvino")
pytestmark = pytest.mark.shared

FAMILIES = ("array", "image", "math", "nn")
CALLS = 3
"""Calls of each op: as many as there is time for. `recorded.py` runs all."""


def calls_in_float(family):
    """The calls that TensorFlow does not refuse, and that have a float32 or a bool among their inputs."""
    for vector in vectors_of(set(rules()), VECTORS / f"{family}.jsonl.xz"):
        names = {one for group in vector.input_dtypes for one in np.ravel(group)}
        if not vector.error and names & {"float32", "bool"}:
            yield vector


@pytest.mark.parametrize("is_frozen", [False, True], ids=["parameters", "weights"])
@pytest.mark.parametrize("family", FAMILIES)
def test_calls_of_a_family(family, is_frozen):
    engine = OpenVinoEngine()
    seen: Counter[str] = Counter()
    problems = []
    for vector in calls_in_float(family):
        rule = rules()[vector.op]
        is_marked = rule.differs_for_non_finite and not is_finite(vector)
        if seen[vector.op] >= CALLS or is_marked:
            continue
        found = verdict(engine, vector, is_frozen=is_frozen)
        seen[vector.op] += found == "right"
        if not found.startswith(("right", "outside")) and vector.op not in REFUSED:
            problems.append(f"{vector.op} {vector.id}: {found}")
    assert seen
    assert problems == []


REFUSED = {
    "FusedBatchNorm": "statistics of an empty batch",
    "FusedBatchNormV2": "statistics of an empty batch",
    "FusedBatchNormV3": "statistics of an empty batch",
}
