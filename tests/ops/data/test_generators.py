"""GeneratorDataset, and datasets in functions of graphs. Expected elements follow from the functions."""

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset
from opkernel.data.structured_function import StructuredFunction, call_op

INT64 = opkernel.TensorSpec([], opkernel.int64)


def traced(function, spec):
    return StructuredFunction(function, spec, None, Dataset)


def test_a_generator_ends_where_its_function_runs_out_of_range():
    queue = opkernel.raw_ops.FIFOQueueV2(component_types=[opkernel.int64], shared_name="numbers")
    opkernel.raw_ops.QueueEnqueueManyV2(handle=queue, components=[np.array([4, 5])])
    opkernel.raw_ops.QueueCloseV2(handle=queue)

    def following(_):
        handle = opkernel.raw_ops.FIFOQueueV2(
            component_types=[opkernel.int64], shared_name="numbers"
        )
        return opkernel.raw_ops.QueueDequeueV2(handle=handle, component_types=[opkernel.int64])[0]

    functions = {
        "init_func": traced(lambda: np.int64(0), ()),
        "next_func": traced(following, INT64),
        "finalize_func": traced(lambda x: x, INT64),
    }
    captured: dict[str, list[object]] = {f"{name}_other_args": [] for name in functions}
    variant = call_op("GeneratorDataset", functions, spec=INT64, **captured)
    assert [*Dataset(variant, INT64)] == [4, 5]


def test_a_function_that_runs_out_of_range_elsewhere_is_an_error():
    def refused(x):
        float_x = opkernel.cast(x, opkernel.float32)
        return opkernel.equal(opkernel.raw_ops.CheckNumerics(tensor=1 / float_x, message="m"), 1.0)

    with pytest.raises(errors.InvalidArgumentError, match="m : Tensor had Inf"):
        [*Dataset.range(1).filter(refused)]


def test_functions_take_and_give_the_types_of_their_datasets():
    function = traced(lambda x: x, opkernel.TensorSpec([], opkernel.float32))
    numbers = Dataset.range(3)
    with pytest.raises(errors.InvalidArgumentError, match=r"takes .*float.*, and would be called"):
        call_op(
            "MapDataset",
            {"f": function},
            spec=INT64,
            input_dataset=numbers.variant_tensor,
            other_arguments=[],
        )


def test_captured_tensors_stay_what_they_were():
    with opkernel.Graph().as_default() as graph:
        factor = opkernel.placeholder(opkernel.int64, [2])
        dataset = Dataset.range(2).map(lambda x: x * factor)
        iterator = opkernel.data.make_initializable_iterator(dataset)
        following = iterator.get_next()
    fed = np.array([1, 10])
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer, {factor: fed})
        fed[:] = 0
        assert session.run(following).tolist() == [0, 0]
        assert session.run(following).tolist() == [1, 10]
