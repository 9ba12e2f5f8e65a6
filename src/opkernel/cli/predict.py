"""`opkernel predict`: a model mapped over a data set."""

from __future__ import annotations

import os
import re
import time
from collections import deque

import click

from opkernel.cli.files import InputFile, InputFileType, OutputPath
from opkernel.cli.limits import progress
from opkernel.cli.model import Model
from opkernel.cli.options import ModelCommand, imported_libraries, jit_option, model_options
from opkernel.cli.output import abridged, counted, echo, json_option, one_line, print_json
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
@click.option("--image-size", callback=_image_size, metavar="HEIGHTxWIDTH", help="Resize images.")
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

    IN is an .npz, .npy, Parquet, CSV, TSV or JSON lines file, or a folder of such files or of images. The first
    axis of each array counts the rows; an image is a row. CSV starts with the names of its columns.
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
        print_json(
            {
                "output": output,
                "rows": done.rows,
                "failed": len(done.skipped),
                "parts": done.batches,
                "computed": done.computed,
            }
        )
    else:
        _print(output, done)
    if done.skipped:
        raise click.exceptions.Exit(1)


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


_SHORTEST_BAR, _LONGEST_BAR = 8, 24
_LOOKS = 40
"""How many looks the rate is of; the first ones may be of parts that were there, or of processes that start."""


class RowCount:
    """Tells of predictions, each time it is asked: `: 320 of 1,000 rows, 2 failed, 64 rows/s, 11 s left`.

    Args:
        of: The predictions.
    """

    def __init__(self, of: Predictions) -> None:
        self._of = of
        self._seen: deque[tuple[float, int]] = deque(maxlen=_LOOKS)

    def __call__(self, room: int | None) -> str:
        """Look, and tell; with a bar where there is room for it."""
        rows, total, failed = self._of.rows, self._of.total, len(self._of.skipped)
        self._seen.append((time.monotonic(), rows))
        parts = [counted(rows, "row") if total is None else f"{rows:,} of {counted(total, 'row')}"]
        if failed:
            parts.append(f"{failed:,} failed")
        rate = self._rate()
        if rate:
            parts.append(f"{rate:,.0f} rows/s" if rate >= 10 else f"{rate:.2g} rows/s")
        if rate and total is not None:
            parts.append(f"{_duration((total - rows) / rate)} left")
        text = f": {', '.join(parts)}"
        width = min((room or 0) - len(text) - 3, _LONGEST_BAR)
        if not total or width < _SHORTEST_BAR:
            return text
        return f" [{('#' * (width * rows // total)).ljust(width, '-')}]{text}"

    def _rate(self) -> float:
        """Rows a second, over the last looks."""
        (first, before), (last, now) = self._seen[0], self._seen[-1]
        return (now - before) / (last - first) if last > first else 0


def _duration(seconds: float) -> str:
    """`42 s`, `3 min 5 s`, `2 h 7 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
