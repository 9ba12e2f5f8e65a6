"""`opkernel run`: compute tensors of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import click
import numpy as np

from opkernel.cli.feeds import feeds_of, given_inputs
from opkernel.cli.model import Model, load_model
from opkernel.cli.model_options import (
    ModelCommand,
    completed_by,
    fetch_option,
    jit_option,
    model_options,
)
from opkernel.cli.output import echo, json_option, one_line, print_json, print_text
from opkernel.cli.output_path import OutputPath
from opkernel.cli.progress import progress
from opkernel.cli.results import Result, check_outdir, check_writable, write_npz, write_outdir
from opkernel.cli.signature import (
    GraphInterface,
    check_asked,
    find_fetches,
    graph_inputs,
    interface_of,
)
from opkernel.cli.trace_file import TraceFormat, check_trace, write_trace
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import ARG_OPS
from opkernel.graph.edit.prune import prune_and_order
from opkernel.interrupts import contextmanager
from opkernel.opdef import UnregisteredOpError
from opkernel.proto import RunMetadata, StepStats
from opkernel.records import dataclass
from opkernel.runtime import RunOptions, Session
from opkernel.types import DataType, object_scalar


@click.command(cls=ModelCommand)
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
@click.option(
    "--output",
    type=OutputPath(dir_okay=False, writable=True),
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
    "--repeat", type=click.IntRange(1), metavar="N", help="Run N steps and tell what they took."
)
@click.option("--profile", is_flag=True, help="Print the slowest ops and nodes.")
@click.option(
    "--trace",
    type=OutputPath(dir_okay=False, writable=True),
    envvar="OPKERNEL_TRACE",
    metavar="FILE",
    help="Write a trace of all nodes for ui.perfetto.dev; FILE.json: in Chrome's format.",
)
@click.option(
    "--trace-format",
    type=click.Choice([one.value for one in TraceFormat]),
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
    if output is not None:
        check_writable(output)
    if trace is not None:
        check_trace(trace)
    graph, open_session = open_model(model, sanitize=sanitize, providers=providers or None, jit=jit)
    interface = interface_of(model, graph)
    check_asked(model, interface, fetches)
    feeds = feeds_of(interface, given)
    asked = interface.fetches(fetches)
    if is_random:
        feeds |= _random_feeds(interface, asked, feeds, drawn)
    feeds |= interface.defaults(asked.values(), feeds)
    if outdir is not None:
        check_outdir(outdir, asked, overwrite)
    with progress(f"Running {model.name}"), _errors_told(model, graph), open_session() as session:
        _initialize(session, feeds, initializers)
        is_traced = profile or trace is not None
        steps = _run(session, feeds, asked, repeat or 1, is_traced)
    written = _written(steps, outdir, output)
    if trace is not None:
        write_trace(trace, trace_format, steps.step_stats)
        written.append(trace)
    report = _Report(steps, written, output is None and outdir is None, repeat is not None, profile)
    if as_json:
        print_json(report.as_json())
    else:
        report.print()


def open_model(
    model: Model, **options: Any
) -> tuple[Graph, Callable[[], AbstractContextManager[Session]]]:
    """The graph of a model, and what makes a session with the values of its variables."""
    if not model.is_saved_model:
        graph = load_model(model)
        return graph, lambda: Session(graph, permissions=model.permissions, **options)
    loaded = model.session_model(**options)
    return loaded.graph, lambda: loaded.session


@dataclass(frozen=True)
class _Steps:
    """The results of the last step, and the time and statistics of each step."""

    results: list[Result]
    seconds: list[float]
    step_stats: list[StepStats]


@dataclass(frozen=True)
class _Report:
    """The printed account of steps."""

    steps: _Steps
    written: Sequence[str]
    has_values: bool
    has_times: bool
    has_profile: bool

    def as_json(self) -> dict[str, Any]:
        """The results by name; where more was asked for they stand beside it, as `results`."""
        results = {result.name: result.as_json() for result in self.steps.results}
        if not (self.has_times or self.has_profile):
            return results
        from opkernel.cli.profile import StepProfile, times_as_json  # few ask for them

        found: dict[str, Any] = {"results": results}
        if self.has_times:
            found["steps"] = times_as_json(self.steps.seconds)
        if self.has_profile:
            found["profile"] = StepProfile(self.steps.step_stats).as_json()
        return found

    def print(self) -> None:
        """Print it all for people."""
        for result in self.steps.results:
            print_text(result.heading, bold=True)
            if self.has_values:
                echo(result.text())
        for path in self.written:
            echo(f"written to {one_line(path)}")
        if not (self.has_times or self.has_profile):
            return
        from opkernel.cli.profile import StepProfile, print_times  # few ask for them

        if self.has_times:
            print_times(self.steps.seconds)
        if self.has_profile:
            StepProfile(self.steps.step_stats).print()


def _written(steps: _Steps, outdir: str | None, output: str | None) -> list[str]:
    """Write the results; the paths of the files."""
    written = [] if outdir is None else write_outdir(outdir, steps.results)
    if output is not None:
        write_npz(output, steps.results)
        written.append(output)
    return written


@contextmanager
def _errors_told(model: Model, graph: Graph) -> Iterator[None]:
    """Errors in the block name the option that sets a variable, and the nodes of an unknown op."""
    try:
        yield
    except UnregisteredOpError as error:
        if model.is_saved_model:
            from opkernel.cli.unknown_ops import name_uses

            name_uses(error, model)
        raise
    except OpError as error:
        if error.resource is not None:
            from opkernel.runtime.program.initializers import initializer_of  # rarely needed

            first = initializer_of(graph, error.resource)
            option = "" if first is None else f" (--init {first.name} runs that operation first)"
            error.message += option
        raise


def _initialize(session: Session, feeds: dict[Tensor, Any], names: Sequence[str]) -> None:
    """Run each of these operations in a step."""
    for name in names:
        session.run(find_fetches(session.graph, [name]), feeds)


def _random_feeds(
    interface: GraphInterface,
    asked: Mapping[str, Tensor | Operation],
    feeds: dict[Tensor, Any],
    inputs: Sequence[str],
) -> dict[Tensor, Any]:
    """Values for inputs that are not fed, of the shapes of `--input NAME:SHAPE`."""
    from opkernel.cli.random_feeds import random_feeds  # of use to few runs
    from opkernel.cli.shapes import given_shapes

    shapes = given_shapes(interface.input, inputs)
    return random_feeds(interface.graph, [*asked.values()], feeds, shapes)


def _run(
    session: Session,
    feeds: dict[Tensor, Any],
    asked: Mapping[str, Tensor | Operation],
    repeat: int,
    is_traced: bool,
) -> _Steps:
    """Compute these tensors; operations without outputs are run and give none."""
    fetches = [*asked.values()]
    _check_arguments_fed(session.graph, fetches, feeds)
    seconds, step_stats = [], []
    for _ in range(repeat):
        start = perf_counter()
        if is_traced:
            metadata = RunMetadata()
            options = RunOptions(trace_level=RunOptions.FULL_TRACE)
            values = session.run(fetches, feeds, options, metadata)
            step_stats.append(metadata.step_stats)
        else:
            values = session.run(fetches, feeds)
        seconds.append(perf_counter() - start)
    results = [
        Result(name, fetch.dtype.base, _array(value, fetch.dtype.base))
        for (name, fetch), value in zip(asked.items(), values, strict=True)
        if isinstance(fetch, Tensor)
    ]
    if is_traced:
        from opkernel.cli.profile import traced_seconds

        seconds = traced_seconds(step_stats)
    return _Steps(results, seconds, step_stats)


def _check_arguments_fed(
    graph: Graph, fetches: Sequence[Tensor | Operation], feeds: Mapping[Tensor, Any]
) -> None:
    """Raise InvalidArgumentError where an argument of a function's body is needed and not fed."""
    missing = [t for t in graph_inputs(graph) if t.op.type in ARG_OPS and t not in feeds]
    if not missing:
        return
    tensors = [one for one in fetches if isinstance(one, Tensor)]
    targets = [one for one in fetches if isinstance(one, Operation)]
    needed = {*prune_and_order(tensors, targets, [*feeds])}
    for tensor in missing:
        if tensor.op in needed:
            op = tensor.op
            raise InvalidArgumentError(
                f"You must feed a value for argument {op.attr['index'].i} of the function, "
                f"{op.name!r} with dtype {tensor.dtype.string}: --input {op.name}=VALUE",
                node=op.name,
                op=op.type,
            )


def _array(value: Any, dtype: DataType) -> np.ndarray[Any, Any]:
    """A value as an array; a string or handle by itself becomes one of rank 0."""
    if isinstance(value, np.ndarray) or dtype.numpy_dtype.kind != "O":
        return np.asarray(value)
    return object_scalar(value)
