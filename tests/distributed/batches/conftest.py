"""Models: a graph some of whose rows fail, a SavedModel, and one that does to its process what it is told."""

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Module, TensorSpec, Variable, raw_ops, save_graph
from opkernel.kernel import global_kernel_registry
from opkernel.opdef import global_op_registry

WEIGHTS = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
X = np.arange(30, dtype=np.float32).reshape(10, 3)
Y = X @ WEIGHTS

_NUMBERS = itertools.count()
_LIBRARY = """\
import os, signal, time
import opkernel
from opkernel.opdef import unchanged_shape

opkernel.register_op("{op}", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)


@opkernel.register_kernel("{op}", device="CPU")
def told(x):
    if (x == -1).any():
        os._exit(3)
    if (x == -2).any():
        os.kill(os.getpid(), signal.SIGKILL)
    if (x == -3).any() and not os.path.exists(__file__ + ".interrupted"):
        open(__file__ + ".interrupted", "w").close()
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(1000)  # until the parent ends this process
    if (x == -4).any():
        time.sleep(300)
        open(__file__ + ".slept", "w").close()
    return x + 1
"""


class Told(NamedTuple):
    """A model that adds 1; it ends its process at -1 and -2, interrupts its parent at the first -3 and waits for its
    end, and sleeps at -4."""

    model: Path
    library: Path


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """y = x @ WEIGHTS; number = the number in text; loud = text in capitals."""
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None, 3], name="x")
        text = opkernel.placeholder(opkernel.string, [None], name="text")
        raw_ops.MatMul(a=x, b=WEIGHTS, name="y")
        raw_ops.StringToNumber(string_tensor=text, out_type=opkernel.float32, name="number")
        raw_ops.StringUpper(input=text, name="loud")
    save_graph(graph, tmp_path / "graph.pb")
    return tmp_path / "graph.pb"


class Dense(Module):
    """y = x @ weights."""

    def __init__(self) -> None:
        self.weights = Variable(WEIGHTS, name="weights")

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def __call__(self, x: Any) -> Any:
        return {"y": x @ self.weights}


@pytest.fixture
def saved_model(tmp_path: Path) -> Path:
    """A SavedModel of Dense."""
    opkernel.save(Dense(), tmp_path / "dense")
    return tmp_path / "dense"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """See Told."""
    number = next(_NUMBERS)
    op, library = f"DoesAsTold{number}", tmp_path / f"library_of_told_{number}.py"
    library.write_text(_LIBRARY.format(op=op))
    model = tmp_path / "told.pbtxt"
    model.write_text(
        'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
        'attr { key: "shape" value { shape { dim { size: -1 } } } } }\n'
        f'node {{ name: "y" op: "{op}" input: "x" }}\nversions {{ producer: 1395 }}\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield Told(model, library)
    for registration in global_kernel_registry().registrations_for(op):
        global_kernel_registry().unregister(registration)
    if sys.modules.pop(library.stem, None) is not None:
        global_op_registry().unregister(op)
