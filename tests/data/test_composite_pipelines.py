"""Stages over elements with ragged and sparse tensors give what TensorFlow's gave: elements, specs, orders, errors."""

import ast
import lzma
from pathlib import Path
from typing import Any

import pytest
from tests.data.composite_pipelines import KINDS, STAGES, stage_account
from tools.campaigns import composite_pipelines_tensorflow
from tools.campaigns.campaign import run_campaign

import opkernel

RECORDED: dict[str, dict[str, Any]] = ast.literal_eval(
    lzma.decompress(Path(__file__).with_name("composite_stages.txt.xz").read_bytes()).decode()
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", STAGES)
def test_stages_give_what_tensorflows_gave(stage: str, kind: str) -> None:
    assert tuple(stage_account(opkernel, stage, kind)) == RECORDED[stage][kind]


@pytest.mark.tensorflow
def test_drawn_pipelines_give_what_tensorflows_give() -> None:
    pytest.importorskip("tensorflow")
    case = composite_pipelines_tensorflow.case
    name = "composite_pipelines_tensorflow"
    report = run_campaign(name, case, 0, 600, iter(range(200)), 5)
    assert report.findings == {}
    assert report.outcomes.total() == 200
