"""`opkernel history`: the successive definitions of ops in a file."""

import os
from pathlib import Path
from typing import Any

import click

from opkernel.cli.files import InputFile, InputFileType
from opkernel.cli.limits import progress
from opkernel.cli.op_sources import ops_of_target
from opkernel.cli.options import output_option
from opkernel.cli.output import counted, echo, json_option, print_json, print_table
from opkernel.opdef import (
    OpHistory,
    op_differences,
    read_op_history,
    refused_steps,
    write_op_history,
)


@click.command()
@click.argument("file", type=InputFileType(exists=False, dir_okay=False))
@click.option(
    "--add", "target", metavar="TARGET", help="Add the ops of a module, Python file or OpList."
)
@output_option(
    "--out",
    path_type=Path,
    writable=False,
    help="Where to write the history: binary for .pb, packed for .gz and .xz.",
)
@click.option(
    "--refused", is_flag=True, help="List the recorded changes that the rules of `check` refuse."
)
@json_option
def history(
    file: InputFile, target: str | None, out: Path | None, refused: bool, as_json: bool
) -> None:
    """Show how ops changed, from the history in FILE.

    FILE is an OpList, text or binary, in which the definitions of each op follow one another,
    oldest first. With --add, ops that are new or changed are appended, after the checks of
    `opkernel check`; FILE need not exist then. Nothing is written but to --out.
    """
    with progress(f"Reading {file.name}"):
        is_new = target is not None and not os.path.exists(file)
        ops = OpHistory() if is_new else read_op_history(file)
    if target is not None:
        found = ops.add(ops_of_target(target).ops.newest())
        rows = [{"op": op, "is": "new"} for op in found.added]
        rows += [{"op": op, "is": "changed"} for op in found.changed]
        _print_rows("new definition", rows, as_json)
    elif refused:
        _print_rows("refused change", _refused(ops), as_json)
    elif out is None:
        _print_rows("op", _rows(ops), as_json)
    if out is not None:
        write_op_history(ops, out)


def _rows(ops: OpHistory) -> list[dict[str, Any]]:
    rows = []
    for op in ops:
        revisions = [revision.op_def for revision in ops[op]]
        change = op_differences(*revisions[-2:]) if len(revisions) > 1 else ()
        rows.append({"op": op, "definitions": len(revisions), "last change": "; ".join(change)})
    return rows


def _refused(ops: OpHistory) -> list[dict[str, Any]]:
    return [
        {
            "op": change.op,
            "definition": list(ops[change.op]).index(revision) + 1,
            "line": revision.line,
            "rule": change.rule.value,
            "change": change.fact,
        }
        for revision, change in refused_steps(ops)
    ]


def _print_rows(what: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
    elif rows:
        print_table(counted(len(rows), what), tuple(rows[0]), [tuple(row.values()) for row in rows])
    else:
        echo(counted(0, what))
