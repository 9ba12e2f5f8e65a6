"""Recorded calls of TensorFlow, compiled by OpenVINO: the same values; for NaN and infinities, too, but for marked ops."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from tests.engines.recorded import (
    differences_for_non_finite,
    is_finite,
    node_and_values,
    verdict,
)
from tests.xla.recorded import VECTORS, vectors_of

from opkernel.engines.openvino import OpenVinoEngine
from opkernel.engines.openvino.op_rule import rules

pytest.importorskip("openvino")
pytestmark = pytest.mark.shared

FAMILIES = ("array", "image", "math", "nn")
CALLS = 3
"""Calls of each op: as many as there is time for. `recorded.py` runs all."""
MOST_CALLS = 12
"""Calls that are tried until one differs for NaN or infinities."""


def calls_in_float(family):
    """The calls that TensorFlow does not refuse, and that have a float32 or a bool among their inputs."""
    for vector in vectors_of(set(rules().names()), VECTORS / f"{family}.jsonl.xz"):
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


@pytest.mark.parametrize("family", FAMILIES)
def test_marked_ops_and_no_others_differ_for_non_finite_values(family):
    engine = OpenVinoEngine()
    seen: Counter[str] = Counter()
    differing: dict[str, list[str]] = defaultdict(list)
    for vector in calls_in_float(family):
        most = MOST_CALLS if rules()[vector.op].differs_for_non_finite else CALLS
        if seen[vector.op] >= most or differing[vector.op] or not is_finite(vector):
            continue
        if verdict(engine, vector) == "right":
            seen[vector.op] += 1
            node, values = node_and_values(vector)
            differing[vector.op] += differences_for_non_finite(engine, node, values)
    assert seen
    marked = {op for op in seen if rules()[op].differs_for_non_finite}
    assert {op: found for op, found in differing.items() if found}.keys() == marked
