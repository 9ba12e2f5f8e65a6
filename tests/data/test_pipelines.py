"""Drawn pipelines: beside TensorFlow's, and taken up again in the middle of a pass."""

import pytest
from tests.data.pipelines import Drawing, outcomes

import opkernel
from opkernel.types import variant_from_proto

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pass_goes_on_where_it_was_saved(seed):
    drawing = Drawing(opkernel, seed)
    _, dataset = drawing.pipeline()
    elements = iter(dataset)
    outcomes(elements, opkernel.errors, drawing.number(0, 11))
    state = variant_from_proto(elements.save().to_proto())
    rest = outcomes(elements, opkernel.errors)
    elements.restore(state)
    assert outcomes(elements, opkernel.errors) == rest


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
    tensorflow = pytest.importorskip("tensorflow")
    different = {seed: pair for seed in range(150) if (pair := _both(tensorflow, seed))}
    assert different == {}


def _both(tensorflow, seed):
    """What two passes over a pipeline give, if it is not the same in both libraries."""
    options = tensorflow.data.Options()
    options.experimental_optimization.apply_default_optimizations = False  # it joins stages
    found = []
    for library in (tensorflow, opkernel):
        names, dataset = Drawing(library, seed).pipeline()
        if library is tensorflow:
            dataset = dataset.with_options(options)
        passes = [outcomes(iter(dataset), library.errors) for _ in range(2)]
        found.append((names, int(dataset.cardinality()), passes))
    return None if found[0] == found[1] else found
