"""`opkernel explain`: why a node of a model has its kernel, its device and its memory, and what runs in its place."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from opkernel.cli.completion import complete_nodes
from opkernel.cli.explain_nodes import (
    ExplainedGraph,
    explained_nodes,
    print_several,
    several_facts,
)
from opkernel.cli.explain_steps import Steps
from opkernel.cli.kernel_choice import Candidate, KernelChoice, asked_providers
from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.nodes import run_by, slim
from opkernel.cli.options import ModelCommand, device_count_option, model_options
from opkernel.cli.output import (
    WrongUse,
    echo,
    json_option,
    one_line,
    print_facts,
    print_table,
    print_text,
)
from opkernel.device.local_device import LocalDevice
from opkernel.errors import OpError
from opkernel.graph import Graph
from opkernel.kernel import REFERENCE, choose_providers, default_providers
from opkernel.kernel.registry.registration import DEFAULT_DEVICE_TYPE
from opkernel.opdef import add_defaults_to_node_def
from opkernel.runtime import CPU
from opkernel.runtime.placement.placer import DeviceSet, place_with_reasons
from opkernel.types import PartialTensorShape


@click.command(cls=ModelCommand)
@model_options(has_signature=True)
@click.argument("node", required=False, metavar="[NODE|OP]", shell_complete=complete_nodes)
@click.option("--device", default="", metavar="TYPE", help="The device to run it on.")
@device_count_option
@click.option(
    "--provider",
    "names",
    multiple=True,
    metavar="NAME",
    help="As for `run`: who computes the kernels; several are asked in turn.",
)
@click.option(
    "--jit",
    "engines",
    multiple=True,
    metavar="ENGINE",
    help="Without NODE: show the clusters for this engine; by default for all that are installed.",
)
@click.option(
    "--module",
    "is_module_asked",
    is_flag=True,
    help="Show the text of the StableHLO module that NODE calls (XlaCallModule), without large constants.",
)
@json_option
def explain(
    model: Model,
    node: str | None,
    device: str,
    counts: dict[str, int],
    names: Sequence[str],
    engines: tuple[str, ...],
    is_module_asked: bool,
    as_json: bool,
) -> None:
    """Explain why NODE of MODEL has its kernel, device and memory, and what would change that.

    Without NODE: which parts of MODEL engines would compile, how long steps take then, and why other nodes stay
    outside.

    Also shows what a step that fetches the outputs runs in place of NODE: plans are optimized, and call one
    kernel for what were several nodes.

    Of a SavedModel, steps run the program of a signature: variables that no node assigns to are constants, and
    functions are inlined. NODE is a node of this program, the end of its name, or a node of a function as
    FUNCTION/NODE. With the name of an OP instead, all nodes of the op are listed.
    """
    if node is None:
        _explain_clusters(model, engines, as_json)
        return
    with explained_nodes(model, node) as (explained, found):
        if is_module_asked:
            print_facts(_modules(explained, found), as_json, _print_modules)
            return
        with progress(f"Optimizing {model.name}"):
            steps = explained.steps(found, names)
        if len(found) > 1:
            facts = several_facts(explained, node, found, steps, device or CPU.device_type)
        else:
            facts = _node_facts(explained, found[0], steps, device, counts, names)
    print_facts(facts, as_json, _print if len(found) == 1 else print_several)


def _modules(explained: ExplainedGraph, found: Sequence[str]) -> dict[str, Any]:
    """The texts of the modules that nodes call, by node.

    Raises:
        WrongUse: a node calls none.
    """
    from opkernel.xla.stablehlo_reader import text_of  # JAX is rarely needed

    texts = {}
    for name in found:
        node_def = explained.nodes[name]
        if "module" not in node_def.attr:
            raise WrongUse(f"{name} is a {node_def.op}, which calls no module")
        texts[name] = text_of(node_def.attr["module"].s)
    return {"modules": texts}


def _print_modules(facts: dict[str, Any]) -> None:
    for name, text in facts["modules"].items():
        print_text(one_line(f"{name} calls this module:"), bold=True)
        print_text(text.rstrip())


def _node_facts(
    explained: ExplainedGraph,
    node: str,
    steps: Steps,
    device: str,
    counts: Mapping[str, int],
    names: Sequence[str],
) -> dict[str, Any]:
    graph = explained.graph
    node_def = slim(explained.nodes[node])
    ops = graph.function_library
    place, why = _place(graph, node, counts)
    device = device or (CPU.device_type if place is None else place.device_type)
    add_defaults_to_node_def(node_def, ops.look_up_op_def(node_def.op))
    providers = choose_providers(names) if names else default_providers()
    choice = KernelChoice(node_def, ops, device)
    runner = run_by(graph, node_def.op)
    asked = asked_providers(choice, providers, _shapes(graph, node)) if runner == "kernel" else []
    return {
        "node": node,
        "op": node_def.op,
        "requested_device": node_def.device,
        "device": device,
        "placed_on": None if place is None else place.name,
        "placed_because": why,
        "run_by": runner,
        "in_steps": explained.fate(steps, node),
        "kernel": None if choice.chosen is None else choice.chosen.registration.class_name,
        "error": choice.error,
        "provider": next((one.name for one in asked if one.is_chosen), None),
        "providers": [one._asdict() for one in asked],
        "kernels": [_candidate_facts(choice, one) for one in choice.candidates],
        "inputs": [port.as_json() for port in choice.inputs],
        "outputs": [port.as_json() for port in choice.outputs],
        "changes": choice.changes() if runner == "kernel" else [],
    }


def _explain_clusters(model: Model, engines: Sequence[str], as_json: bool) -> None:
    """Tell what engines make of a model."""
    from opkernel.cli.explain_engines import cluster_facts, print_clusters  # rarely asked for

    print_facts(cluster_facts(model, engines), as_json, print_clusters)


def _shapes(graph: Graph, name: str) -> list[PartialTensorShape] | None:
    """The shapes of a node's inputs, as far as known; None for a node of a function."""
    op = graph.by_name.get(name)
    return None if op is None else [tensor.shape for tensor in op.inputs]


def _place(graph: Graph, name: str, counts: Mapping[str, int]) -> tuple[LocalDevice | None, str]:
    """Where a node is in a session with soft placement, and why; or why it is nowhere."""
    devices = DeviceSet.of_session(counts, allow_soft_placement=True)
    try:
        for op, device, reason in place_with_reasons(graph.get_operations(), devices):
            if op.name == name:
                return device, reason
    except OpError as error:
        return None, error.message
    return None, "nodes of functions run where the function is called"


def _candidate_facts(choice: KernelChoice, one: Candidate) -> dict[str, Any]:
    kernel = one.kernel_def
    return {
        "kernel": one.registration.class_name,
        "module": one.registration.owner,
        "device": kernel.device_type,
        "label": kernel.label,
        "priority": kernel.priority,
        "host_memory": list(kernel.host_memory_arg),
        "chosen": one.is_chosen,
        "fits": not one.failing,
        "verdict": choice.verdict(one),
        "conditions": [condition.as_json() for condition in one.conditions],
    }


def _print(facts: dict[str, Any]) -> None:
    print_text(one_line(f"{facts['node']}: {facts['op']} on {facts['device']}"), bold=True)
    print_text(_summary(facts))
    where = facts["placed_on"] or "no device of its own"
    print_text(f"Sessions run it on {where}: {facts['placed_because']}.")
    told = facts["in_steps"]
    if told is not None:
        print_text(told["sentence"])
        for change in told["because"]:
            print_text(f"  {change}")
        for statement in told["statements"]:
            print_text(f"  {statement}", fg="cyan")
    for one in facts["kernels"]:
        echo()
        _print_kernel(one)
    if facts["providers"]:
        asked = [
            (p["name"], p["priority"], p["verdict"], ", ".join(p["prepares"]))
            for p in facts["providers"]
        ]
        echo()
        columns = ("name", "priority", "asked for the kernel", "prepares")
        print_table("Providers", columns, asked, ("priority",))
    for what in ("inputs", "outputs"):
        if facts[what]:
            echo()
            rows = [[*port.values()] for port in facts[what]]
            print_table(what.capitalize(), ("name", "type", "memory", "why"), rows)
    if facts["changes"]:
        echo("\nWhat would change the kernel:")
        for change in facts["changes"]:
            print_text(f"  {change}")


def _summary(facts: dict[str, Any]) -> str:
    """A sentence on how the node runs."""
    op, kernel = facts["op"], facts["kernel"]
    run_by = facts["run_by"]
    if run_by == "function":
        return f"{op} is a function of the graph: its body is run."
    if run_by == "executor":
        return f"{op} is part of how graphs are run: the executor does its work, no kernel."
    if kernel is not None:
        provider = facts["provider"]
        told = "" if provider in (REFERENCE, None) else f" The provider {provider} computes it."
        return f"It has the kernel {kernel}.{told}"
    if not facts["kernels"]:
        return f"It has no kernel: none is registered for {op}."
    if any(one["fits"] for one in facts["kernels"]):
        return f"It has no kernel: {facts['error'].splitlines()[0]}"
    if len(facts["kernels"]) == 1:
        return f"It has no kernel: the only one of {op} does not fit."
    return f"It has no kernel: none of the {len(facts['kernels'])} kernels of {op} fits."


def _print_kernel(one: dict[str, Any]) -> None:
    """Print a kernel with its conditions, a line each."""
    facts = [one["module"]] if one["module"] else []
    facts += [f"priority {one['priority']}"] if one["priority"] else []
    color = "green" if one["chosen"] else None if one["fits"] else "red"
    told = f" ({', '.join(facts)})" if facts else ""
    print_text(f"{one['kernel']}{told}: {one['verdict']}", fg=color)
    for condition in one["conditions"]:
        mark = "ok" if condition["holds"] else "no"
        value = f"{condition['subject']} = {condition['value'] or 'none'}{_wanted(condition)}"
        print_text(f"  {mark}  {value}", fg=None if condition["holds"] else "red")
        if "error" in condition:
            print_text(f"      {condition['error']}")


def _wanted(condition: dict[str, Any]) -> str:
    """The values that a kernel takes, where they are not just the node's own."""
    allowed = [str(value) or "none" for value in condition["allowed"]]
    if allowed == [condition["value"] or "none"]:
        return ""
    if allowed == [DEFAULT_DEVICE_TYPE] and condition["holds"]:
        return " (serves every device that has no kernel itself)"
    is_it = "" if condition["holds"] else "not "
    return f" ({is_it}{'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)})"
