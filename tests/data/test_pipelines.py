"""Drawn pipelines: the first cases of their campaigns find nothing, and their graphs give the same elements."""

import pytest
from tests.data.pipelines import STAGES, Drawing, outcomes, passes
from tools.campaigns import pipelines, pipelines_tensorflow
from tools.campaigns.campaign import run_campaign

import opkernel

SEEDS = range(40)


def test_drawn_pipelines_keep_the_laws():
    report = run_campaign("pipelines", pipelines.case, 0, 600, iter(range(40)), 1)
    assert report.findings == {}
    assert report.outcomes.total() == 40


@pytest.mark.parametrize("seed", SEEDS)
def test_the_graph_of_a_pipeline_gives_its_elements(seed):
    _, dataset = Drawing(opkernel, seed).pipeline()
    graph = opkernel.raw_ops.DatasetToGraphV2(input_dataset=dataset.variant_tensor)
    made = opkernel.raw_ops.DatasetFromGraph(graph_def=graph)
    again = opkernel.data.Dataset(made, dataset.element_spec)
    numbers = [
        opkernel.raw_ops.DatasetFingerprint(input_dataset=one.variant_tensor)
        for one in (dataset, again)
    ]
    assert numbers[0] == numbers[1]
    assert outcomes(iter(again), opkernel.errors) == outcomes(iter(dataset), opkernel.errors)


@pytest.mark.tensorflow
def test_elements_orders_and_errors_are_tensorflows():
    pytest.importorskip("tensorflow")
    case = pipelines_tensorflow.case
    report = run_campaign("pipelines_tensorflow", case, 0, 600, iter(range(150)), 5)
    assert report.findings == {}
    assert report.outcomes.total() == 150


def test_a_zip_that_is_over_asks_its_inputs_for_nothing():
    assert passes(opkernel, "zip", 4) == [  # recorded from TensorFlow 2.21
        [3, 1, 4, 0, 5, 2, 3, 4, 2, 1, 0, "END"],
        [1, 2, 5, 0, 3, 4, 0, 3, 5, 4, 2, "END"],
        [2, 4, 3, 0, 1, 5, 2, 0, 5, 4, 1, "END"],
    ]


@pytest.mark.tensorflow
@pytest.mark.parametrize("stage", STAGES)
def test_orders_of_later_passes_are_tensorflows(stage):
    tensorflow = pytest.importorskip("tensorflow")
    for seed in range(5):
        assert passes(opkernel, stage, seed) == passes(tensorflow, stage, seed)
