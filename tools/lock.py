"""Write the lock files: the exact versions that `dev.py` installs, for every supported Python.

`python tools/lock.py python3.11 python3.12 python3.13` asks the pip of each interpreter to resolve
what `pyproject.toml` names, and merges the answers. A package whose version differs between them,
or which one of them does not need, gets an environment marker. The result is plain requirements
text, which any pip reads.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = PROJECT["build-system"]["requires"][0]
LOWEST = "requirements-lowest.lock"
TESTED_EXTRAS = ("checksums", "image", "numba", "safetensors", "scipy", "strings")
# The lowest versions are tested without any; TensorFlow's environment has no use for XLA and OpenVINO.
TENSORFLOW = "tensorflow-cpu==2.21.0"  # the release whose behaviour is the reference

Pins = dict[str, str]


def lock_files() -> dict[str, list[str]]:
    """What each lock file has to satisfy."""
    extras = PROJECT["project"]["optional-dependencies"]
    runtime = [*PROJECT["project"]["dependencies"], BUILD]
    dev = [name for name in extras["dev"] if not name.startswith("opkernel")]
    tested = [requirement for extra in TESTED_EXTRAS for requirement in extras[extra]]
    return {
        "requirements.lock": runtime,
        "requirements-dev.lock": [
            *runtime,
            *extras["test"],
            *dev,
            *tested,
            *extras["xla"],
            *extras["openvino"],
            *extras["keras"],
            *extras["serve"],
            *extras["ray"],
        ],
        "requirements-tensorflow.lock": [*runtime, *extras["test"], *tested, TENSORFLOW],
        LOWEST: [*map(lowest, PROJECT["project"]["dependencies"]), BUILD, *extras["test"]],
    }


def lowest(requirement: str) -> str:
    """`numpy>=2.0,<3` -> `numpy==2.0.*`."""
    return re.sub(r">=([\d.]+).*", r"==\1.*", requirement)


def resolve(python: str, requirements: list[str]) -> Pins:
    """The versions that the pip of `python` would install for `requirements`."""
    command = [python, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--only-binary=:all:", "--report=-", *requirements]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    found = (item["metadata"] for item in report["install"])
    return {item["name"].lower().replace("_", "-"): item["version"] for item in found}


def merge(pins_of_version: dict[str, Pins]) -> list[str]:
    """One line for each package and version, with a marker where not every Python wants it."""
    wanted: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for version, pins in pins_of_version.items():
        for pin in pins.items():
            wanted[pin].append(version)
    return [
        f"{name}=={release}" + marker(versions, list(pins_of_version))
        for (name, release), versions in sorted(wanted.items())
    ]


def marker(versions: list[str], every: list[str]) -> str:
    """An environment marker for `versions`, which are the oldest or the newest of `every`."""
    if versions == every:
        return ""
    if versions == every[: len(versions)]:
        return f' ; python_version < "{every[len(versions)]}"'
    if versions == every[-len(versions) :]:
        return f' ; python_version >= "{versions[0]}"'
    return " ; " + " or ".join(f'python_version == "{version}"' for version in versions)


def python_version(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return (
        subprocess.run([python, "-c", code], check=True, capture_output=True)
        .stdout.decode()
        .strip()
    )


def main() -> int:
    pythons = {python_version(python): python for python in sys.argv[1:]}
    if not pythons:
        print("usage: lock.py PYTHON..., oldest first", file=sys.stderr)
        return 2
    for name, requirements in lock_files().items():
        # The oldest releases come with no wheels for the newest Python.
        served = dict(list(pythons.items())[:1]) if name == LOWEST else pythons
        lines = merge({v: resolve(python, requirements) for v, python in served.items()})
        header = f"# Written by tools/lock.py for Python {', '.join(served)}; do not edit.\n"
        (ROOT / name).write_text(header + "\n".join(lines) + "\n")
        print(f"{name}: {len(lines)} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
