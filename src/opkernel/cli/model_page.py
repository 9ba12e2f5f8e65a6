"""What the page of a model draws: the programs of its signatures, with the bodies of the functions that they call in view.

What saves, restores and initialises the model is left out, unless all is asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from opkernel.cli.inlined_nodes import CallPaths, renamed, with_outputs, without_joints
from opkernel.cli.model import Model, load_model
from opkernel.cli.saved_model_facts import concrete_functions
from opkernel.cli.signature import (
    choose_signature,
    find_tensor,
    ports_of,
    signature_names,
)
from opkernel.drawing import DrawnProgram, drawn_functions, programs_of_graph
from opkernel.drawing.nodes import Node, NodeFacts, nodes_of_graph
from opkernel.errors import OpError
from opkernel.graph import FunctionBody, Graph, Operation, instantiate_function
from opkernel.graph.edit.inline_function import (
    ExpandInlineFunctionsOptions,
    InlineFunctionBodyOptions,
    OutputControlSource,
    expand_inline_functions,
)
from opkernel.graph.edit.simplify_graph import remove_dead_nodes
from opkernel.graph.edit.subgraph import copy_operations, prune_and_order
from opkernel.graph.io.signature_names import default_signature
from opkernel.proto import MetaGraphDef, NodeDef, SignatureDef

_MAX_DEPTH = 12
_MAX_INLINED = 300_000
"""No more is inlined once bodies have given so many operations."""
_MAX_FUNCTIONS = 12
_INLINING = ExpandInlineFunctionsOptions(
    multi_device_options=InlineFunctionBodyOptions(
        ignore_noinline=True,
        inline_impl_selection_group_functions=True,
        output_control_src=OutputControlSource.CONTROL_OUTPUTS,
    )
)


def drawn_programs(
    model: Model, seconds: Mapping[str, float], *, is_all: bool
) -> list[DrawnProgram]:
    """The programs of a model, the one to show first at the front.

    Args:
        model: the model.
        seconds: how long nodes take in a step, by name; a node in a function is named `call/node`.
        is_all: whether what saves and restores a SavedModel, and every function, is drawn.

    Raises:
        OpError: the nodes make no graph, or there is no such signature.
    """
    graph = load_model(model)
    if not model.is_saved_model:
        return programs_of_graph(graph, seconds)
    page = _SavedModelPage(model.meta_graph, graph, seconds)
    chosen = model.signature_name
    if chosen is not None:
        choose_signature(model.meta_graph, chosen)  # which is the error that there is none
    names = signature_names(model.meta_graph)
    default = default_signature(names)
    names.sort(key=lambda name: name != default)
    programs = page.signatures(names if chosen is None else [chosen])
    if chosen is None:
        programs += page.python_functions(is_all)
    if not programs or is_all:
        whole = programs_of_graph(graph, seconds, page.labels)
        return [*programs, *whole]
    programs += page.functions()
    programs[0].note = "without what saves and restores (--all draws it)"
    if seconds and all(node.seconds is None for one in programs for node in one.nodes):
        programs[0].note += ", the profile names none of these nodes"
    return programs


class _SavedModelPage:
    """Makes the programs of a MetaGraph.

    Attributes:
        labels: what people call the functions of the library.
    """

    def __init__(
        self, meta_graph: MetaGraphDef, graph: Graph, seconds: Mapping[str, float]
    ) -> None:
        self._meta_graph = meta_graph
        self._graph = graph
        self._seconds = seconds
        self._facts = NodeFacts(graph.function_library, with_kernels=True)
        self.labels = function_labels(meta_graph)
        self._inlined: set[str] = set()
        self._labelled = {name for _, name in concrete_functions(meta_graph)}
        self._reached: dict[str, None] = {}

    def signatures(self, names: Iterable[str]) -> list[DrawnProgram]:
        """The programs of signatures; the names of equal ones stand together."""
        found: dict[object, DrawnProgram] = {}
        for name in names:
            try:
                nodes = self._signature(self._meta_graph.signature_def[name])
            except OpError:  # it names what the graph lacks
                continue
            key = tuple((node.path, node.op, node.is_port) for node in nodes)
            if key in found:
                found[key].label += f", {name}"
            else:
                found[key] = DrawnProgram(name, nodes, "signature")
        return [*found.values()]

    def python_functions(self, is_all: bool) -> list[DrawnProgram]:
        """The functions that Python calls, without those that are in view already."""
        programs: list[DrawnProgram] = []
        for path, name in concrete_functions(self._meta_graph):
            is_new = name in self._graph.function_library and name not in self._inlined
            if is_new and (is_all or ("." not in path and len(programs) < _MAX_FUNCTIONS)):
                try:
                    body = instantiate_function(
                        self._graph.function_library, self._graph.function_library[name]
                    )
                except OpError:  # drawn with --all as it is
                    continue
                self._inlined.add(name)
                names = self._captured(name, body)
                nodes = renamed(self._nodes(body.graph, []), names)
                programs.append(DrawnProgram(path, nodes, "function"))
        return programs

    def _captured(self, name: str, body: FunctionBody) -> dict[str, str]:
        """The names of the variables that a function captures, by the names of its arguments."""
        objects = self._meta_graph.object_graph_def
        bound = objects.concrete_functions[name].bound_inputs
        arguments = body.arg_nodes[len(body.arg_nodes) - len(bound) :]
        return {
            argument.name: objects.nodes[number].variable.name
            for argument, number in zip(arguments, bound, strict=False)
            if 0 <= number < len(objects.nodes) and objects.nodes[number].variable.name
        }

    def functions(self) -> Iterator[DrawnProgram]:
        """The functions of the library that nodes in view call: bodies of loops and branches."""
        for name in self._reached:
            for node in self._graph.function_library[name].node_def:
                self._label_functions(node, node.name)
        yield from drawn_functions(
            self._graph, [*self._reached], self._facts, self._seconds, self.labels
        )

    def _label_functions(self, node: NodeDef, path: str) -> None:
        """Call the bodies of loops and branches by the nodes that call them: `decoder/while body`."""
        for attr, value in node.attr.items():
            named = {attr: value.func.name} if value.HasField("func") else {}
            named |= {f"{attr} {at}": one.name for at, one in enumerate(value.list.func)}
            for role, name in named.items():
                if not name.startswith("__inference") and name not in self._labelled:
                    self._labelled.add(name)
                    self.labels[name] = f"{path} {role}"

    def _signature(self, signature: SignatureDef) -> list[Node]:
        graph = self._graph
        inputs = {port.name: find_tensor(graph, port.tensor, "inputs")
                  for port in ports_of(signature.inputs)}  # fmt: skip
        outputs = {port.name: find_tensor(graph, port.tensor, "outputs")
                   for port in ports_of(signature.outputs)}  # fmt: skip
        feeds = [*dict.fromkeys(inputs.values())]
        program, fed = copy_operations(graph, prune_and_order(outputs.values(), [], feeds), feeds)
        ends = {
            name: fed[tensor] if tensor in fed else program.get_tensor_by_name(tensor.name)
            for name, tensor in outputs.items()
        }
        types = {end.op.name: end.op.type for end in ends.values()}
        labels = {fed[tensor].op.name: name for name, tensor in inputs.items()}
        nodes = self._nodes(program, [one.op for one in [*fed.values(), *ends.values()]])
        for node in nodes:
            if node.name in labels:
                node.path, node.is_port = labels[node.name], True
        return with_outputs(nodes, ends, types)

    def _nodes(self, graph: Graph, ends: Sequence[Operation]) -> list[Node]:
        """The nodes of a graph that its ends or effects need, with the bodies of functions in the places of calls."""
        calls = self._inline(graph, ends)
        with suppress(OpError):  # an op is not registered
            remove_dead_nodes(graph, ends)
        nodes = nodes_of_graph(graph, self._facts, self._seconds)
        library = graph.function_library
        self._reached |= dict.fromkeys(
            library.reachable_definitions([op.slim_node_def for op in graph]).keys()
        )
        paths = CallPaths(calls, self.labels)
        for op in graph:
            self._label_functions(op.slim_node_def, paths.path(op.name))
        kept = without_joints(nodes, calls)
        for node in kept:
            node.path = paths.path(node.name)
        return kept

    def _inline(self, graph: Graph, ends: Sequence[Operation]) -> dict[str, str]:
        """Inline the calls of a graph; the names of their functions, by the names of the calls."""
        calls: dict[str, str] = {}
        count = 0

        def consider(call: Operation, body: FunctionBody) -> bool:
            nonlocal count
            count += len(body.graph)
            if count > _MAX_INLINED:
                return False
            calls[call.name] = body.name
            return True

        for _ in range(_MAX_DEPTH):
            if not expand_inline_functions(graph, _INLINING, consider, ends):
                break
        self._inlined |= {*calls.values()}
        return calls


def function_labels(meta_graph: MetaGraphDef) -> dict[str, str]:
    """What people call the functions of a library: by their alias, the path of their object, or their plain name."""
    aliases = dict(meta_graph.meta_info_def.function_aliases)
    paths = {name: path for path, name in concrete_functions(meta_graph)}
    names = [function.signature.name for function in meta_graph.graph_def.library.function]
    labels = {name: aliases.get(name) or paths.get(name) or plain_name(name) for name in names}
    counts, seen = Counter(labels.values()), Counter[str]()
    for name, label in labels.items():
        seen[label] += 1
        if counts[label] > 1:
            labels[name] = f"{label} ({seen[label]})"
    return labels


_TRACED = re.compile(r"__(?:inference|forward|backward)_(signature_wrapper_)?(.+)_\d+")


def plain_name(function: str) -> str:
    """The name of a function without what TensorFlow adds: `__inference_step_42` is `step`."""
    found = _TRACED.fullmatch(function)
    if found is None:
        return function
    return f"{found[2]} (signature)" if found[1] else found[2]
