"""Damaged StableHLO modules: XlaCallModule refuses them with an OpError, or runs them.

The calls stand in a process of their own: a module that ends it is a finding. The damage is to the bytes of an artifact, or to
the numbers, types and operations of its text, which a reader takes that checks bytes.
"""

import multiprocessing
import os
import random
import re
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tools.campaigns.campaign import Finding
from tools.campaigns.damage import MUTATIONS

import opkernel
from opkernel import raw_ops
from opkernel.errors import OpError
from opkernel.xla.stablehlo_reader import text_of

__all__ = ["SECONDS_A_CASE", "begin", "case"]

SECONDS_A_CASE = 150
"""Longer than the child is waited for."""
_PATIENCE_S = 120.0
_IN_TIME = opkernel.RunOptions(timeout_in_ms=10_000)
_MODULES = Path(__file__).parents[2] / "tests" / "data" / "modules"

Shape = tuple[int, ...]


class Sample(NamedTuple):
    """A module, the shapes of its arguments, the number of its results, and its platforms."""

    name: str
    shapes: Sequence[Shape]
    results: int
    platforms: Sequence[str] = ("CPU",)


SAMPLES = [
    Sample("two_sizes", [(3, 5), (5, 2)], 3),
    Sample("three_platforms", [(4,)], 1, ("CPU", "CUDA", "TPU")),
    Sample("lapack", [(4, 4), (4, 2)], 1),
    Sample("calls_function", [(3,)], 1),
]
_NUMBERS = [-1, 0, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, 2**62, -(2**63)]
_TYPES = ["f32", "f64", "i1", "i32", "i64", "ui8", "complex<f32>", "bf16", "i2", "index"]


def begin() -> None:
    """Start the process that calls modules."""
    _child.start()


def case(rng: random.Random) -> str:
    """Call a damaged module."""
    sample = rng.choice(SAMPLES)
    artifact = (_MODULES / f"{sample.name}.mlirbc").read_bytes()
    if rng.random() < 0.5:
        damaged = rng.choice(MUTATIONS[:3])(artifact, rng)
    else:
        damaged = _change(text_of(artifact), rng).encode()
    return _child.ask(sample, damaged)


def _change(text: str, rng: random.Random) -> str:
    """A text with other numbers, types or operations."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        pattern, choices = rng.choice(_CHANGES)(text)
        places = list(re.finditer(pattern, text))
        if places:
            at = rng.choice(places)
            text = text[: at.start()] + str(rng.choice(choices)) + text[at.end() :]
    return text


def _tensors(text: str) -> list[str]:
    return sorted({*re.findall(r"tensor<[^>]*>+", text), "tensor<?xf32>", "tensor<0x1xf32>"})


_CHANGES: list[Callable[[str], tuple[str, Sequence[Any]]]] = [
    lambda _: (r"(?<![\w%@#])-?\d+(?![\w.])|(?<=[<x])\d+(?=x)", _NUMBERS),
    lambda _: (r"\b(f32|i32|i1|i64)\b", _TYPES),
    lambda text: (r"tensor<[^>]*>+", _tensors(text)),
    lambda text: (r"stablehlo\.\w+", sorted(set(re.findall(r"stablehlo\.\w+", text)))),
]


class _ModuleChild:
    """The process that calls modules; it is started again after a crash."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Any = None

    def start(self) -> None:
        """Start it."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, sample: Sample, artifact: bytes) -> str:
        """How a call of a module ends: `ran`, or the name of a status code.

        Raises:
            Finding: it ends the process, or has none of these ends.
        """
        if self._process is None:
            self.start()
        try:
            self._pipe.send((sample, artifact))
            if not self._pipe.poll(_PATIENCE_S):
                self._process.kill()
            found: str = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            status, self._process = self._process.exitcode, None
            name = signal.Signals(-status).name if status < 0 else f"status {status}"
            raise Finding(f"{sample.name} ended the process by {name}: {artifact!r}") from None
        if found in ("INTERNAL", "UNKNOWN"):
            raise Finding(f"{sample.name} ends with {found}: {artifact!r}")
        return found


_child = _ModuleChild()


def _serve(pipe: Connection) -> None:
    os.environ["OPKERNEL_CACHE"] = "off"
    while True:
        pipe.send(_end(*pipe.recv()))


def _end(sample: Sample, artifact: bytes) -> str:
    with opkernel.Graph().as_default() as graph:
        function = opkernel.function(lambda x: raw_ops.Abs(x=x))
        traced = function.get_concrete_function(opkernel.TensorSpec([3], opkernel.float32))
        traced.graph.add_to(graph)
        args = [opkernel.placeholder(opkernel.float32, shape) for shape in sample.shapes]
        results = raw_ops.XlaCallModule(
            args=args,
            module=artifact,
            function_list=[traced.name],
            Sout=[None] * sample.results,
            Tout=[opkernel.float32] * sample.results,
            version=10,
            platforms=sample.platforms,
        )
    with opkernel.Session(graph) as session:
        ones = [np.ones(one, np.float32) for one in sample.shapes]
        try:
            session.run(results, dict(zip(args, ones, strict=True)), options=_IN_TIME)
        except OpError as error:
            return error.code.name
    return "ran"
