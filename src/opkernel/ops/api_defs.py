"""How the Python functions of ops differ from their OpDefs: `api_defs.pbtxt`, an ApiDefs message."""

import functools
from pathlib import Path

from opkernel.proto import ApiDef, ApiDefs


def python_api_def(op: str) -> ApiDef | None:
    """The ApiDef of an op for Python; None where its function is as its OpDef says."""
    return _api_defs().get(op)


@functools.cache
def _api_defs() -> dict[str, ApiDef]:
    from google.protobuf import text_format  # slow to import

    text = Path(__file__).with_name("api_defs.pbtxt").read_text()
    return {op.graph_op_name: op for op in text_format.Parse(text, ApiDefs()).op}
