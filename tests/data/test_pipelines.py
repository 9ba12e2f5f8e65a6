"""Drawn pipelines: the first cases of their campaigns find nothing, and their graphs give the same elements."""

import pytest
from tests.data.pipelines import Drawing, outcomes
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
