"""Where a node was defined: the lines of the Python program that made it, where its file tells.

TensorFlow keeps them as `debug_info` of a GraphDef, by `NODE`, `NODE@` or `NODE@FUNCTION`.

Source: TensorFlow core/framework/graph_debug_info.proto, graph/graph_debug_info_builder.cc.
"""

from opkernel.proto import GraphDebugInfo
from opkernel.records import dataclass


@dataclass(frozen=True)
class SourceFrame:
    """A line of a program that was running when a node was made."""

    file: str
    line: int
    function: str
    code: str


def definition_of(info: GraphDebugInfo, node: str, function: str = "") -> list[SourceFrame]:
    """The lines that were running when a node was made, innermost first; empty where unknown."""
    keys = [f"{node}@{function}", *([] if function else [node])]
    for key in keys:
        if key in info.name_to_trace_id:
            trace = info.traces_by_id[info.name_to_trace_id[key]]
        elif key in info.traces:
            trace = info.traces[key]
        else:
            continue
        frames = [info.frames_by_id[number] for number in trace.frame_id]
        found = [_frame(info, one) for one in (*trace.file_line_cols, *frames)]
        return found[::-1]
    return []


def _frame(info: GraphDebugInfo, one: GraphDebugInfo.FileLineCol) -> SourceFrame:
    is_known = 0 <= one.file_index < len(info.files)
    file = info.files[one.file_index] if is_known else "an unknown file"
    return SourceFrame(file, one.line, one.func, one.code.strip())
