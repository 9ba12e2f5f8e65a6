"""What it costs to start: imports, a cold `opkernel run`, and the size of what is installed.

    python benchmarks/start.py [--model GRAPH.pb --feed x:0 --fetch y:0 --value FILE.npy]
                               [--tensorflow PYTHON_WITH_TENSORFLOW]

Bounds: `import opkernel` under 1.6 x `import numpy`; a script of three lines and `opkernel run` that run a
small straight graph, process included, at most 2 x `import numpy`; under 30 ms from the registry
to the first op of TensorFlow's table; a cold run at least 10 x faster than TensorFlow's; at most 80 MB on
disk with everything it needs to run, without compiled files.
"""

import argparse
import re
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from measure import report, wall_seconds

import opkernel

_TENSORFLOW = """
import sys, numpy as np, tensorflow as tf
model, feed, fetch, value = sys.argv[1:]
graph_def = tf.compat.v1.GraphDef.FromString(open(model, "rb").read())
with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name="")
    with tf.compat.v1.Session(graph=graph) as session:
        print(session.run(fetch, {feed: np.load(value)}))
"""


_SCRIPT = """
import opkernel, sys, numpy as np
session = opkernel.Session(opkernel.load_graph(sys.argv[1]))
print(session.run("y:0", {"x:0": np.load(sys.argv[2])}))
"""


def write_straight_model(folder: Path) -> tuple[str, str]:
    """Write a small network, softmax(relu(x w + b) v), and a value of x; the names of the files."""
    ops, width = opkernel.raw_ops, 64
    weights = np.ones((width, width), np.float32)
    with opkernel.Graph().as_default() as graph:
        x = ops.Placeholder(dtype=opkernel.float32, shape=[None, width], name="x")
        biased = ops.BiasAdd(value=ops.MatMul(a=x, b=weights), bias=weights[0])
        ops.Softmax(logits=ops.MatMul(a=ops.Relu(features=biased), b=weights), name="y")
    opkernel.save_graph(graph, folder / "model.pb")
    np.save(folder / "x.npy", weights)
    return str(folder / "model.pb"), str(folder / "x.npy")


def report_cold_starts(python: str) -> None:
    """How long processes take that run one small graph."""
    with tempfile.TemporaryDirectory() as folder:
        model, value = write_straight_model(Path(folder))
        run = [python, "-m", "opkernel", "run", model, "--input", f"x:0=@{value}", "--fetch", "y:0"]
        starts = {
            "import numpy": [python, "-c", "import numpy"],
            "a script of three lines": [python, "-c", _SCRIPT, model, value],
            "opkernel run": run,
        }
        report("A small graph, process included", wall_seconds(starts, 15), "import numpy", 1e-3)


def installed_bytes() -> int:
    """The bytes of opkernel and of what it needs to run, without compiled files."""
    package = Path(opkernel.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file()]
    for name in needed("opkernel") - {"opkernel"}:
        files += [Path(file.locate()) for file in distribution(name).files or ()]
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc" and path.is_file())


def needed(name: str) -> set[str]:
    """A distribution and all that it needs, extras aside."""
    found, ahead = set[str](), [name]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            requirements = distribution(name).requires or ()
            ahead += [re.split(r"[^\w.-]", one)[0] for one in requirements if ";" not in one]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--feed", default="x:0")
    parser.add_argument("--fetch", default="Identity:0")
    parser.add_argument("--value")
    parser.add_argument("--tensorflow", metavar="PYTHON")
    options = parser.parse_args()
    python = sys.executable
    imports = {
        "python -c pass": [python, "-c", "pass"],
        "import numpy": [python, "-c", "import numpy"],
        "import opkernel": [python, "-c", "import opkernel"],
    }
    report("Imports, process included", wall_seconds(imports, 15), "import numpy", 1e-3)
    report_cold_starts(python)
    registry = "from opkernel.opdef import global_op_registry as registry; registry()"
    look_ups = {
        "the op registry": [python, "-c", registry],
        "and a look-up": [python, "-c", f"{registry}.look_up('Cholesky')"],
    }
    report("First look-up, process included", wall_seconds(look_ups, 15), "the op registry", 1e-3)
    if options.model:
        names = [options.model, options.feed, options.fetch, options.value]
        feed = f"{options.feed}=@{options.value}"
        command = [python, "-m", "opkernel", "run", options.model]
        runs = {"opkernel run": [*command, "--input", feed, "--fetch", options.fetch]}
        if options.tensorflow:
            runs["TensorFlow"] = [options.tensorflow, "-c", _TENSORFLOW, *names]
        report("A cold run", wall_seconds(runs, 5), "opkernel run", 1e-3)
    print(f"installed, with all it needs to run: {installed_bytes() / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
