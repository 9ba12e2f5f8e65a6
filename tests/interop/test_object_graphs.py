"""Object graphs that lead anywhere, in circles too: whatever is asked of the objects ends, with an error of ours at worst."""

import contextlib
import random
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Checkpoint, Module, Variable
from opkernel.errors import DataLossError, OpError
from opkernel.interop import LoadedModel
from opkernel.interop.loaded_objects import LoadedObject
from opkernel.proto import SavedModel

DATA = Path(__file__).parent / "data"
SAMPLES = ["captured", "cycle", "dense", "nested_modules", "optimizer_slots", "tables", "asset"]
NAMES = ["__call__", "variables", "trainable_variables", "signatures", "_create_resource", "0", "x"]
"""What loading looks for."""
KINDS = [
    "trackable_list_wrapper",
    "trackable_dict_wrapper",
    "_generic_user_object",
    "signature_map",
]
ROUNDS = 12


def test_a_call_that_leads_back_is_refused(sample: Any) -> None:
    """To the object itself, or by way of others."""
    for length in (1, 2, 5):

        def change(meta_graph: Any, length: int = length) -> None:
            nodes = meta_graph.object_graph_def.nodes
            first = len(nodes)
            for number in range(length):
                node = nodes.add()
                node.user_object.identifier = "_generic_user_object"
                target = first + (number + 1) % length
                node.children.add(local_name="__call__", node_id=target)
            nodes[0].children.add(local_name="circle", node_id=first)

        with pytest.raises(DataLossError, match="its __call__ leads back to itself"):
            opkernel.load(sample("linear", change)).circle(1)


def test_what_a_model_calls_may_be_the_call_of_another_object(sample: Any) -> None:
    def change(meta_graph: Any) -> None:
        nodes = meta_graph.object_graph_def.nodes
        number = next(c.node_id for c in nodes[0].children if c.local_name == "f")
        for target in (number, len(nodes)):
            node = nodes.add()
            node.user_object.identifier = "_generic_user_object"
            node.children.add(local_name="__call__", node_id=target)
        nodes[0].children.add(local_name="outer", node_id=len(nodes) - 1)

    model = opkernel.load(sample("captured", change))
    x = np.ones(20, np.float32)
    np.testing.assert_allclose(model.outer(x) + 1, model.f(x), rtol=1e-5)  # it counts its calls


def test_variables_are_variables_whatever_a_model_lists(sample: Any) -> None:
    def change(meta_graph: Any) -> None:
        nodes = meta_graph.object_graph_def.nodes
        listed = len(nodes)
        nodes.add().user_object.identifier = "trackable_list_wrapper"
        nodes[listed].children.add(local_name="0", node_id=0)
        for name in ("variables", "trainable_variables"):
            kept = [c for c in nodes[0].children if c.local_name != name]
            del nodes[0].children[:]
            nodes[0].children.extend(kept)
            nodes[0].children.add(local_name=name, node_id=listed)

    model = opkernel.load(sample("captured", change))
    for found in (model.variables, model.trainable_variables):
        assert found
        assert all(isinstance(one, Variable) for one in found)


def changed(name: str, chance: random.Random) -> SavedModel:
    """A model whose objects hold others than they did, by other names, or are of another kind."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        model = SavedModel.FromString(archive.read("saved_model.pb"))
    graph = model.meta_graphs[0].object_graph_def
    count = len(graph.nodes)
    for _ in range(chance.choice([1, 2, 5, 20])):
        node = graph.nodes[chance.choice([0, chance.randrange(count)])]
        what = chance.randrange(5)
        if what == 0 and node.children:
            chance.choice(node.children).node_id = chance.randrange(count)
        elif what == 1 and node.children:
            chance.choice(node.children).local_name = chance.choice(NAMES)
        elif what == 2:
            node.children.add(local_name=chance.choice(NAMES), node_id=chance.randrange(count))
        elif what == 3:
            node.user_object.identifier = chance.choice(KINDS)
        elif graph.concrete_functions:
            function = graph.concrete_functions[chance.choice(sorted(graph.concrete_functions))]
            for i in range(len(function.bound_inputs)):
                function.bound_inputs[i] = chance.randrange(count)
    return model


def ask_all(model: LoadedModel, folder: Path) -> None:
    """Ask everything of the objects of a model; an error of ours ends a question, or one of Python's a call."""
    objects = [model, *(model.saved_objects.get(i) for i in range(len(model.saved_objects.nodes)))]
    holder: Any = Module()
    holder.model = model
    questions: list[Any] = [
        lambda: [one.numpy() for one in [*model.variables, *model.trainable_variables]],
        lambda: [repr(one) for one in model.signatures.values()],
        lambda: holder.variables,
        lambda: Checkpoint(model=model).write(folder / "checkpoint"),
        lambda: opkernel.save(holder, folder / "again"),
        lambda: opkernel.save(model, folder / "as_it_is"),
    ]
    for one in objects:
        questions += [partial(repr, one), partial(dir, one)]
        if isinstance(one, LoadedObject):
            questions += [one._tracked_children, partial(dict, one.saved_attributes)]
            questions.append(partial(call, one))
    for ask in questions:
        with contextlib.suppress(OpError):
            ask()


def call(one: LoadedObject) -> None:
    with contextlib.suppress(
        TypeError, ValueError
    ):  # there is no function, or one of other arguments
        one(np.ones((2, 3), np.float32))


@pytest.mark.filterwarnings("ignore")  # of TensorFlow's versions, and functions that are not saved
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("name", SAMPLES)
def test_any_object_graph_ends_in_an_answer_or_an_error(
    sample: Any, tmp_path: Path, name: str, round_: int
) -> None:
    directory = sample(name)
    model = changed(name, random.Random(f"{name} {round_}"))
    (directory / "saved_model.pb").write_bytes(model.SerializeToString())
    with contextlib.suppress(OpError):
        ask_all(opkernel.load(directory), tmp_path)
