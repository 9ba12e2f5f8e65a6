"""Who may let a graph call functions of Python, and what happens to a graph that names unknown ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Permissions, raw_ops
from opkernel.errors import InvalidArgumentError

ASKS = Path(__file__).parent.parent / "cli" / "saved_models" / "two"
"""TensorFlow wrote it; its signature `ask` has a node PyFunc."""
TOKEN = "pyfunc_0"
ALLOWED = Permissions(python={TOKEN: lambda x: x * np.float32(10)})


def graph_of(op: str) -> Any:
    with opkernel.Graph().as_default() as graph:
        getattr(raw_ops, op)(input=[np.float32(3)], token=TOKEN, Tout=[opkernel.float32], name="y")
    return graph.as_graph_def()


def imported(op: str, permissions: Permissions | None) -> opkernel.Graph:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(graph_of(op), name="", permissions=permissions)
    return graph


@pytest.mark.parametrize("op", ["PyFunc", "PyFuncStateless", "EagerPyFunc"])
def test_a_token_stands_for_the_function_that_permissions_name(op: str) -> None:
    assert opkernel.Session(imported(op, ALLOWED)).run("y:0") == 30
    session = opkernel.Session(imported(op, None), permissions=ALLOWED)
    assert session.run("y:0") == 30
    for permissions in (None, Permissions(python={"pyfunc_1": np.sin}), Permissions(read=["/"])):
        with pytest.raises(InvalidArgumentError, match=r"python=\{'pyfunc_0'"):
            opkernel.Session(imported(op, permissions)).run("y:0")


def test_the_permissions_of_an_import_are_not_those_of_the_session() -> None:
    graph = imported("PyFunc", Permissions(python={"pyfunc_1": np.sin}))
    with pytest.raises(InvalidArgumentError):
        opkernel.Session(graph, permissions=ALLOWED).run("y:0")


def test_a_saved_model_calls_the_function_that_its_user_names() -> None:
    x = np.float32(3)
    (found,) = opkernel.load(str(ASKS), permissions=ALLOWED).signatures["ask"](x=x).values()
    assert found == 30
    with pytest.raises(
        InvalidArgumentError, match="No function of this program is called 'pyfunc_0'"
    ):
        opkernel.load(str(ASKS)).signatures["ask"](x=x)


def test_permissions_with_functions() -> None:
    assert ALLOWED == Permissions(python=ALLOWED.python) != Permissions()
    assert hash(ALLOWED) == hash(Permissions(python=ALLOWED.python))
    assert repr(ALLOWED) == "Permissions(read=[], write=[], python=['pyfunc_0'])"
    assert ALLOWED.reading("/data").python == ALLOWED.python
