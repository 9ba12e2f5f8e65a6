"""Commands in a process that has none of the libraries that extras bring.

Standard input holds a JSON list of the commands' arguments; the output is a list of their statuses and what they print.
"""

import json
import sys

from click.testing import CliRunner


def new_runner() -> CliRunner:
    """A runner that keeps standard output and standard error apart; click 8.1 has to be asked for that."""
    try:
        return CliRunner(mix_stderr=False)  # type: ignore[call-arg]  # gone in click 8.2
    except TypeError:
        return CliRunner()


def main() -> None:
    from opkernel.libraries import EXTRA_OF

    for module in (*EXTRA_OF, "safetensors", "google_crc32c"):
        sys.modules[module] = None  # type: ignore[assignment]  # so that importing it fails
    from opkernel.cli.commands import commands

    found = []
    for arguments in json.load(sys.stdin):
        done = new_runner().invoke(commands, arguments)
        found.append((done.exit_code, done.stdout, done.stderr))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
