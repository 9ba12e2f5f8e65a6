"""Drawn pipelines: their elements, orders, errors and ends are TensorFlow's, also in a pass that was saved and restored.

`.venv-tensorflow/bin/python -m tools.campaigns pipelines_tensorflow`, as for the campaign `tensorflow`.
"""

import os
import random
from typing import Any

from tests.data.pipelines import account
from tools.campaigns.campaign import Finding
from tools.campaigns.pipelines import lawful_account

__all__ = ["begin", "case"]


def case(rng: random.Random) -> str:
    """Draw one pipeline here and there."""
    seed = rng.getrandbits(31)
    ours, theirs = lawful_account(seed), account(begin(), seed)
    if ours._replace(restored=None) != theirs._replace(restored=None):
        raise Finding(f"seed {seed}, here: {ours}\nTensorFlow: {theirs}")
    if theirs.restored is None:
        return "not saved by TensorFlow"
    # The laws say what a restored pass gives; TensorFlow forgets some states.
    return "alike" if theirs.restored == theirs.rest else "restored otherwise by TensorFlow"


def begin() -> Any:
    """TensorFlow; its import may take longer than a case."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    import tensorflow as tf

    return tf
