"""Answers requests about sessions: a graph, perhaps extended, and steps that run parts of it."""

from typing import Any

import numpy as np
from google.protobuf import text_format

from opkernel import Graph, Session, import_graph_def
from opkernel.errors import OpError
from opkernel.proto import GraphDef, TensorProto
from opkernel.types import as_dtype, tensor_from_proto

OK = {"ok": True}
UNSUPPORTED = {"unsupported": True}


def refusal(error: OpError) -> dict[str, Any]:
    """The status object of an error."""
    return {"ok": False, "error_code": error.code.name, "error_text": str(error)}


def session(request: dict[str, Any]) -> Any:
    """The status of making the session, and of each step with its tensors."""
    if request.get("extend") or request.get("cpu_devices", 1) != 1:
        return UNSUPPORTED
    graph = Graph()
    graph_def = text_format.Parse(request["graph_def"], GraphDef())
    if any(node.op == "SymbolicGradient" for node in graph_def.node):
        return UNSUPPORTED
    created: dict[str, Any] = OK
    try:
        with graph.as_default():
            import_graph_def(graph_def, name="")
    except OpError as error:
        created = refusal(error)
    with Session(graph) as running:
        return {"create": created, "steps": [_step(running, step) for step in request["steps"]]}


def _step(running: Session, step: dict[str, Any]) -> dict[str, Any]:
    feeds = {
        name if ":" in name else f"{name}:0": tensor_from_proto(
            text_format.Parse(text, TensorProto())
        )
        for name, text in step.get("feeds", {}).items()
    }
    fetches = [name if ":" in name else f"{name}:0" for name in step.get("fetches", [])]
    try:
        values, _ = running.run([fetches, step.get("targets", [])], feeds)
    except OpError as error:
        return {"status": refusal(error)}
    return {"status": OK, "outputs": [_tensor(value) for value in values]}


def _tensor(value: Any) -> dict[str, Any]:
    array = np.asarray(value)
    dtype = "string" if array.dtype == object else as_dtype(array.dtype).string
    flat = [one.decode() if isinstance(one, bytes) else one for one in array.reshape(-1).tolist()]
    return {"dtype": dtype, "shape": list(array.shape), "values": flat}
