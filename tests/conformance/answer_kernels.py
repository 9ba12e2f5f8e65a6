"""Answers about kernels: declaring, registering and finding them, and memory types."""

import re
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from google.protobuf import text_format

import answer_graphs
import opkernel  # noqa: F401  # connects the global registries with the catalogue of ops
from opkernel.errors import NotFoundError, OpError
from opkernel.graph import Graph
from opkernel.kernel.node_properties import MemoryType
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.create import create_op_kernel
from opkernel.kernel.registry.kernel_def import KernelDefBuilder
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.lookup import (
    find_kernel_registration,
    kernels_registered_for_op,
    memory_types_for_node,
    supported_device_types_for_node,
)
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import GRAPH_DEF_VERSION, OpDefBuilder, OpRegistry, global_op_registry
from opkernel.proto import KernelDef, NodeDef
from opkernel.runtime import LocalDevice
from opkernel.runtime.placement.memory_types import ensure_memory_types, validate_memory_types
from opkernel.types import DataType

Query = dict[str, Any]

OK = {"ok": True}


def refusal(error: OpError) -> dict[str, Any]:
    """The status object of an error."""
    return {"ok": False, "error_code": error.code.name, "error_text": str(error)}


def kernel_def_build(request: dict[str, Any]) -> Any:
    """The KernelDef that the calls of a KernelDefBuilder make."""
    builder = KernelDefBuilder(request["op"])
    try:
        for method, *args in request["calls"]:
            if method == "AttrConstraint":
                attr, _, allowed = args
                builder.attr_constraint(attr, allowed)
            else:
                getattr(builder, _snake_case(method))(*args)
    except OpError as error:
        return refusal(error)
    return {"kernel_def": _text(builder.build())}


class Registries:
    """Fresh registries with the ops and kernels of a request, on top of the real ones."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.ops = OpRegistry()
        self.kernels = KernelRegistry()
        for op in request["ops"]:
            self.ops.register(_op_registration(op))
        own = set()
        for kernel in request["kernels"]:
            kernel_def = text_format.Parse(kernel["kernel_def"], KernelDef())
            own.add(kernel_def.op)
            self.kernels.register(KernelRegistration(kernel_def, kernel["class"], OpKernel))
        self.ops.set_loader(self._load_op)
        self.kernels.set_loader(lambda op: None if op in own else self._load_kernels(op))

    def _load_op(self, op: str) -> None:
        try:
            registration = global_op_registry().look_up(op)
        except NotFoundError:
            return
        self.ops.register(registration)

    def _load_kernels(self, op: str) -> None:
        for registration in reversed(global_kernel_registry().registrations_for(op)):
            self.kernels.register(registration)


def runtime(request: dict[str, Any]) -> Any:
    """One result for each query; `unsupported` where a query is of a kind not answered here."""
    if any(query["fn"] not in ANSWER_OF for query in request["queries"]):
        return {"unsupported": True}
    registries = Registries(request)
    results = []
    for query in request["queries"]:
        try:
            results.append(ANSWER_OF[query["fn"]](registries, query))
        except OpError as error:
            results.append({"status": refusal(error)})
    return {"results": results}


def find_kernel_def(registries: Registries, query: Query) -> Any:
    found = find_kernel_registration(
        query["device_type"], _node_def(query), registry=registries.kernels
    )
    return {"status": OK, "class": found.class_name, "kernel_def": _text(found.kernel_def)}


def supported_device_types(registries: Registries, query: Query) -> Any:
    supported = supported_device_types_for_node(
        query["prioritized"],
        _node_def(query),
        op_registry=registries.ops,
        registry=registries.kernels,
    )
    return {"status": OK, "device_types": [list(entry) for entry in supported]}


def kernels_registered(registries: Registries, query: Query) -> Any:
    return {"text": kernels_registered_for_op(query["op"], registry=registries.kernels)}


def create_kernel(registries: Registries, query: Query) -> Any:
    kernel = create_op_kernel(
        LocalDevice(query["device_type"], np),
        _node_def(query),
        op_registry=registries.ops,
        registry=registries.kernels,
        graph_def_version=query.get("version", GRAPH_DEF_VERSION),
    )
    return {
        "status": OK,
        "name": kernel.name,
        "type_string": kernel.type_string,
        "num_inputs": kernel.num_inputs,
        "num_outputs": kernel.num_outputs,
        "input_types": _types(kernel.input_types),
        "output_types": _types(kernel.output_types),
        "input_memory": _memory(kernel.input_memory_types),
        "output_memory": _memory(kernel.output_memory_types),
    }


def look_up_op(registries: Registries, query: Query) -> Any:
    return {"status": OK, "op_def": _text(registries.ops.look_up_op_def(query["op"]))}


def memory_types(registries: Registries, query: Query) -> Any:
    inputs, outputs = memory_types_for_node(
        registries.ops,
        query["device_type"],
        _node_def(query),
        registry=registries.kernels,
    )
    return {"status": OK, "input": _memory(inputs), "output": _memory(outputs)}


def validate_graph(registries: Registries, query: Query) -> Any:
    graph = answer_graphs.imported(registries, query)
    validate = partial(validate_memory_types, query["device_type"])
    return {"import": OK, "status": _checked(validate, graph, registries)}


def ensure_graph(registries: Registries, query: Query) -> Any:
    graph = answer_graphs.imported(registries, query)
    device_type = query["device_type"]
    ensure = partial(ensure_memory_types, device_type, query["device_name"])
    status = _checked(partial(ensure, tensor_numbers=count()), graph, registries)
    exported = graph.as_graph_def()
    exported.ClearField("versions")
    return {
        "import": OK,
        "status": status,
        "graph_def": _text(exported),
        "validate_after": _checked(partial(validate_memory_types, device_type), graph, registries),
    }


def _checked(check: Callable[..., None], graph: Graph, registries: Registries) -> Any:
    try:
        check(graph, registry=registries.kernels)
    except OpError as error:
        return refusal(error)
    return OK


ANSWER_OF: dict[str, Callable[[Registries, Query], Any]] = {
    "FindKernelDef": find_kernel_def,
    "SupportedDeviceTypesForNode": supported_device_types,
    "KernelsRegisteredForOp": kernels_registered,
    "CreateOpKernel": create_kernel,
    "LookUpOp": look_up_op,
    "MemoryTypesForNode": memory_types,
    "ValidateMemoryTypes": validate_graph,
    "EnsureMemoryTypes": ensure_graph,
    **answer_graphs.ANSWER_OF,
}


def _op_registration(op: dict[str, Any]) -> Any:
    builder = OpDefBuilder(op["name"])
    for method, *args in op["calls"]:
        getattr(builder, _snake_case(method))(*args)
    return builder.finalize()


def _node_def(query: Query) -> NodeDef:
    return text_format.Parse(query["node_def"], NodeDef())


def _snake_case(method: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()


def _text(message: Any) -> str:
    return text_format.MessageToString(message, as_one_line=True)


def _types(types: tuple[DataType, ...]) -> list[str]:
    return [dtype.string for dtype in types]


def _memory(memory: list[MemoryType] | tuple[MemoryType, ...]) -> list[str]:
    return [one.name.removesuffix("_MEMORY") for one in memory]
