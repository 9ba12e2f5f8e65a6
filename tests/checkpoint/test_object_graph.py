"""Object graphs: keys by paths and slots; references to objects that are not there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter, ObjectGraph
from opkernel.errors import DataLossError, NotFoundError
from opkernel.proto import TrackableObjectGraph


def graph() -> Any:
    """A root with a variable, an optimiser with a slot of it, and a way back to the root."""
    proto = TrackableObjectGraph()
    root, variable, optimizer, slot = (proto.nodes.add() for _ in range(4))
    root.children.add(node_id=1, local_name="v")
    root.children.add(node_id=2, local_name="optimizer")
    optimizer.children.add(node_id=0, local_name="model")
    variable.attributes.add(name="VARIABLE_VALUE", checkpoint_key="v/KEY")
    slot.attributes.add(name="VARIABLE_VALUE", checkpoint_key="v/SLOT/m")
    optimizer.slot_variables.add(
        original_variable_node_id=1, slot_name="m", slot_variable_node_id=3
    )
    return proto


def test_keys_by_path_and_slot() -> None:
    found = ObjectGraph(graph())
    assert found.key("v") == "v/KEY"
    assert found.key("optimizer/model/optimizer/model/v") == "v/KEY"
    assert found.slot_key("v", "m") == "v/SLOT/m"
    assert [*found.paths()] == [("", 0), ("v", 1), ("optimizer", 2)]
    with pytest.raises(NotFoundError, match="no 'w'"):
        found.key("w")
    with pytest.raises(NotFoundError, match="no slot 'n' of 'v'"):
        found.slot_key("v", "n")
    with pytest.raises(NotFoundError, match="no value"):
        found.key("optimizer")


@pytest.mark.parametrize("number", [-1, 4, 2**31 - 1])
def test_objects_that_are_not_there(number: int) -> None:
    for change in ("child", "slot", "variable"):
        proto = graph()
        if change == "child":
            proto.nodes[0].children[0].node_id = number
        else:
            of_slot = "slot_variable_node_id" if change == "slot" else "original_variable_node_id"
            setattr(proto.nodes[2].slot_variables[0], of_slot, number)
        with pytest.raises(DataLossError, match=f"refers to {number} .* there are 4 objects"):
            ObjectGraph(proto)
    with pytest.raises(DataLossError, match="no object"):
        ObjectGraph(TrackableObjectGraph())


def test_a_damaged_graph_names_its_checkpoint(tmp_path: Path) -> None:
    value = np.empty((), object)
    value[()] = b"\xff\xff"
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("_CHECKPOINTABLE_OBJECT_GRAPH", value)
    with (
        opkernel.load_checkpoint(tmp_path / "c") as checkpoint,
        pytest.raises(DataLossError, match=r"checkpoint .*/c is damaged"),
    ):
        ObjectGraph.of(checkpoint)


def test_a_chain_of_many_objects_is_walked_quickly() -> None:
    proto = TrackableObjectGraph()
    for number in range(50_000):
        proto.nodes.add().children.add(node_id=(number + 1) % 50_000, local_name="n")
    assert sum(1 for _ in zip(ObjectGraph(proto).paths(), range(100), strict=False)) == 100


def test_a_slot_that_was_not_saved_is_looked_for_further() -> None:
    proto = graph()
    other = proto.nodes.add()
    other.slot_variables.add(
        original_variable_node_id=1, slot_name="m", slot_variable_node_id=2
    )  # object 2 has no value
    proto.nodes[2].slot_variables[0].slot_name = "n"
    other.slot_variables.add(original_variable_node_id=1, slot_name="m", slot_variable_node_id=3)
    assert ObjectGraph(proto).slot_key("v", "m") == "v/SLOT/m"


def test_objects_are_paired_by_their_names() -> None:
    """Numbers elsewhere with those here; names that are not here lead nowhere, and objects are paired once."""
    theirs = {
        0: [("optimizer", 7), ("v", 8), ("absent", 9)],
        7: [("model", 0), ("again", 8)],
        8: [],
        9: [("v", 10)],
    }
    assert ObjectGraph(graph()).paired(theirs.__getitem__) == {0: 0, 7: 2, 8: 1}
    assert ObjectGraph(graph()).children(0) == {"v": 1, "optimizer": 2}
    assert ObjectGraph(graph()).child(0, "optimizer") == 2
    assert ObjectGraph(graph()).child(1, "v") is None


def test_the_graph_of_a_checkpoint(tmp_path: Path) -> None:
    value = np.empty((), object)
    value[()] = graph().SerializeToString()
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("_CHECKPOINTABLE_OBJECT_GRAPH", value)
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        found = ObjectGraph.of(checkpoint)
    assert found.proto == graph()
    assert found.find("") == 0
    with pytest.raises(NotFoundError, match=r"/c has no 'optimiser': .*perhaps you mean optimizer"):
        found.find("optimiser")
