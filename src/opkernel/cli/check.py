"""`opkernel check`: whether changed ops still take the graphs that were made for them."""

from collections.abc import Iterable
from pathlib import Path

import click

from opkernel.cli.check_formats import FORMATS
from opkernel.cli.check_report import CheckReport, Finding
from opkernel.cli.exit_status import WrongUse
from opkernel.cli.input_file import InputFile, InputFileType, input_file
from opkernel.cli.model import Model
from opkernel.cli.op_sources import OpSource, earlier_ops, ops_of_target
from opkernel.cli.output import echo
from opkernel.cli.progress import progress
from opkernel.errors import OpError
from opkernel.opdef import (
    NodeInGraph,
    OpChange,
    compare_with_history,
    impact_of_change,
    is_hit_by_change,
    nodes_of_graph_def,
)


@click.command()
@click.argument("names", nargs=-1, metavar="[TARGET]")
@click.option("--against", "reference", required=True, metavar="REF", help="The ops as they were.")
@click.option(
    "--graphs",
    "models",
    multiple=True,
    type=InputFileType(),
    metavar="MODEL...",
    help="Graphs in which to look for nodes that are hit.",
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="How to report.",
)
@click.option("--strict", is_flag=True, help="Fail also for changes that break only callers.")
@click.pass_context
def check(
    context: click.Context,
    names: tuple[str, ...],
    reference: str,
    models: tuple[InputFile, ...],
    format_name: str,
    strict: bool,
) -> None:
    """Check that changed ops still take the graphs that were made for them.

    TARGET has the ops as they are: a module or a Python file, which is imported, or a file with an
    OpList. Without it, `ops` of [tool.opkernel] in pyproject.toml names it.

    REF has them as they were: a git reference, or a file with an OpList or a history of ops. The
    rules are TensorFlow's. Exit status 1 says that graphs break.
    """
    target_name, *more_models = names or (_configured_target(),)
    models += tuple(_existing(text, is_wanted=bool(models)) for text in more_models)
    with progress(f"Checking {target_name}"):
        try:
            target = ops_of_target(target_name)
            before = earlier_ops(reference, target)
        except OpError as error:  # status 1 is for graphs that break
            raise WrongUse(f"{error.code.name}: {error.message}") from error
        report = _report(target, before, models)
    echo(FORMATS[format_name](report), nl=False)
    if report.breaks_graphs or (strict and report.findings):
        context.exit(1)


def _configured_target() -> str:
    import tomllib  # seldom needed

    try:
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
        target = project["tool"]["opkernel"]["ops"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        target = None
    if not isinstance(target, str):
        raise click.UsageError("which ops? Name a module or file, or set tool.opkernel.ops")
    return target


def _existing(text: str, *, is_wanted: bool) -> InputFile:
    """The file of an argument behind TARGET: the second model, or a further one."""
    if not is_wanted:
        raise click.UsageError(f"there is one TARGET, and '{text}' is a second")
    found = input_file(text)
    if found is None:
        raise click.UsageError(f"there is no file '{text}'")
    return found


def _report(target: OpSource, before: OpSource, models: Iterable[InputFile]) -> CheckReport:
    if not target.ops and not before.ops:
        raise WrongUse(f"'{target.name}' registers no ops")
    comparison = compare_with_history(before.ops, target.ops.newest())
    graphs = {str(model): list(nodes_of_graph_def(Model(model).graph_def())) for model in models}
    return CheckReport(
        target=target.name,
        reference=before.name,
        reference_is_missing=before.is_missing,
        ops=len(target.ops),
        added=comparison.added,
        changed=comparison.changed,
        findings=[_finding(change, target, before, graphs) for change in comparison.changes],
        graphs=list(graphs),
    )


def _finding(
    change: OpChange,
    target: OpSource,
    before: OpSource,
    graphs: dict[str, list[NodeInGraph]],
) -> Finding:
    hits = {
        model: [str(found) for found in nodes if is_hit_by_change(found, change)]
        for model, nodes in graphs.items()
    }
    file, line = target.sites.get(change.op, (target.file, 0))
    if change.new is None and before.module is not None:
        declared_in, _ = before.sites.get(change.op, (target.file, 0))
        file = declared_in if declared_in.is_file() else target.file
    return Finding(
        op=change.op,
        rule=change.rule,
        fact=change.fact,
        impact=impact_of_change(change),
        file=file,
        line=line,
        hits={model: nodes for model, nodes in hits.items() if nodes},
    )
