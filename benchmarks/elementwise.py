"""How fast chains of element-wise ops on 16 M floats are, beside TensorFlow's Session.

    python benchmarks/elementwise.py --tensorflow PYTHON_WITH_TENSORFLOW [--rounds N] [--json FILE]

Ten arithmetic ops (bound: at least 1.5 x as fast as TensorFlow), and the tanh form of gelu, nine ops
(bound: 2.5 x). Both run the same GraphDef.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from measure import rerun_in_clean_environment
from models import Model, measure, report

import opkernel
from opkernel.graph import Graph, Tensor

Binary = Callable[[str, Tensor, Tensor | float], Tensor]


def arithmetic(x: Tensor, op: Binary) -> Tensor:
    """Ten ops."""
    y = op("AddV2", op("Mul", x, 1.5), 0.25)
    y = op("Mul", op("Sub", y, x), y)
    y = op("Minimum", op("Maximum", y, 0.1), 2.0)
    y = op("Mul", op("AddV2", y, x), 0.5)
    return op("AddV2", op("Sub", y, 0.125), x)


def gelu(x: Tensor, op: Binary) -> Tensor:
    """Nine ops, one of them Tanh."""
    cube = op("Mul", op("Mul", x, x), x)
    inner = op("Mul", op("AddV2", op("Mul", cube, 0.044715), x), 0.7978845608)
    tanh = x.graph.create_op("Tanh", [inner]).outputs[0]
    return op("Mul", op("Mul", op("AddV2", tanh, 1.0), x), 0.5)


CHAINS = {"ten arithmetic ops": (arithmetic, 1.5), "gelu by tanh": (gelu, 2.5)}


def chain_graph(chain: Callable[[Tensor, Binary], Tensor]) -> Graph:
    """The graph of a chain from `x` to `y`."""
    graph = Graph()

    def op(name: str, a: Tensor, b: Tensor | float) -> Tensor:
        if isinstance(b, float):
            attrs = {"dtype": opkernel.float32, "value": np.float32(b)}
            b = graph.create_op("Const", [], attrs=attrs).outputs[0]
        return graph.create_op(name, [a, b]).outputs[0]

    with graph.as_default():
        attrs = {"dtype": opkernel.float32}
        x = graph.create_op("Placeholder", [], name="x", attrs=attrs).outputs[0]
        graph.create_op("Identity", [chain(x, op)], name="y")
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured, too")
    options = parser.parse_args()
    rerun_in_clean_environment()
    results = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, (chain, bound) in CHAINS.items():
            path = Path(directory) / "chain.pb"
            path.write_bytes(chain_graph(chain).as_graph_def().SerializeToString())
            model = Model("y:0", ("x:0=long",))
            results[name] = measure(options.tensorflow, path, model, [1], options.rounds)
            report(f"{name}, 16 M floats", results[name][1], bound)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
