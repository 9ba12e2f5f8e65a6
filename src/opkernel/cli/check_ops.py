"""`opkernel test`: test the kernels and gradients of ops on calls that are drawn from the ops' declarations."""

from __future__ import annotations

import fnmatch
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opkernel.cli.completion import complete_ops
from opkernel.cli.files import OutputPath
from opkernel.cli.nodes import has_wildcards
from opkernel.cli.options import import_library
from opkernel.cli.output import (
    WrongUse,
    counted,
    echo,
    json_option,
    one_line,
    print_json,
    print_text,
)
from opkernel.cli.registered import find_op, no_such_op
from opkernel.errors import DeadlineExceededError, InvalidArgumentError, OpError
from opkernel.gradients.registry import notes_on_gradients_of_no_op
from opkernel.kernel import global_kernel_registry
from opkernel.kernel.registry.kernel_registry import kernels_of_no_op
from opkernel.opdef import global_op_registry
from opkernel.ops.loader import load_all_ops

if TYPE_CHECKING:
    from opkernel.testing import OpReport


@click.command("test")
@click.argument("modules", nargs=-1, metavar="[MODULE]...")
@click.option(
    "--op",
    "patterns",
    multiple=True,
    metavar="OP",
    shell_complete=complete_ops,
    help="An op to test; may have shell wildcards. Give it once for each.",
)
@click.option(
    "--calls",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many calls to run for each op.",
)
@click.option(
    "--save",
    type=OutputPath(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write each failing call here, as a GraphDef and as a pytest file.",
)
@json_option
def check_ops(
    modules: tuple[str, ...],
    patterns: tuple[str, ...],
    calls: int,
    save: Path | None,
    as_json: bool,
) -> None:
    """Test the kernels and gradients of ops, with nothing but the ops' declarations.

    Calls that an op's shape function accepts are drawn, and every kernel of the op is run on them:
    it must give the declared types and the inferred shapes, the same result twice, and that of the
    op's other kernels, and must not write to its inputs. A gradient that is registered must agree
    with finite differences at a fifth as many calls. The smallest failing call is printed.

    MODULE is a module or Python file that registers kernels; without --op all its ops are tested.
    """
    from opkernel.testing import examine_op  # of no use to the other commands

    names = [import_library(module) for module in modules]
    ops = _ops(names, patterns)
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", folder)  # else it is made here
        for op in ops:
            report = examine_op(op, max_examples=calls)
            reports.append(report)
            saved = _save(report, save, names) if save is not None else ""
            if not as_json:
                _print(report, max(map(len, ops)), saved)
    if as_json:
        print_json([_row(report) for report in reports])
    else:
        _print_sum(reports)
        for note in (*kernels_of_no_op(), *notes_on_gradients_of_no_op()):
            print_text(f"Note: {note}.")
    if any(r.failure for r in reports) or not any(r.ran for r in reports):
        raise click.exceptions.Exit(1)


def _ops(modules: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """The ops to test: the ops that patterns name, else all ops that modules have kernels for."""
    if not modules and not patterns:
        raise WrongUse("name what to test: --op OP, or a MODULE that registers kernels")
    kernels = global_kernel_registry().registrations()
    found = {op for pattern in patterns for op in _matching(pattern)}
    if not patterns:
        found = {one.kernel_def.op for one in kernels if _is_within(one.owner, modules)}
        found = {op for op in found if global_op_registry().knows(op)}
    if not found:
        notes = [f"; {note}" for note in kernels_of_no_op()]
        raise WrongUse(f"{', '.join(modules)} registers no kernel of an op{''.join(notes)}")
    return sorted(found)


def _matching(pattern: str) -> Iterable[str]:
    """The op of a name; or the ops with kernels that a pattern with shell wildcards fits."""
    if not has_wildcards(pattern):
        found = [pattern] if find_op(pattern) is not None else []
    else:
        load_all_ops()
        known = {one.kernel_def.op for one in global_kernel_registry().registrations()}
        found = fnmatch.filter(known, pattern)
    if not found:
        raise no_such_op(pattern)
    return found


def _save(report: OpReport, folder: Path, modules: Sequence[str]) -> str:
    """Write a failure; the result says where, or why not."""
    from opkernel.testing import save_failure

    if report.failure is None:
        return ""
    try:
        files = save_failure(report.failure, folder, modules)
    except DeadlineExceededError:
        raise
    except (InvalidArgumentError, OSError) as error:
        return f"cannot be saved: {error.message if isinstance(error, OpError) else error}"
    return f"saved as {' and '.join(map(str, files))}"


def _print(report: OpReport, width: int, saved: str) -> None:
    status = {"failed": "FAILED", "passed": "ok", "untested": "-"}[_status(report)]
    line = f"{status:<7} {one_line(report.op):<{width}}  {_details(report)}".rstrip()
    print_text(line, fg="red" if report.failure is not None else None)
    if report.failure is not None:
        lines = str(report.failure).split("\n")
        echo("\n".join(f"    {line}" for line in [*lines, *([saved] if saved else [])]))


def _details(report: OpReport) -> str:
    if report.failure is not None:
        return ""
    if report.why_untested:
        return f"not tested: {report.why_untested}"
    refused = f", {report.draws - report.ran:,} more refused" if report.draws > report.ran else ""
    kernels = f"{counted(report.kernels, 'kernel')}, {counted(report.ran, 'call')}{refused}"
    gradient = f"ok, {counted(report.gradients, 'call')}"
    if report.gradient_skipped:
        gradient = f"not checked: {report.gradient_skipped}"
    return f"{kernels}; gradient {gradient}"


def _print_sum(reports: Sequence[OpReport]) -> None:
    kinds = [_status(report) for report in reports]
    counts = {"passed": "passed", "failed": "failed", "untested": "not tested"}
    parts = [f"{kinds.count(kind):,} {text}" for kind, text in counts.items() if kind in kinds]
    print_text(f"{counted(len(reports), 'op')}: {', '.join(parts)}")


def _is_within(owner: str, modules: Sequence[str]) -> bool:
    return any(owner == module or owner.startswith(f"{module}.") for module in modules)


def _status(report: OpReport) -> str:
    if report.failure is not None:
        return "failed"
    return "passed" if report.ran and not report.skipped else "untested"


def _row(report: OpReport) -> dict[str, Any]:
    return {
        "op": report.op,
        "status": _status(report),
        "kernels": report.kernels,
        "calls": report.ran,
        "refused": report.draws - report.ran,
        "seconds": round(report.seconds, 3),
        "failure": None if report.failure is None else str(report.failure),
        "skipped": report.why_untested,
        "gradient_calls": report.gradients,
        "gradient_skipped": report.gradient_skipped,
    }
