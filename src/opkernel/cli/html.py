"""`opkernel show --html`: a page with the drawing of a model, and the times of a profile in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.input_file import InputFile, InputFileType
from opkernel.cli.model import Model, load_model
from opkernel.cli.output import echo, one_line, size_text
from opkernel.cli.output_path import OutputPath
from opkernel.cli.progress import progress
from opkernel.errors import InvalidArgumentError, UnavailableError
from opkernel.escaping import json_value

Command = TypeVar("Command", bound=Callable[..., Any])


def html_options(command: Command) -> Command:
    """Add `--html` and `--profile` to a command."""
    html = click.option(
        "--html",
        type=OutputPath(dir_okay=False, writable=True, path_type=Path),
        metavar="FILE",
        help="Write a page with the drawing of the graph here, to be searched in a browser.",
    )
    profile = click.option(
        "--profile",
        type=InputFileType(dir_okay=False),
        metavar="FILE",
        help="With --html: times for the drawing, from `opkernel run --profile --json > FILE`, or a "
        "trace of `opkernel run --trace FILE.json`.",
    )
    return html(profile(command))


def write_page(model: Model, html: Path | None, profile: InputFile | None) -> None:
    """Write the page of a model.

    Raises:
        WrongUse: there is a profile, but no page for it.
        OpError: as `load_graph`.
        InvalidArgumentError: the profile is none.
        UnavailableError: the page cannot be written.
    """
    if html is None:
        raise WrongUse("--profile is for the drawing: add --html FILE")
    from opkernel.drawing import html_page  # few ask for it

    seconds = None if profile is None else _seconds_of(profile)
    graph = load_model(model)
    with progress(f"Drawing {model.name}"):
        text = html_page(graph, model.name, seconds)
    try:
        html.write_text(text, "utf-8")
    except OSError as error:
        raise UnavailableError(f"Cannot write {html}: {error.strerror or error}") from error
    echo(f"written to {one_line(html)}, {size_text(len(text.encode()))}")


def _seconds_of(path: InputFile) -> dict[str, float]:
    """How long nodes took in a step, by name."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json_value(file.read())
        if "traceEvents" in found:
            return _of_trace(found["traceEvents"])
        rows = found["profile"]["nodes"]
        return {str(row["node"]): float(row["ms"]) / 1e3 for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{path} is no profile: it must be what `opkernel run --profile --json` prints, or a trace "
            f"that `opkernel run --trace FILE.json` writes"
        ) from error


def _of_trace(events: list[dict[str, Any]]) -> dict[str, float]:
    """The times of the nodes of a trace in Chrome's format; in the mean of its steps."""
    steps = sum("args" not in event and event.get("ph") == "X" for event in events) or 1
    seconds: dict[str, float] = {}
    for event in events:
        if event.get("ph") == "X" and "node" in event.get("args", {}):
            name = str(event["args"]["node"])
            took = float(event["args"].get("kernel ns", 1e3 * float(event["dur"])))
            seconds[name] = seconds.get(name, 0.0) + took / 1e9 / steps
    return seconds
