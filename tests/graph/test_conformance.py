"""TensorFlow's recorded answers about graphs and functions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ANSWER = Path(__file__).resolve().parents[1] / "conformance" / "answer.py"
NOT_YET = "OptimizeCSE"  # an optimisation pass of the runtime


@pytest.mark.shared
@pytest.mark.parametrize("area", ["graph", "function"])
def test_recorded_answers(area: str, shared: Path, tmp_path: Path) -> None:
    cases = (shared / "conformance" / f"{area}.jsonl").read_text().splitlines()
    chosen = [case for case in cases if NOT_YET not in case]
    assert len(chosen) >= 26
    assert all(json.loads(case)["area"] == "runtime" for case in chosen)
    selection = tmp_path / f"{area}.jsonl"
    selection.write_text("\n".join(chosen))
    compare = shared / "conformance" / "compare.py"
    result = subprocess.run(
        [sys.executable, compare, "--show", "5", selection, "--", sys.executable, ANSWER],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
