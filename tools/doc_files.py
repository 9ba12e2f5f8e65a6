"""Write the models and data that the examples of the documents name into the current folder.

`doc_examples.py` runs it with the opkernel that is to run the examples.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import opkernel
from opkernel import raw_ops
from opkernel.proto import MetaGraphDef

OP = """\
op {
  name: "Doubled"
  input_arg { name: "x" type: DT_FLOAT }
  output_arg { name: "y" type: DT_FLOAT }
}
"""
MODULE = """\
import opkernel
from opkernel.opdef import unchanged_shape

DOUBLED = opkernel.register_op(
    "Doubled", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
)


@opkernel.register_kernel(DOUBLED, device="CPU")
def doubled(x):
    return x + x
"""


def dense_graph() -> opkernel.Graph:
    """A graph of a layer: y = relu(x kernel), in the scope `encoder/layer_0`."""
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(np.float32, [None, 3], name="x")
        with graph.name_scope("encoder/layer_0"):
            kernel = raw_ops.Const(
                value=np.ones((3, 2), np.float32), dtype=opkernel.float32, name="kernel"
            )
            hidden = raw_ops.MatMul(a=x, b=kernel)
        raw_ops.Relu(features=hidden, name="y")
    return graph


def image_graph() -> opkernel.Graph:
    """A graph of images of any size."""
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(np.float32, [None, None, None, 3], name="x")
        raw_ops.Mean(input=x, axis=[1, 2], name="y")
    return graph


def variable_graph() -> opkernel.Graph:
    """A graph with a variable, whose values lie in the checkpoint `model.ckpt-100`."""
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(np.float32, [None, 3], name="x")
        handle = raw_ops.VarHandleOp(
            dtype=opkernel.float32, shape=[3, 2], shared_name="w", name="w"
        )
        weights = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
        raw_ops.MatMul(a=x, b=weights, name="scores")
    with opkernel.BundleWriter("model.ckpt-100") as writer:
        writer.add("w", np.ones((3, 2), np.float32))
    return graph


def write_meta_graph() -> None:
    """Write `model.ckpt.meta`, a MetaGraph of that graph, and its checkpoint `model.ckpt`."""
    graph = variable_graph()
    saver = opkernel.distributed.Saver(graph)
    with graph.as_default():
        value = raw_ops.Const(value=np.ones((3, 2), np.float32), dtype=opkernel.float32)
        handle = graph.get_operation_by_name("w").outputs[0]
        set_it = raw_ops.AssignVariableOp(resource=handle, value=value)
    with opkernel.Session(graph) as session:
        session.run(set_it)
        saver.save(session, "model.ckpt")
    meta_graph = MetaGraphDef()
    meta_graph.graph_def.CopyFrom(graph.as_graph_def())
    meta_graph.saver_def.filename_tensor_name = "save/Const:0"
    meta_graph.saver_def.save_tensor_name = "save/control_dependency:0"
    meta_graph.saver_def.restore_op_name = "save/restore_all"
    Path("model.ckpt.meta").write_bytes(meta_graph.SerializeToString())


def price_graph() -> opkernel.Graph:
    """A graph that reads prices from text."""
    with opkernel.Graph().as_default() as graph:
        text = opkernel.placeholder(opkernel.string, [None], name="text")
        raw_ops.StringToNumber(string_tensor=text, name="price")
    return graph


class Exported(opkernel.Module):
    """A model with the interface of one that Keras has exported."""

    def __init__(self) -> None:
        self.kernel = opkernel.Variable(np.ones((3, 2), np.float32))

    @opkernel.function(input_signature=[opkernel.TensorSpec([None, 3], np.float32)])
    def serve(self, keras_tensor: Any) -> Any:
        """Give the outputs."""
        return keras_tensor @ self.kernel


def write_tfjs_model(folder: Path) -> None:
    """Write a graph model of TensorFlow.js that doubles an image."""
    number = {"type": "DT_FLOAT"}
    shape = {"shape": {"dim": [{"size": "-1"}, {"size": "3"}]}}
    factor = {"dtype": number, "value": {"tensor": {"dtype": "DT_FLOAT", "tensorShape": {}}}}
    nodes = [
        {"name": "image", "op": "Placeholder", "attr": {"dtype": number, "shape": shape}},
        {"name": "factor", "op": "Const", "attr": factor},
        {"name": "doubled", "op": "Mul", "input": ["image", "factor"], "attr": {"T": number}},
    ]
    weights = [{"name": "factor", "shape": [], "dtype": "float32"}]
    model = {
        "format": "graph-model",
        "modelTopology": {"node": nodes},
        "weightsManifest": [{"paths": ["group1-shard1of1.bin"], "weights": weights}],
    }
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps(model))
    (folder / "group1-shard1of1.bin").write_bytes(np.array(2, "<f4").tobytes())


def main() -> None:
    """Write them all."""
    Path("models").mkdir()
    for name in ("MODEL", "model.pb", "mobilenet_v2.pb", "models/one.pb"):
        opkernel.save_graph(dense_graph(), name)
    opkernel.save_graph(variable_graph(), "variables.pb")
    opkernel.save_graph(image_graph(), "images.pb")
    opkernel.save_graph(price_graph(), "prices.pb")
    opkernel.save(Exported(), "saved_model")
    write_tfjs_model(Path("web_model"))
    write_meta_graph()
    Path("model.pb.gz").write_bytes(gzip.compress(Path("model.pb").read_bytes()))
    np.save("x.npy", np.ones((2, 3), np.float32))
    np.savez("rows.npz", text=np.array(["1", "2", "3", "4"]))
    Path("ops_history.pbtxt").write_text(OP)
    Path("my_ops.py").write_text(MODULE)
    shutil.make_archive("model", "gztar", "DIR")


if __name__ == "__main__":
    main()
