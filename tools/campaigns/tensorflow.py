"""Calls of ops, right and wrong ones, in a graph, given to TensorFlow too: it takes the same, with the same results.

`.venv-tensorflow/bin/python -m tools.campaigns tensorflow`, after `python3 dev.py tensorflow` has made the
environment. TensorFlow runs in a process of its own: some calls end it.
"""

import multiprocessing
import os
import random
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from google.protobuf import text_format
from tools.campaigns.campaign import Finding
from tools.campaigns.damage import NODE_CHANGES
from tools.campaigns.freedom import (
    as_integers,
    flush_subnormals,
    free_outputs,
    is_free,
    with_free_elements,
)
from tools.campaigns.samples import calls, graph_of_call
from tools.campaigns.ways import Outcome, outcome_of, same

import opkernel
from opkernel.errors import Code, OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.opdef import global_op_registry, summarize_node_def
from opkernel.ops.nn.channels_first import ONEDNN_TYPES
from opkernel.proto import GraphDef

__all__ = ["begin", "case", "differential"]

_CHANGES = [change for change in NODE_CHANGES if change.__name__.startswith("_change_")]
_LIMIT = 1 << 28
_RANDOM = (
    "Random",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "Timestamp",
    "Bernoulli",
    "Shuffle",
    "NonDeterministicInts",
    "SampleDistortedBoundingBox",
    "CandidateSampler",
)


def case(rng: random.Random) -> str:
    """Change a call, and run it here and there."""
    graph_def = graph_of_call(rng.choice(calls()))
    while _is_free_call(graph_def):
        graph_def = graph_of_call(rng.choice(calls()))
    for _ in range(rng.choice([0, 1, 1, 2])):
        rng.choice(_CHANGES)(graph_def, rng)
    try:
        return differential(graph_def)
    except Finding:
        if not flush_subnormals(graph_def):
            raise
    return differential(graph_def)


def _is_free_call(graph_def: GraphDef) -> bool:
    """True for random values, calls of functions, and images that oneDNN computes.

    TensorFlow inlines functions, and finds other faults first. oneDNN, which is off, takes more and rounds otherwise.
    """
    op = graph_def.node[-1].op
    is_random = any(word in op for word in _RANDOM)
    is_of_images = bool(global_op_registry().traits(op).images)
    by_onednn = is_of_images and graph_def.node[-1].attr["T"].type in ONEDNN_TYPES
    return op.startswith("_") or is_random or by_onednn or bool(graph_def.library.function)


def begin() -> None:
    """Start TensorFlow before the first case: the import may take longer than a case."""
    _tensorflow.start()


def differential(graph_def: GraphDef) -> str:
    """Run it here and there; raise Finding where they differ. Gives how it ended."""
    ours = outcome_of(lambda: _run(graph_def))
    if ours.error is not None and _is_too_large(ours.error):
        return "too large"  # by another limit, or none, there
    theirs = _tensorflow.answer(graph_def)
    if theirs is None:
        return "crashed TensorFlow"
    if is_free(ours, theirs, graph_def):
        return "free"
    _compare(ours, theirs, graph_def)
    return ours.word


def _is_too_large(error: OpError) -> bool:
    return error.code == Code.RESOURCE_EXHAUSTED or "No NumPy array can have" in error.message


def _run(graph_def: GraphDef) -> Any:
    graph = Graph()
    import_graph_def(graph_def, name="", graph=graph)
    outputs = list(graph.get_operations()[-1].outputs)
    for op in graph.get_operations():  # what shape functions refuse, TensorFlow refuses at import
        graph.refiner.add_node(op)
    with opkernel.Session(graph, optimize=False, memory_limit_bytes=_LIMIT) as session:
        return session.run(outputs)


def _compare(ours: Outcome, theirs: Any, graph_def: GraphDef) -> None:
    node = _text_of(graph_def)
    if isinstance(theirs, tuple):
        code, text = theirs
        if ours.error is None:
            raise Finding(f"TensorFlow refuses it: {text[:300]}\n{node}")
        if code is not None and ours.error.code != code and ours.error.code != Code.UNIMPLEMENTED:
            raise Finding(
                f"TensorFlow: {Code(code).name}: {text[:300]}\nhere: {ours.error!r}\n{node}"
            )
        return
    if ours.values is None:
        if ours.error is not None and ours.error.code != Code.UNIMPLEMENTED:
            raise Finding(f"TensorFlow takes it; here: {ours.error}\n{node}")
        return
    free = free_outputs(graph_def)
    for index, (mine, wanted) in enumerate(zip(ours.values, theirs, strict=True)):
        if index not in free and not same(
            with_free_elements(as_integers(mine), wanted, graph_def), wanted
        ):
            raise Finding(f"output {index} here: {mine!r}\nTensorFlow: {wanted!r}\n{node}")


def _text_of(graph_def: GraphDef) -> str:
    """The node that is called, and what it is given."""
    constants = {n.name: n.attr["value"].tensor for n in graph_def.node if n.op == "Const"}
    given = [text_format.MessageToString(constants[name], as_one_line=True) for name in constants]
    return "\n".join([summarize_node_def(graph_def.node[-1]), *(text[:200] for text in given)])


class _TensorFlow:
    """TensorFlow in a child, which is started again where a call has ended it."""

    def __init__(self) -> None:
        self._child: Any = None
        self._pipe: Any = None

    def answer(self, graph_def: GraphDef) -> Any:
        """A list of results, a tuple of status code and message, or None where it crashed.

        The code is None where it is Python code of TensorFlow that refused the graph.
        """
        try:
            self.start()
            self._pipe.send(graph_def.SerializeToString())
            if not self._pipe.poll(8):
                self._child.kill()
            return self._pipe.recv()
        except (EOFError, ConnectionError):
            self._child = None
            return None
        except BaseException:  # the case's time is over: its answer is not the next one's
            self._child.kill()
            self._child = None
            raise

    def start(self) -> None:
        """Start TensorFlow, unless it is there."""
        if self._child is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()
        self._pipe.recv()  # it is there, however long the import takes


_tensorflow = _TensorFlow()


def _serve(pipe: Connection) -> None:
    """Answer GraphDefs with the results of their last nodes."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    import tensorflow as tf

    pipe.send("ready")
    while True:
        pipe.send(_answer(tf, pipe.recv()))


def _answer(tf: Any, graph_def: bytes) -> Any:
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    try:
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph_def), name="")
            fetches = list(graph.get_operations()[-1].outputs)
            with tf.compat.v1.Session(graph=graph, config=config) as session:
                return [np.asarray(value) for value in session.run(fetches)]
    except tf.errors.OpError as error:
        return error.error_code, error.message
    except Exception as error:
        return None, str(error)
