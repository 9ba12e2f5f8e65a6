"""Drawn pipelines over ragged and sparse elements: elements, specs, orders and errors are TensorFlow's.

`.venv-tensorflow/bin/python -m tools.campaigns composite_pipelines_tensorflow`, as for the campaign `tensorflow`.
"""

import random

from tests.data.composite_pipelines import account
from tools.campaigns.campaign import Finding
from tools.campaigns.pipelines_tensorflow import begin

import opkernel

__all__ = ["begin", "case"]

_SEVERAL_PASSES = {"choose_from_datasets", "concatenate", "rejection_resample", "zip"}
"""Stages that pass over their input several times at once, which TensorFlow's caches in files are not made for."""


def case(rng: random.Random) -> str:
    """Draw one pipeline here and there."""
    seed = rng.getrandbits(31)
    ours = account(opkernel, seed)
    if ours.spec is None and ours.stages[-2:-1] == ["save"]:
        return "not saved"  # TensorFlow waits for ever where an element cannot be computed
    theirs = account(begin(), seed)
    if "cache in files" in ours.stages and _SEVERAL_PASSES.intersection(ours.stages):
        return "with a cache that several passes share"
    if theirs.elements == ["NO PASS"]:
        return (
            "not begun by TensorFlow"  # its `concatenate` takes shapes of unknown rank for scalars
        )
    if ours != theirs:
        raise Finding(f"seed {seed}, here: {ours}\nTensorFlow: {theirs}")
    return "refused" if ours.spec is None else "alike"
