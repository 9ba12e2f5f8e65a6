"""Write `composite_stages.txt.xz`: what TensorFlow's stages give for elements with ragged and sparse tensors.

    pip install tensorflow-cpu==2.21.0
    python -m tests.data.make_composite_stages

It is a dict in Python's notation: for each stage and kind of elements, as `stage_account` gives it.
"""

import lzma
import os
import pprint
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

import tensorflow as tf
from tests.data.composite_pipelines import KINDS, STAGES, stage_account

found = {
    stage: {kind: tuple(stage_account(tf, stage, kind)) for kind in KINDS}
    for stage in sorted(STAGES)
}
text = pprint.pformat(found, width=100, compact=True, sort_dicts=False)
Path(__file__).with_name("composite_stages.txt.xz").write_bytes(lzma.compress(text.encode()))
