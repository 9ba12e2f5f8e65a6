"""The examples run as a user runs them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opkernel

ROOT = Path(__file__).resolve().parent.parent
KERNELS = {
    "all_reduce": """\
[[6.0, 60.0], [6.0, 60.0], [6.0, 60.0], [6.0, 60.0]]
alone: nobody else came in time
[[6.0, 60.0], [6.0, 60.0], [6.0, 60.0], [6.0, 60.0]]
""",
    "attrs": """\
count=3, scale=0.5, verbose=False, mode=linear, dtype=float32, shape=[?,2], table=7, sizes=[1, 2], names=['a']
refused: Described: count must be >= 0, got -1 (node 'Described')
""",
    "coroutine": """\
4.0
waited
refused: Delay: the service takes no negative numbers (node 'Delay', inputs float32[])
""",
    "forwarding": """\
first computes in new memory
second computes in input 0
[-0.333  0.     0.429]
first computes in new memory
second computes in new memory
[-0.333  0.     0.429]
fed: [-1.0, 0.0, 3.0]
""",
    "labelled": "default: 10000.0\nlabelled: 9998.6\n",
    "lists": """\
[[1, 2], [11, 22], [16, 27]]
refused: RunningSums: Inputs to operation of type RunningSums must have the same size and shape.  Input 0: [2] != input 1: [1] (node 'RunningSums', inputs int32[2], int32[1])
""",
    "ref_variable": """\
refused: MyAssignAdd: Attempting to use uninitialized value v (node 'add', inputs TensorRef, float32[2])
after assign: [1. 2.] [-1. -2.]
after add: [2. 4.] [-2. -4.]
after add: [3. 6.] [-3. -6.]
""",
    "resource_counter": """\
a and b, 10 steps each on 10 threads, then a: 21
c, which shares with nobody: 1 2
a in another session: 1
""",
    "resource_handle": """\
after 1, 2, 2: 2
after 2, 5 as well: 3
""",
    "zero_out": "[[5, 0], [0, 0]]\n",
}


def run(script: str, *arguments: str, **environment: str) -> str:
    """What a script prints."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_digits_demo_recognises_what_tensorflow_recognises() -> None:
    assert "357 of 360 held-out images recognised (99.2%)" in run("examples/digits/demo.py")


@pytest.mark.parametrize("name", sorted(path.stem for path in ROOT.glob("examples/kernels/*.py")))
def test_a_kernel_prints_what_it_computes(name: str) -> None:
    assert run(f"examples/kernels/{name}.py") == KERNELS[name]


def test_a_provider_of_kernels() -> None:
    assert "2 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/provider")
    here = {"OPKERNEL_PLUGIN_PATH": str(ROOT / "examples")}
    model, *options = "examples/digits/digits.pb", "--provider", "blocked"
    assert "blocked computes it" in run(
        "-m", "opkernel", "explain", model, "MatMul", *options, **here
    )


def test_newton_finds_roots() -> None:
    assert (
        run("examples/functions/newton.py")
        == """\
roots [ 1.        1.414214 12.      ] after 8 turns
shorter arrays have the same trace: [3.]
traces: 1
distance of floats: 5.000000
distance of integers: 7
from a file: [4. 5.]
"""
    )


@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_training_on_tasks(way: str) -> None:
    printed = run("examples/cluster/train_on_tasks.py", "--local", "--way", way, "--steps", "30")
    found = re.findall(r"loss (\S+) to (\d\.\d+)", printed)
    assert len(found) == (2 if way == "asynchronous" else 1), printed
    assert all(float(last) < float(first) for first, last in found)


def test_training_follows_tensorflow(tmp_path: Path) -> None:
    curve, graph = tmp_path / "loss.svg", tmp_path / "trained.pb"
    options = ["--steps", "50", "--curve", str(curve), "--save", str(graph)]
    printed = run("examples/training/train.py", *options)
    recognised = re.findall(r"(\d+) of 360 held-out images recognised", printed)
    assert list(map(int, recognised)) == pytest.approx([278, 312], abs=3)
    found = re.search(r"50 steps: loss (\S+) to (\S+)\n.*first 50 steps: (\S+)\n", printed)
    assert found is not None, printed
    first, last, difference = map(float, found.groups())
    assert (first, last) == pytest.approx((2.4585, 1.4014), abs=1e-3)
    assert difference < 1e-4
    assert curve.read_text().count("<polyline") == 2
    images = np.load(ROOT / "examples/digits/images.npy")
    digits = opkernel.Session(opkernel.load_graph(graph)).run("digit:0", {"images:0": images})
    assert digits.tolist()[-4:] == [7, 0, 5, 3]
