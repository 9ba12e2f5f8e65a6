"""`opkernel doctor`: the environment of opkernel, and the state of its plugins."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import numpy as np
from google.protobuf.internal import api_implementation

import opkernel
from opkernel.cli.files import InputFile, InputFileType
from opkernel.cli.meta_graph_needs import INITIALIZATION, RESTORE, MetaGraphNeeds
from opkernel.cli.model import Model, load_model
from opkernel.cli.nodes import nodes_of
from opkernel.cli.output import (
    WrongUse,
    abridged,
    bad,
    counted,
    echo,
    good,
    json_option,
    one_line,
    print_json,
    print_table,
    print_text,
)
from opkernel.cli.program_graph import print_program, program_facts
from opkernel.cli.show_graph import print_runnable, running_facts
from opkernel.device.allocation import current_allocation_limit
from opkernel.device.device_factory import PROVIDED
from opkernel.device.local_device import new_devices
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.gradients.registry import notes_on_gradients_of_no_op
from opkernel.graph import Graph
from opkernel.kernel import registered_providers, validate_kernel_registrations
from opkernel.kernel.missing_extras import MissingExtra, extras_for_speed
from opkernel.kernel.registry.kernel_registry import kernels_of_no_op
from opkernel.opdef import global_op_registry
from opkernel.plugins import API_VERSION, Plugin, contents_of, load_plugins
from opkernel.runtime.engines.engine import engine_named, registered_engines


@click.command()
@click.argument("model", required=False, type=InputFileType())
@click.option("--tag_set", metavar="TAG,...", help="Take the MetaGraph with exactly these tags.")
@click.option("--signature_def", metavar="NAME", help="Say whether this signature can run.")
@json_option
@click.pass_context
def doctor(
    context: click.Context,
    model: InputFile | None,
    tag_set: str | None,
    signature_def: str | None,
    as_json: bool,
) -> None:
    """Report the environment and all plugins; with MODEL, whether the model can run in this environment.

    Every plugin is loaded. Exit status 1 says that one is broken, was refused, or has kernels that
    can never be chosen, or that tie with another.

    Of MODEL the command reports ops that cannot run, and extras of opkernel that are missing. Exit status 1 says
    that the model cannot run. Of a SavedModel, that is the default signature, or that of --signature_def.
    """
    if model is not None:
        _examine(context, Model(model, tag_set, signature_def), as_json)
        return
    for option, value in (("tag_set", tag_set), ("signature_def", signature_def)):
        if value is not None:
            raise WrongUse(f"--{option} goes with a MODEL")
    plugins = [_row(plugin) for plugin in load_plugins()]
    problems = _problems_of_kernels()
    environment = _environment()
    notes = [*kernels_of_no_op(), *notes_on_gradients_of_no_op()]
    if as_json:
        facts = {"environment": environment, "plugins": plugins, "problems": problems}
        print_json({**facts, "notes": notes})
    else:
        _print(environment, plugins, problems)
        for note in notes:
            print_text(f"Note: {note}.")
    if problems or any(plugin["error"] for plugin in plugins):
        context.exit(1)


def _examine(context: click.Context, model: Model, as_json: bool) -> None:
    """Report whether a model can run."""
    facts = _model_facts(model, load_model(model))
    missing, elsewhere = facts["not_runnable"], facts["elsewhere"]
    runs = facts["runs"] or facts
    problems = {op: why for op, why in missing.items() if op not in elsewhere}
    if as_json:
        print_json(facts)
    else:
        print_text(one_line(f"{facts['file']}: {facts['kind']}"))
        print_program(facts)
        print_runnable({**runs, "not_runnable": problems})
        for one in facts["faster_with"]:
            speed = MissingExtra(one["extra"], one["ops"], one["certain"])
            print_text(f"It {speed.sentence('runs faster with')}.")
        for op, why in problems.items():
            print_text(one_line(f"Problem: {op}: {why}"), fg="red")
        for op, needed_by in elsewhere.items():
            needed = abridged(needed_by) or "nothing"
            print_text(one_line(f"Note: {op}: {missing[op]} (needed by {needed})"))
    if problems or any(one["certain"] for one in runs.get("missing_extras", ())):
        context.exit(1)


def _model_facts(model: Model, graph: Graph) -> dict[str, Any]:
    """What of a model can run.

    Returns:
        `elsewhere` are the ops that cannot run and that the signature does without, with who needs them.
    """
    nodes = [node for _, node in nodes_of(graph)]
    facts = {
        "file": str(model),
        "kind": str(model.kind),
        **running_facts(graph, nodes),
        "faster_with": [one.as_json() for one in extras_for_speed(nodes)],
        "runs": None,
        "elsewhere": {},
    }
    if model.is_saved_model:
        needs = MetaGraphNeeds(model.meta_graph)
        facts |= program_facts(model.meta_graph, graph, model.signature_name, needs)
    if facts["runs"]:
        used = {op: needs.uses_in_short(op)["needed_by"] for op in facts["not_runnable"]}
        facts["elsewhere"] = {
            op: parts
            for op, parts in used.items()
            if op not in facts["runs"]["not_runnable"] and not {INITIALIZATION, RESTORE} & {*parts}
        }
    return facts


def _environment() -> dict[str, Any]:
    return {
        "opkernel": opkernel.__version__,
        "api": API_VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "numpy": np.__version__,
        "blas": _blas(),
        "ml_dtypes": version("ml_dtypes"),
        "protobuf": version("protobuf"),
        "protobuf_implementation": api_implementation.Type(),
        "memory_limit": current_allocation_limit(),
        "devices": [device.name for device in new_devices({}, asked=PROVIDED.names())],
        "kernel_providers": [one.name for one in registered_providers() if one.is_available()],
        "engines": _engines(),
        "ray": _ray(),
    }


def _ray() -> str | None:
    """The version of Ray, on which clusters run; None where it is not installed."""
    with suppress(PackageNotFoundError):
        return version("ray")
    return None


def _engines() -> list[str]:
    """The engines that sessions can have."""
    found = []
    for name in registered_engines():
        with suppress(UnimplementedError):
            engine_named(name).check_installed()
            found.append(name)
    return found


def _blas() -> str:
    """The library that NumPy multiplies matrices with."""
    built: Any = np.show_config(mode="dicts")
    found = built.get("Build Dependencies", {}).get("blas", {})
    return " ".join(str(found[key]) for key in ("name", "version") if found.get(key)) or "unknown"


def _row(plugin: Plugin) -> dict[str, Any]:
    contents = contents_of(plugin)
    is_well = plugin.error is None
    of_providers = [len(one.kernels.registrations()) for one in contents.providers]
    return {
        "plugin": plugin.name,
        "version": plugin.version,
        "api": plugin.api,
        "found": plugin.found,
        "ops": sorted(contents.ops) if is_well else [],
        "kernels": len(contents.kernels) + sum(of_providers) if is_well else 0,
        "milliseconds": round(plugin.seconds * 1e3, 1),
        "error": plugin.problem,
    }


def _problems_of_kernels() -> list[str]:
    """The faults of registered kernels, a sentence for each."""
    try:
        validate_kernel_registrations(global_op_registry())
    except InvalidArgumentError as error:
        return error.message.splitlines()
    return []


def _print(environment: dict[str, Any], plugins: list[dict[str, Any]], problems: list[str]) -> None:
    shown = {
        **environment,
        "memory_limit": f"{environment['memory_limit'] / 2**30:.1f} GiB for one tensor",
        "devices": ", ".join(environment["devices"]),
        "kernel_providers": ", ".join(environment["kernel_providers"]),
        "engines": ", ".join(environment["engines"])
        or "none: pip install 'opkernel[openvino,xla]'",
        "ray": environment["ray"] or "none: pip install 'opkernel[ray]'",
    }
    rows = [(name.replace("_", " "), value) for name, value in shown.items()]
    print_table("Environment", ("name", "value"), rows)
    if plugins:
        columns = ("plugin", "version", "api", "found", "ops", "kernels", "ms", "state")
        rows_of_plugins = [
            (
                *(row[name] for name in columns[:4]),
                len(row["ops"]),
                row["kernels"],
                row["milliseconds"],
                bad("broken") if row["error"] else good("well"),
            )
            for row in plugins
        ]
        print_table(counted(len(plugins), "plugin"), columns, rows_of_plugins)
    else:
        echo("No plugins")
    told = [f"Plugin '{row['plugin']}': {row['error']}" for row in plugins if row["error"]]
    for problem in (*told, *problems):
        print_text(f"Problem: {problem}", fg="red")
