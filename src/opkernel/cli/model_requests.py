"""What a model would ask for when it runs: files to read and write, the network, Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opkernel.cli.meta_graph_needs import RESTORE, SAVE, MetaGraphNeeds, Use
from opkernel.cli.registered import find_op
from opkernel.opdef import global_op_registry
from opkernel.records import dataclass
from opkernel.types import DataType

_REQUESTS = {
    "reads_files": "read files",
    "writes_files": "write files",
    "uses_network": "use the network",
    "runs_python": "run Python",
}
"""What the ops with a trait ask for; those of TensorFlow that opkernel has no kernels for, too."""
_OWN = {RESTORE, SAVE}
_MAX_STEPS = 100


@dataclass(frozen=True)
class ModelRequest:
    """Nodes of an op that ask for something.

    Attributes:
        what: what they ask for.
        op: the op.
        nodes: the nodes; FUNCTION/NODE in functions.
        files: the names of files that stand in the model.
        needed_by: the parts of the model that need them.
    """

    what: str
    op: str
    nodes: list[str]
    files: list[str]
    needed_by: list[str]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        names = "what", "op", "nodes", "files", "needed_by"
        return {name: getattr(self, name) for name in names}


def model_requests(needs: MetaGraphNeeds) -> list[ModelRequest]:
    """What the nodes of a MetaGraph ask for.

    What only the Saver needs is left out: a model may read its own variables, and nobody asks it to save.
    So is what reads an asset of the model.
    """
    found: dict[str, ModelRequest] = {}
    for use in needs.uses({op for op in needs.ops() if _what(op)}):
        if use.needed_by and _OWN.issuperset(use.needed_by):
            continue
        files = _files(use)
        if files is None:
            continue
        op = use.node.op
        request = found.setdefault(op, ModelRequest(_what(op), op, [], [], []))
        request.nodes.append(use.place)
        request.files.extend(one for one in files if one not in request.files)
        request.needed_by.extend(one for one in use.needed_by if one not in request.needed_by)
    order = [*_REQUESTS.values()]
    return sorted(found.values(), key=lambda one: (order.index(one.what), one.op))


def _what(op: str) -> str:
    """What an op asks for; empty for most ops."""
    traits = global_op_registry().traits(op)
    return next((what for name, what in _REQUESTS.items() if getattr(traits, name)), "")


def _files(use: Use) -> list[str] | None:
    """The names in the model of the files that a node opens; None where it opens none but assets of the model."""
    traits = global_op_registry().traits(use.node.op)
    if traits.file_attr:
        value = use.node.attr[traits.file_attr]
        return _texts([one for one in (value.s, *value.list.s) if one]) or None
    if not (traits.reads_files or traits.writes_files):
        return []
    source = _source(use)
    if source in use.assets:
        return None
    node = use.nodes.get(source)
    return _texts(node.attr["value"].tensor.string_val) if node and node.op == "Const" else []


def _source(use: Use) -> str:
    """The node or argument that gives a node its first text, the name of its file; empty where none does."""
    op_def = find_op(use.node.op)
    args = zip(op_def.input_arg if op_def else (), use.node.input, strict=False)
    texts = (name for arg, name in args if arg.type == DataType.DT_STRING and not arg.is_ref)
    name = _node_name(next(texts, ""))
    for _ in range(_MAX_STEPS):
        node = use.nodes.get(name)
        if node is None or node.op != "Identity" or not node.input:
            break
        name = _node_name(node.input[0])
    return name


def _texts(texts: Iterable[bytes]) -> list[str]:
    return [text.decode("utf-8", "backslashreplace") for text in texts]


def _node_name(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
