"""Commands in a process that has none of the libraries that extras bring.

Standard input holds a JSON list of the commands' arguments; the output is a list of their statuses and what they print.
"""

import json
import sys

from click.testing import CliRunner


def main() -> None:
    from opkernel.libraries import EXTRA_OF

    for module in (*EXTRA_OF, "safetensors", "google_crc32c"):
        sys.modules[module] = None  # type: ignore[assignment]  # so that importing it fails
    from opkernel.cli.commands import commands

    found = []
    for arguments in json.load(sys.stdin):
        done = CliRunner().invoke(commands, arguments)
        found.append((done.exit_code, done.stdout, done.stderr))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
