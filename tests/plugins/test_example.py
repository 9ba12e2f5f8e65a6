"""The example in `examples/plugin`, installed as a user installs it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "plugin"


def installer() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if shutil.which("uv"):
        return ["uv", "pip", "install", "--python", sys.executable]
    pytest.skip("there is neither pip nor uv")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with the example installed in it."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, folder / "source")  # building leaves files behind
    target = folder / "site"
    command = [*installer(), "--quiet", "--no-deps", "--no-build-isolation", "--target", target]
    subprocess.run([*command, source], check=True, capture_output=True)
    return target


def run(site: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=EXAMPLE,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{site}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_op_is_found_without_importing_it(site: Path):
    code = "import opkernel; print(opkernel.raw_ops.GreatCircleDistance(start=[0., 0.], end=[0., 90.]))"
    assert float(run(site, "-c", code)) == pytest.approx(6371 * 3.14159265 / 2, rel=1e-6)


def test_the_command_knows_it(site: Path):
    assert "1 kernel" in run(site, "-m", "opkernel", "kernels", "GreatCircleDistance")
    doctor = run(site, "-m", "opkernel", "doctor")
    assert "great-circle 0.1.0" in doctor
    assert "well" in doctor


def test_its_own_tests_pass(site: Path):
    assert "passed" in run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE)
