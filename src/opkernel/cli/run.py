"""`opkernel run`: compute tensors of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import click

from opkernel.cli.feeds import feeds_of, given_inputs, random_feeds
from opkernel.cli.files import OutputPath, check_directory
from opkernel.cli.limits import progress
from opkernel.cli.model import Model, load_model
from opkernel.cli.options import (
    ModelCommand,
    completed_by,
    fetch_option,
    jit_option,
    model_options,
    output_option,
)
from opkernel.cli.output import echo, echo_written, json_option, print_json, print_text
from opkernel.cli.results import (
    check_outdir,
    check_writable,
    write_npz,
    write_outdir,
    write_trace,
)
from opkernel.cli.run_steps import RunSteps, compiled_now, run_steps
from opkernel.cli.signature import (
    check_asked,
    find_fetches,
    interface_of,
)
from opkernel.errors import OpError
from opkernel.graph import Graph
from opkernel.graph.core.structural_ops import PLACEHOLDER_OPS
from opkernel.interrupts import contextmanager
from opkernel.opdef import UnregisteredOpError
from opkernel.runtime import Session

_OPTION_GROUPS = {
    "Model": ("--signature_def", "--tag_set", "--dir", "--library"),
    "Inputs": ("--input", "--random", "--inputs", "--input_exprs", "--input_examples", "--init"),
    "Outputs": ("--fetch", "--output", "--outdir", "--overwrite", "--json", "--color"),
    "Speed": ("--jit", "--provider", "--repeat", "--profile", "--trace", "--trace-format"),
    "Limits and permissions": (
        "--timeout",
        "--memory-limit",
        "--allow-read",
        "--allow-write",
        "--sanitize",
    ),
}


@click.command(cls=ModelCommand, option_groups=_OPTION_GROUPS)
@model_options(has_signature=True, runs=True)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=completed_by("complete_feeds"),
    help="Feed a tensor: NAME=@FILE.npy, NAME=@FILE.npz:KEY, or NAME=VALUE with the value as "
    "JSON. A string tensor takes plain text, or the bytes of any other @FILE. With --random also "
    "NAME:SHAPE, as x:8,224,224,3.",
)
@click.option(
    "--inputs",
    "files",
    multiple=True,
    metavar="NAME=FILE;...",
    help="As saved_model_cli: feed arrays of files, as x=a.npy;y=b.npz[key].",
)
@click.option(
    "--input_exprs",
    "expressions",
    multiple=True,
    metavar="NAME=EXPRESSION;...",
    help="As saved_model_cli: feed literals and NumPy's constructors, as x=np.ones((2, 3)).",
)
@click.option(
    "--input_examples",
    "examples",
    multiple=True,
    metavar="NAME=LIST;...",
    help="As saved_model_cli: feed serialized Examples, as x=[{'age': [22], 'name': ['a']}].",
)
@click.option(
    "--random",
    "is_random",
    is_flag=True,
    help="Feed what is not given with values drawn by type and shape; unknown sizes are 1.",
)
@fetch_option(help="A tensor to compute.", complete="complete_fetches")
@click.option(
    "--init",
    "initializers",
    multiple=True,
    metavar="NAME",
    help="Run this operation first, in a step of its own: one that sets variables.",
)
@output_option(
    "--output",
    metavar="FILE.npz",
    help="Write the results here, one array for each fetch under its tensor name.",
)
@click.option(
    "--outdir",
    type=OutputPath(file_okay=False),
    metavar="DIR",
    help="Write each result here as NAME.npy.",
)
@click.option("--overwrite", is_flag=True, help="With --outdir: replace files that are there.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    metavar="N",
    help="Run N steps and show what they took; with --jit auto, wait until the engines were tried.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="Print where the time of a step went: the slowest ops and nodes, and what is in clusters.",
)
@output_option(
    "--trace",
    envvar="OPKERNEL_TRACE",
    help="Write a trace of all nodes for ui.perfetto.dev; FILE.json: in Chrome's format.",
)
@click.option(
    "--trace-format",
    type=click.Choice(["perfetto", "chrome"]),
    help="The format of the trace, whatever the name of its file.",
)
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME",
    help="Who computes the kernels: numpy (the reference), blas, or another; several are asked in turn.",
)
@jit_option
@click.option("--sanitize", is_flag=True, help="Check how kernels use memory; slow.")
@json_option
def run(
    model: Model,
    inputs: tuple[str, ...],
    files: tuple[str, ...],
    expressions: tuple[str, ...],
    examples: tuple[str, ...],
    is_random: bool,
    fetches: tuple[str, ...],
    initializers: tuple[str, ...],
    output: str | None,
    outdir: str | None,
    overwrite: bool,
    repeat: int | None,
    profile: bool,
    trace: str | None,
    trace_format: str | None,
    providers: tuple[str, ...],
    jit: str,
    sanitize: bool,
    as_json: bool,
) -> None:
    """Compute tensors of MODEL, a GraphDef (.pb or .pbtxt), a SavedModel or a MetaGraph.

    The name x means the tensor x:0. Give --input and --fetch once for each tensor; without
    --fetch all outputs of the graph are computed.

    Inputs and outputs of a SavedModel are those of a signature. Its variables are restored and it is
    initialised first.
    """
    drawn = [text for text in inputs if is_random and "=" not in text]
    given = given_inputs(
        [text for text in inputs if text not in drawn], files, expressions, examples
    )
    check_writable(output)
    check_directory("--trace", trace)
    graph, open_session = open_model(model, sanitize=sanitize, providers=providers or None, jit=jit)
    interface = interface_of(model, graph)
    check_asked(model, interface, fetches)
    feeds = feeds_of(interface, given)
    asked = interface.fetches(fetches)
    if is_random:
        feeds |= random_feeds(interface, [*asked.values()], feeds, drawn)
    feeds |= interface.defaults(asked.values(), feeds)
    if outdir is not None:
        check_outdir(outdir, asked, overwrite)
    with _running(model, graph), open_session() as session:
        for name in initializers:
            session.run(find_fetches(session.graph, [name]), feeds)
        steps = run_steps(session, feeds, asked, repeat, profile or trace is not None)
    written = [] if outdir is None else write_outdir(outdir, steps.results)
    if output is not None:
        write_npz(output, steps.results)
    if trace is not None:
        write_trace(trace, trace_format, steps.traced)
    written += filter(None, (output, trace))
    told = {"has_times": repeat is not None, "has_profile": profile}
    if as_json:
        print_json(_as_json(steps, **told))
    else:
        _print(steps, written, has_values=output is None and outdir is None, **told)


def open_model(
    model: Model, **options: Any
) -> tuple[Graph, Callable[[], AbstractContextManager[Session]]]:
    """The graph of a model, and what makes a session with the values of its variables."""
    if not model.is_saved_model:
        graph = load_model(model)
        return graph, lambda: Session(graph, permissions=model.permissions, **options)
    loaded = model.session_model(**options)
    return loaded.graph, lambda: loaded.session


def _as_json(steps: RunSteps, *, has_times: bool, has_profile: bool) -> dict[str, Any]:
    """The results by name; where more was asked for they stand beside it, as `results`."""
    results = {result.name: result.as_json() for result in steps.results}
    if not (has_times or has_profile):
        return results
    from opkernel.cli.profile import StepProfile, times_as_json  # few ask for them

    found: dict[str, Any] = {"results": results}
    if has_times:
        found["steps"] = times_as_json(steps.seconds)
    if steps.trial is not None:
        found["auto"] = steps.trial.as_json()
    if has_profile:
        found["profile"] = StepProfile(steps.step_stats).as_json()
    return found


def _print(
    steps: RunSteps, written: Sequence[str], *, has_values: bool, has_times: bool, has_profile: bool
) -> None:
    """Print it all for people."""
    for result in steps.results:
        print_text(result.heading, bold=True)
        if has_values:
            echo(result.text())
    for path in written:
        echo_written(path)
    if not (has_times or has_profile):
        return
    from opkernel.cli.profile import StepProfile, print_times  # few ask for them

    if has_times:
        print_times(steps.seconds)
    if steps.trial is not None:
        print_text(steps.trial)
    if has_profile:
        StepProfile(steps.step_stats).print()


@contextmanager
def _running(model: Model, graph: Graph) -> Iterator[None]:
    """Show that the block runs the model. Its errors name options that help, and the nodes of an unknown op."""
    try:
        with progress(f"Running {model.name}", note=compiled_now):
            yield
    except UnregisteredOpError as error:
        if model.is_saved_model:
            from opkernel.cli.meta_graph_needs import name_uses

            name_uses(error, model)
        raise
    except OpError as error:
        if error.op in PLACEHOLDER_OPS and error.node is not None and "=VALUE" not in error.message:
            error.message += f": --input {error.node}=VALUE, or --random"
        if error.resource is not None:
            from opkernel.runtime.program.error_report import initializer_of  # rarely needed

            first = initializer_of(graph, error.resource)
            option = "" if first is None else f" (--init {first.name} runs that operation first)"
            error.message += option
        raise
