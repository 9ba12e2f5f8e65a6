"""Answers recorded requests (../shared/conformance, ../shared/vectors) from the public API.

Reads one request a line on standard input, `{"id", "area", "request"}`, and writes one line for
each, `{"id", "answer"}`. The areas' answers stand in the `answer_*.py` modules beside this one.
"""

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

Answer = Callable[[dict[str, Any]], Any]

MODULE_OF_AREA = {
    "dtype": "answer_types",
    "attr_parse": "answer_opdef",
    "attr_summary": "answer_opdef",
    "attr_has_type": "answer_opdef",
    "attr_validate": "answer_opdef",
    "attr_equal": "answer_opdef",
    "attr_value": "answer_opdef",
    "op_build": "answer_opdef",
    "op_validate": "answer_opdef",
    "op_compat": "answer_opdef",
    "op_deprecation": "answer_opdef",
    "op_strip": "answer_opdef",
    "registry": "answer_opdef",
    "pbtxt": "answer_op_gen",
    "word_wrap": "answer_op_gen",
    "api_def": "answer_op_gen",
    "device_name": "answer_names",
    "tensor_name": "answer_names",
    "rendezvous_key": "answer_names",
    "canonicalize": "answer_names",
    "node_build": "answer_nodes",
    "node_validate": "answer_nodes",
    "shape_infer": "answer_shapes",
    "ctx_ops": "answer_shapes",
    "kernel_def_build": "answer_kernels",
    "runtime": "answer_kernels",
    "session": "answer_sessions",
    "op_call": "answer_op_calls",
    "op_sequence": "answer_op_calls",
}

UNSUPPORTED = {"unsupported": True}


def answer_for(area: str) -> Answer:
    """The function that answers the requests of an area."""
    name = MODULE_OF_AREA.get(area)
    if name is None:
        return lambda request: UNSUPPORTED
    answer: Answer = getattr(importlib.import_module(name), area)
    return answer


def main() -> None:
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = answer_for(case["area"])(case["request"])
        except ModuleNotFoundError:
            answer = UNSUPPORTED
        print(json.dumps({"id": case["id"], "answer": answer}), flush=True)


if __name__ == "__main__":
    main()
