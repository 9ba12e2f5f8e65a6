"""`opkernel predict`: a model mapped over a data set."""

from __future__ import annotations

import os
import re
from typing import Any

import click

from opkernel.cli.input_file import InputFile, InputFileType
from opkernel.cli.library import imported_libraries
from opkernel.cli.model import Model
from opkernel.cli.model_options import ModelCommand, jit_option, model_options
from opkernel.cli.output import abridged, counted, echo, json_option, one_line, print_json
from opkernel.cli.output_path import OutputPath
from opkernel.cli.progress import progress
from opkernel.cli.row_count import RowCount
from opkernel.distributed import Predictions
from opkernel.distributed import predict as map_model


def _image_size(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """A height and a width: 224x224."""
    if value is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", value)
    if found is None:
        raise click.BadParameter(f"'{value}' is no height and width such as 224x224", ctx, param)
    return int(found[1]), int(found[2])


@click.command(cls=ModelCommand)
@model_options(has_signature=True, runs=True)
@click.argument("data", metavar="IN", type=InputFileType())
@click.argument("output", metavar="OUT", type=OutputPath(file_okay=False))
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    metavar="N",
    help="Give the model N rows at once.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    metavar="N",
    help="Compute in N processes, each with the model; by default in this one. With --ray, by N workers.",
)
@click.option("--ray", "on_ray", is_flag=True, help="Compute by the workers of a Ray cluster.")
@click.option(
    "--image-size",
    callback=_image_size,
    metavar="HEIGHTxWIDTH",
    help="Resize images.",
)
@jit_option
@click.option("--overwrite", is_flag=True, help="Delete what another run has written to OUT.")
@json_option
def predict(
    model: Model,
    data: InputFile,
    output: str,
    batch_size: int,
    concurrency: int | None,
    on_ray: bool,
    image_size: tuple[int, int] | None,
    jit: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Run MODEL on every row of IN, and write the outputs to the folder OUT.

    IN is an .npz file, a Parquet file, or a folder of such files or of images. The first axis of each array
    counts the rows; an image is a row.
    Each batch becomes a part-NNNNN.npz of OUT. The same command goes on where it was interrupted.

    Rows that fail are listed in failed.jsonl of OUT, and end the command with status 1.
    """
    with model.named():
        with progress(f"Loading {model.name}"):
            done = map_model(
                os.fspath(model.file),
                os.fspath(data),
                batch_size=batch_size,
                concurrency=concurrency,
                workers="ray" if on_ray else "processes",
                signature=model.signature_name,
                jit=jit,
                output=output,
                permissions=model.permissions,
                on_error="skip",
                tags=model.tags,
                libraries=imported_libraries(),
                overwrite=overwrite,
                image_size=image_size,
            )
        with done, progress(f"Predicting with {model.name}", RowCount(done)):
            for _ in done:
                pass
    if as_json:
        print_json(_report(output, done))
    else:
        _print(output, done)
    if done.skipped:
        raise click.exceptions.Exit(1)


def _report(output: str, done: Predictions) -> dict[str, Any]:
    return {
        "output": output,
        "rows": done.rows,
        "failed": len(done.skipped),
        "parts": done.batches,
        "computed": done.computed,
    }


def _print(output: str, done: Predictions) -> None:
    earlier = done.batches - done.computed
    told = f", {earlier} of an earlier run" if earlier else ""
    echo(
        f"{counted(done.rows, 'row')} in {counted(done.batches, 'part')}{told}: written to {one_line(output)}"
    )
    if done.skipped:
        rows = abridged(row for row, _, _ in done.skipped)
        echo(
            f"{counted(len(done.skipped), 'row')} failed ({rows}): failed.jsonl has the reasons",
            err=True,
        )
