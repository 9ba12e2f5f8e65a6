#!/usr/bin/env python3
"""Set up this checkout and run its jobs; needs Python 3.11 or newer and nothing else.

    python3 dev.py demo              install, then classify real images with a TensorFlow graph
    python3 dev.py test [STAGE...]   install, then lint, types, floors, tests, and those on Ray (or some of them)
    python3 dev.py tensorflow        compare with a real TensorFlow, in an environment of its own
    python3 dev.py lowest            part of the tests with the oldest dependencies that are allowed
    python3 dev.py wheel             the documents' examples with the wheel, without the checkout
    python3 dev.py campaigns         six minutes of seeded random attacks (tools/campaigns)

Environments stand in `.venv*` and are filled from the `requirements*.lock` files. A second call
finds them up to date and starts at once. With `uv` on the PATH it does the installing.
"""

import sys

# Below this check nothing runs on an older Python, but the file has to parse there.
if sys.version_info < (3, 11):  # noqa: UP036 - this is the sentence such a user should read
    sys.exit(
        f"opkernel needs Python 3.11 or newer; this is Python {sys.version.split()[0]}.\n"
        f"Run dev.py with a newer one, for example: python3.12 dev.py {' '.join(sys.argv[1:])}"
    )

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
THIS_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
RUNTIME, DEV = "requirements.lock", "requirements-dev.lock"
PYTEST = ["-m", "pytest", "-q"]
# Ray has processes of its own, and wants the machine for itself.
WITHOUT_RAY = [*PYTEST, "--numprocesses=auto", "-m"]

# Name -> command, run with the environment's Python.
TEST_STAGES = {
    "lint": ["-m", "ruff", "check", "."],
    "format": ["-m", "ruff", "format", "--check", "."],
    "types": ["-m", "mypy"],
    "floors": [
        "-c",
        "from importlinter.cli import lint_imports_command as check; check(['--no-logo'])",
    ],
    "tests": [*WITHOUT_RAY, "not ray"],
    "ray": [*PYTEST, "-m", "ray"],
}
# Run only if named: for the Pythons beside the one that runs all tests.
PORTABILITY = {"portability": [*WITHOUT_RAY, "not thorough and not ray"]}
LOWEST = [*WITHOUT_RAY, "not ray and (not thorough or dependent)"]
BUILD_WHEEL = "from setuptools.build_meta import build_wheel; build_wheel('.')"
DIGITS = "examples/digits"
DEMO_COMMANDS = [
    ["show", f"{DIGITS}/digits.pb"],
    ["run", f"{DIGITS}/digits.pb", "--input", f"images=@{DIGITS}/images.npy", "--fetch", "digit:0"],
]


class SetupError(Exception):
    """The environment cannot be made; the message says what to do."""


class Environment:
    """A virtual environment of this checkout, filled from lock files.

    `.venv` belongs to the Python that made it first; another version of Python gets a folder with
    its number in the name, so the two do not undo each other's work.
    """

    def __init__(self, suffix: str = "") -> None:
        self.folder = ROOT / f".venv{suffix}"
        if self._version() not in (None, THIS_PYTHON):
            self.folder = ROOT / f".venv{suffix}-{THIS_PYTHON}"
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = self.folder / scripts / ("python.exe" if os.name == "nt" else "python")

    def _version(self) -> str | None:
        """The Python that the folder was made with, None where there is none."""
        try:
            text = (self.folder / "pyvenv.cfg").read_text()
        except OSError:
            return None
        lines = (line.partition("=") for line in text.splitlines())
        values = {key.strip(): value.strip() for key, _, value in lines}
        version = values.get("version") or values.get("version_info", "")
        return ".".join(version.split(".")[:2])

    def install(self, *requirements: str, name: str, with_package: bool = True) -> None:
        """Install requirements and this package, unless it was done before from the same files."""
        stamp = self.folder / f"installed-{name}.stamp"
        digest = self._digest(requirements)
        if self.python.exists() and stamp.exists() and stamp.read_text() == digest:
            return
        start = time.monotonic()
        print(f"==> installing {name} into {self.folder.name}", flush=True)
        self._create()
        self._pip(*requirements)
        if with_package:
            self._pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        stamp.write_text(digest)
        print(f"    installed in {time.monotonic() - start:.1f} s", flush=True)

    def install_wheel(self) -> None:
        """Build the wheel of this package, from a copy of its sources, and install it."""
        with tempfile.TemporaryDirectory(prefix="opkernel-wheel-") as name:
            sources = Path(name)
            shutil.copytree(ROOT / "src", sources / "src")
            for file in ("pyproject.toml", "README.md", "LICENSE"):
                shutil.copy(ROOT / file, sources)
            command = [str(self.python), "-c", BUILD_WHEEL]
            _checked(command, "cannot build the wheel", cwd=sources, stdout=subprocess.DEVNULL)
            (wheel,) = sources.glob("*.whl")
            self._pip("--no-deps", "--force-reinstall", str(wheel))

    def run(self, arguments: list[str]) -> int:
        """Run the environment's Python in the checkout and return its exit status."""
        command = [str(self.python), *arguments]
        return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode

    def _digest(self, requirements: tuple[str, ...]) -> str:
        """What the installed set depends on: what was asked, the files named, and the place."""
        files = [ROOT / "pyproject.toml", *(ROOT / r for r in requirements if r.endswith(".lock"))]
        parts = [str(self.folder), *requirements, *(file.read_text() for file in files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _create(self) -> None:
        if self.python.exists() and (shutil.which("uv") or self._has_pip()):
            return
        if shutil.which("uv"):
            command = ["uv", "venv", "--quiet", "--clear", "--python", sys.executable]
        else:
            _require_venv()
            command = [sys.executable, "-m", "venv", "--clear"]
        _checked([*command, str(self.folder)], f"cannot create {self.folder}")

    def _has_pip(self) -> bool:
        """False for a folder that uv made, or that a broken run left half made."""
        command = [str(self.python), "-c", "import pip"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _pip(self, *arguments: str) -> None:
        if shutil.which("uv"):
            command = ["uv", "pip", "install", "--quiet", "--python", str(self.python)]
        else:
            command = [str(self.python), "-m", "pip", "install", "--quiet"]
            command += ["--disable-pip-version-check", "--no-input"]
        _checked([*command, *arguments], "cannot install the packages (is PyPI within reach?)")


def _require_venv() -> None:
    missing = [m for m in ("venv", "ensurepip") if importlib.util.find_spec(m) is None]
    if missing:
        raise SetupError(
            f"this Python ({sys.executable}) comes without {' and '.join(missing)}.\n"
            f"On Debian and Ubuntu: apt install python{THIS_PYTHON}-venv\n"
            "Elsewhere: install uv (https://docs.astral.sh/uv), which needs neither."
        )


def _checked(command: list[str], problem: str, cwd: Path = ROOT, stdout: int | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, check=False)
    if done.returncode != 0:
        raise SetupError(f"{problem}: {' '.join(command)} ended with {done.returncode}")


def _stage(name: str, environment: Environment, arguments: list[str]) -> bool:
    """Run one stage and say how it went."""
    print(f"==> {name}", flush=True)
    start = time.monotonic()
    status = environment.run(arguments)
    verdict = "ok" if status == 0 else f"FAILED (exit status {status})"
    print(f"    {name}: {verdict}, {time.monotonic() - start:.1f} s", flush=True)
    return status == 0


def _requirement_files(*names: str) -> list[str]:
    return [part for name in names for part in ("--requirement", name)]


def demo() -> bool:
    """The main job: a trained TensorFlow graph on real images, with and without the command."""
    environment = Environment()
    environment.install(*_requirement_files(RUNTIME), name="runtime")
    done = _stage("demo", environment, [f"{DIGITS}/demo.py"])
    print("\nThe same from the command line:")
    for command in DEMO_COMMANDS:
        title = f"{environment.folder.name}/bin/opkernel {' '.join(command)}"
        done = _stage(title, environment, ["-m", "opkernel", *command]) and done
    return done


def test(*chosen: str) -> bool:
    """Every check, or the named ones; all of them run even where an early one fails."""
    every = TEST_STAGES | PORTABILITY
    unknown = [name for name in chosen if name not in every]
    if unknown:
        raise SetupError(f"no stage named {unknown[0]!r}; there are: {', '.join(every)}")
    environment = Environment()
    environment.install(*_requirement_files(RUNTIME, DEV), name="dev")
    stages = {name: every[name] for name in chosen or TEST_STAGES}
    failed = [name for name, command in stages.items() if not _stage(name, environment, command)]
    print(f"==> Python {THIS_PYTHON}: {'failed: ' + ', '.join(failed) if failed else 'all passed'}")
    return not failed


def tensorflow() -> bool:
    """The tests that compare with an installed TensorFlow."""
    environment = Environment("-tensorflow")
    environment.install(*_requirement_files("requirements-tensorflow.lock"), name="tensorflow")
    return _stage("comparison", environment, [*WITHOUT_RAY, "tensorflow"])


def lowest() -> bool:
    """The tests that other releases could break, with the oldest that pyproject.toml allows."""
    environment = Environment("-lowest")
    environment.install(*_requirement_files("requirements-lowest.lock"), name="lowest")
    return _stage("lowest versions", environment, LOWEST)


def wheel() -> bool:
    """What the documents show, by a user who has installed the wheel, its dependencies and no more."""
    environment = Environment("-wheel")
    environment.install(*_requirement_files(RUNTIME), name="wheel", with_package=False)
    environment.install_wheel()
    return _stage("examples of the documents", environment, ["tools/doc_examples.py"])


def campaigns() -> bool:
    """Random attacks on all of it, the same ones at every run; then calls that TensorFlow judges."""
    environment, judge = Environment(), Environment("-tensorflow")
    environment.install(*_requirement_files(RUNTIME, DEV), name="dev")
    judge.install(*_requirement_files("requirements-tensorflow.lock"), name="tensorflow")
    attack = ["-m", "tools.campaigns", "--seconds", "40", "--cases", "4000"]
    done = _stage("campaigns", environment, attack)
    for name in ("tensorflow", "pipelines_tensorflow", "composite_pipelines_tensorflow"):
        done = _stage(f"campaign {name}", judge, [*attack, name]) and done
    return done


JOBS: dict[str, Callable[..., bool]] = {
    "demo": demo,
    "test": test,
    "tensorflow": tensorflow,
    "lowest": lowest,
    "wheel": wheel,
    "campaigns": campaigns,
}


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in JOBS or (arguments[1:] and arguments[0] != "test"):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        return 0 if JOBS[arguments[0]](*arguments[1:]) else 1
    except SetupError as error:
        print(f"dev.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
