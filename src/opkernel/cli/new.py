"""`opkernel new`: a package with an op of one's own, ready to install and to test."""

import importlib.util
import keyword
import re
import sys
from pathlib import Path

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.cli.new_package import new_package, op_name
from opkernel.cli.output import echo, one_line
from opkernel.cli.output_path import OutputPath
from opkernel.ops.loader import all_op_names


@click.command()
@click.argument("name")
@click.option(
    "--into",
    type=OutputPath(file_okay=False, path_type=Path),
    default=".",
    metavar="DIR",
    help="Where the folder of the package is made; here without it.",
)
@click.option("--force", is_flag=True, help="Write into a folder that is there already.")
def new(name: str, into: Path, force: bool) -> None:
    """Write a package with an op, its shape function, a kernel, its gradient and tests.

    NAME is the package's, in lower case: `row_norm` has the op RowNorm. Once it is installed,
    opkernel finds the op by itself.
    """
    _check_name(name)
    folder = into / name
    if not force:
        _check_is_free(name, folder)
    try:
        for path, text in new_package(name):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            echo(one_line(file))
    except OSError as error:
        raise WrongUse(f"cannot write '{error.filename}': {error.strerror}") from error
    echo(f"Next: cd {one_line(folder)} && pip install -e '.[test]' && pytest")


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise WrongUse(f"'{name}' is no name for a package: it takes a word, or words_like_these")
    if name in sys.stdlib_module_names or name == "opkernel":
        raise WrongUse(f"'{name}' is the name of another module")
    if op_name(name) in all_op_names():
        raise WrongUse(f"there is an op {op_name(name)} already; '{name}' would declare it again")


def _check_is_free(name: str, folder: Path) -> None:
    if folder.exists():
        raise WrongUse(f"'{folder}' is there already (--force writes into it)")
    if importlib.util.find_spec(name) is not None:
        raise WrongUse(f"there is a module '{name}' already (--force does not mind)")
