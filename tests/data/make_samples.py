"""Write the files of this folder with TensorFlow: samples that it, and not opkernel, encoded.

pip install tensorflow-cpu==2.21.0
python tests/data/make_samples.py
"""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import kernels, op_def_registry

FOLDER = Path(__file__).parent
v1 = tf.compat.v1

OPS = ["Add", "Conv2D", "If", "MatMul", "ParseExample", "TensorListReserve", "VarHandleOp"]
KERNEL_OPS = ["MatMul", "Shape", "VarHandleOp"]


def graph_with_functions() -> tf.Graph:
    """Constants in several encodings, control inputs, a device, and two functions, one nested."""
    graph = tf.Graph()
    with graph.as_default():

        @tf.function
        def double(x: tf.Tensor) -> tf.Tensor:
            return x + x

        @tf.function
        def clipped(x: tf.Tensor) -> tf.Tensor:
            return tf.cond(tf.reduce_sum(x) > 3.0, lambda: double(x), lambda: -x)

        x = v1.placeholder(tf.float32, [None, 3], name="x")
        tf.constant(7, shape=[100], name="repeated")
        tf.constant(np.arange(6, dtype=np.float16).reshape(2, 3), name="halves")
        tf.constant([b"\x00\xff", "snö".encode()], name="strings")
        with tf.device("/device:CPU:0"), tf.control_dependencies([x]):
            y = clipped(x)
        tf.identity(y, name="y")
    return graph


class Scaler(tf.Module):
    def __init__(self) -> None:
        self.factor = tf.Variable([1.0, 2.0, 3.0], name="factor")

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return x * self.factor


def meta_graph() -> bytes:
    """A graph of TensorFlow 1: reference variables, collections, a saver."""
    with tf.Graph().as_default() as graph:
        total = v1.get_variable("total", [2], use_resource=False)
        v1.assign_add(total, [1.0, 1.0], name="add")
        v1.add_to_collection("answers", 42)
        saver = v1.train.Saver([total])
        meta = v1.train.export_meta_graph(
            graph=graph, saver_def=saver.as_saver_def(), strip_default_attrs=True
        )
        return meta.SerializeToString(deterministic=True)


def main() -> None:
    graph = graph_with_functions().as_graph_def()
    (FOLDER / "graph_with_functions.pb").write_bytes(graph.SerializeToString(deterministic=True))
    (FOLDER / "graph_with_functions.pbtxt").write_text(text_format.MessageToString(graph))
    ops = op_def_pb2.OpList(op=[op_def_registry.get(name) for name in OPS])
    (FOLDER / "op_list.pb").write_bytes(ops.SerializeToString())
    found = kernels.get_all_registered_kernels()
    chosen = type(found)(kernel=[k for k in found.kernel if k.op in KERNEL_OPS])
    (FOLDER / "kernel_list.pb").write_bytes(chosen.SerializeToString())
    (FOLDER / "meta_graph.pb").write_bytes(meta_graph())
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(Scaler(), folder)
        saved = (Path(folder) / "saved_model.pb").read_bytes()
    (FOLDER / "saved_model.pb").write_bytes(saved)


if __name__ == "__main__":
    main()
