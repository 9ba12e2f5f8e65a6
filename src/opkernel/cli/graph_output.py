"""`--output` of the commands that write a graph."""

from pathlib import Path

import click

from opkernel.cli.output_path import OutputPath

output_graph_option = click.option(
    "--output",
    "-o",
    required=True,
    type=OutputPath(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the graph here; as text where the name ends in .pbtxt.",
)
