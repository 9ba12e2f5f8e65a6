"""Iterators over datasets, as resources of graphs and of eager calls."""

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset
from opkernel.types import variant_from_proto

INT64 = {"output_types": [opkernel.int64], "output_shapes": [[]]}


def numbers(count):
    return raw_ops.RangeDataset(start=0, stop=count, step=1, **INT64)


def begun(dataset, attrs=INT64):
    iterator = raw_ops.AnonymousIteratorV3(**attrs)
    raw_ops.MakeIterator(dataset=dataset, iterator=iterator)
    return iterator


def next_of(iterator, attrs=INT64):
    return raw_ops.IteratorGetNext(iterator=iterator, **attrs)


def test_the_end_is_out_of_range_each_time():
    iterator = begun(numbers(2))
    assert [next_of(iterator), next_of(iterator)] == [[0], [1]]
    for _ in range(2):
        with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
            next_of(iterator)


def test_an_iterator_begins_when_it_is_made():
    iterator = raw_ops.AnonymousIteratorV3(**INT64)
    with pytest.raises(errors.FailedPreconditionError, match="has not been initialized"):
        next_of(iterator)


def test_two_iterators_go_their_own_ways():
    dataset = numbers(3)
    first, second = begun(dataset), begun(dataset)
    assert [next_of(first), next_of(first), next_of(second)] == [[0], [1], [0]]


def test_an_iterator_takes_only_datasets_of_its_types():
    iterator = raw_ops.AnonymousIteratorV3(output_types=[opkernel.float32], output_shapes=[[]])
    with pytest.raises(errors.InvalidArgumentError, match="expected float but got int64"):
        raw_ops.MakeIterator(dataset=numbers(2), iterator=iterator)
    iterator = raw_ops.AnonymousIteratorV3(output_types=[opkernel.int64], output_shapes=[[2]])
    with pytest.raises(errors.InvalidArgumentError, match="Incompatible shapes at component 0"):
        raw_ops.MakeIterator(dataset=numbers(2), iterator=iterator)


def test_what_is_no_dataset_is_refused():
    none = raw_ops.OptionalNone()
    with pytest.raises(errors.InvalidArgumentError, match="must be a Dataset object"):
        raw_ops.DatasetCardinality(input_dataset=none)


def test_optionals_say_that_there_is_no_more():
    iterator = begun(numbers(1))
    found = [raw_ops.IteratorGetNextAsOptional(iterator=iterator, **INT64) for _ in range(2)]
    handles = [np.array(one, object) for one in found]
    assert [raw_ops.OptionalHasValue(optional=one) for one in handles] == [True, False]


def test_a_deleted_iterator_is_gone():
    handle, deleter = raw_ops.AnonymousIteratorV2(**INT64)
    raw_ops.MakeIterator(dataset=numbers(1), iterator=handle)
    raw_ops.DeleteIterator(handle=handle, deleter=deleter)
    with pytest.raises(errors.NotFoundError):
        next_of(handle)


def test_a_graph_runs_an_iterator_from_its_initializer():
    with opkernel.Graph().as_default() as graph:
        rows = opkernel.placeholder(opkernel.float32, [None, 2])
        attrs = {"output_types": [opkernel.float32], "output_shapes": [[2]]}
        dataset = raw_ops.TensorSliceDataset(components=[rows], output_shapes=[[2]])
        iterator = raw_ops.IteratorV2(shared_name="", container="", **attrs)
        begin = raw_ops.MakeIterator(dataset=dataset, iterator=iterator)
        (row,) = raw_ops.IteratorGetNext(iterator=iterator, **attrs)
    given = np.arange(4, dtype=np.float32).reshape(2, 2)
    with opkernel.Session(graph) as session:
        for _ in range(2):
            session.run(begin, {rows: given})
            fed, given = given, given.copy()
            fed[:] = 9  # the dataset has what was fed, not the caller's array
            assert [session.run(row).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
            with pytest.raises(errors.OutOfRangeError):
                session.run(row)


def test_a_saved_state_goes_through_a_file():
    with opkernel.Graph().as_default() as graph:
        dataset = raw_ops.RangeDataset(start=0, stop=5, step=1, **INT64)
        iterator = raw_ops.IteratorV2(shared_name="", container="", **INT64)
        begin = raw_ops.MakeIterator(dataset=dataset, iterator=iterator)
        (number,) = raw_ops.IteratorGetNext(iterator=iterator, **INT64)
        saved = raw_ops.SerializeIterator(resource_handle=iterator)
        given = opkernel.placeholder(opkernel.variant, [None])
        restore = raw_ops.DeserializeIterator(resource_handle=iterator, serialized=given)
    with opkernel.Session(graph) as session:
        session.run(begin)
        assert [int(session.run(number)) for _ in range(3)] == [0, 1, 2]
        state = session.run(saved)
        state[0] = variant_from_proto(state[0].to_proto())
        assert int(session.run(number)) == 3
        session.run(restore, {given: state})
        assert int(session.run(number)) == 3


def test_the_state_of_another_dataset_is_refused():
    state = raw_ops.SerializeIterator(resource_handle=begun(numbers(2)))
    slices = raw_ops.TensorSliceDataset(components=[np.arange(3)], output_shapes=[[]])
    with pytest.raises(errors.InvalidArgumentError, match="RangeDataset, not over TensorSlice"):
        raw_ops.DeserializeIterator(resource_handle=begun(slices), serialized=state)


def test_string_handles_stand_for_handles():
    handle, deleter = raw_ops.AnonymousIteratorV2(**INT64)
    raw_ops.MakeIterator(dataset=numbers(1), iterator=handle)
    text = raw_ops.IteratorToStringHandle(resource_handle=handle)
    again = raw_ops.IteratorFromStringHandleV2(string_handle=text)
    assert next_of(again) == [0]
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse string_handle"):
        raw_ops.IteratorFromStringHandle(string_handle=b"\xff")
    raw_ops.DeleteIterator(handle=handle, deleter=deleter)


def test_elements_are_dealt_to_devices_in_turn():
    handle = raw_ops.AnonymousMultiDeviceIteratorV3(devices=["CPU:0", "CPU:1"], **INT64)

    def next_of_shard(shard, number):
        return raw_ops.MultiDeviceIteratorGetNextFromShard(
            multi_device_iterator=handle, shard_num=shard, incarnation_id=number, **INT64
        )

    def begin():
        return raw_ops.MultiDeviceIteratorInit(
            dataset=numbers(5), multi_device_iterator=handle, max_buffer_size=2
        )

    first = begin()
    assert [next_of_shard(1, first) for _ in range(2)] == [[1], [3]]
    assert [next_of_shard(0, first) for _ in range(3)] == [[0], [2], [4]]
    for shard in range(2):
        with pytest.raises(errors.OutOfRangeError):
            next_of_shard(shard, first)
    second = begin()
    assert next_of_shard(0, second) == [0]
    with pytest.raises(errors.InvalidArgumentError, match="Invalid incarnation id"):
        next_of_shard(0, first)
    with pytest.raises(errors.InvalidArgumentError, match="no shard 2"):
        next_of_shard(2, second)


def test_elements_that_wait_for_a_device_count_for_the_memory_limit():
    attrs = {"output_types": [opkernel.int64], "output_shapes": [[10_000]]}
    with opkernel.Graph().as_default() as graph:
        handle = raw_ops.MultiDeviceIterator(
            devices=["CPU:0", "CPU:1"], shared_name="dealt", container="", **attrs
        )
        filled = Dataset.range(1000).map(lambda x: opkernel.fill([10_000], x))
        begin = raw_ops.MultiDeviceIteratorInit(
            dataset=filled.variant_tensor, multi_device_iterator=handle, max_buffer_size=1
        )
        number = opkernel.placeholder(opkernel.int64, [])
        (element,) = raw_ops.MultiDeviceIteratorGetNextFromShard(
            multi_device_iterator=handle, shard_num=np.int32(1), incarnation_id=number, **attrs
        )
    with opkernel.Session(graph, memory_limit_bytes=4 << 20) as session:
        first = session.run(begin)

        def run():
            for _ in range(200):
                session.run(element, {number: first})

        with pytest.raises(errors.ResourceExhaustedError, match="OOM"):
            run()


def test_a_table_is_filled_from_a_dataset():
    table = raw_ops.AnonymousHashTable(key_dtype=opkernel.int64, value_dtype=opkernel.string)
    rows = [np.array([3, 5]), np.array([b"three", b"five"], object)]
    pairs = raw_ops.TensorSliceDataset(components=rows, output_shapes=[[], []])
    raw_ops.InitializeTableFromDataset(table_handle=table, dataset=pairs)
    found = raw_ops.LookupTableFindV2(
        table_handle=table, keys=np.array([5, 4]), default_value=np.array(b"none", object)
    )
    assert found.tolist() == [b"five", b"none"]
    with pytest.raises(errors.InvalidArgumentError, match="are no pairs of a key of type int64"):
        raw_ops.InitializeTableFromDataset(table_handle=table, dataset=numbers(1))


def test_a_one_shot_iterator_makes_its_dataset_once():
    from_factory = opkernel.function(lambda: Dataset.range(2).batch(2).variant_tensor)
    factory = from_factory.get_concrete_function().graph
    attrs = {"output_types": [opkernel.int64], "output_shapes": [[None]]}
    with opkernel.Graph().as_default() as graph:
        factory.add_to(graph)
        iterator = raw_ops.OneShotIterator(dataset_factory=factory.reference, **attrs)
        (batch,) = raw_ops.IteratorGetNext(iterator=iterator, **attrs)
    with opkernel.Session(graph) as session:
        assert session.run(batch).tolist() == [0, 1]
        with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
            session.run(batch)


def test_options_are_found_again():
    options = b"\x0a\x02\x08\x01"
    with_options = raw_ops.OptionsDataset(
        input_dataset=numbers(2), serialized_options=options, **INT64
    )
    taken = raw_ops.TakeDataset(input_dataset=np.array(with_options, object), count=1, **INT64)
    found = raw_ops.GetOptions(input_dataset=np.array(taken, object))
    assert found == options


@pytest.mark.parametrize(
    "options", [b"\xff\xff", b"\x08", b"\x0a\x05ab", b"\x0b", b"\x0c", b"\x00"]
)
def test_options_that_are_no_message_are_refused(options):
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse serialized_options"):
        raw_ops.OptionsDataset(input_dataset=numbers(2), serialized_options=options, **INT64)


@pytest.mark.parametrize("options", [b"", b"\x08\x01", b"\x0b\x0c", b"\xa2\x06\x01a"])
def test_options_with_unknown_fields_are_taken(options):
    dataset = raw_ops.OptionsDataset(input_dataset=numbers(2), serialized_options=options, **INT64)
    assert raw_ops.GetOptions(input_dataset=np.array(dataset, object)) == options
