"""Without Ray, what needs it says what to install; nothing else needs it."""

import subprocess
import sys

import pytest

from opkernel.distributed import RayCluster
from opkernel.errors import UnimplementedError


def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnimplementedError, match=r"pip install 'opkernel\[ray\]'"):
        RayCluster({"worker": 1})


def test_ray_is_imported_where_it_is_used() -> None:
    code = "import sys, opkernel.distributed as d; d.RayCluster, d.predict, d.Saver; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
