"""What `opkernel serve --replicas` says when it cannot; tests/distributed/ray has what it does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opkernel.cli.commands import commands
from opkernel.distributed import serve
from opkernel.errors import UnimplementedError


def test_without_ray_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        UnimplementedError, match=r"needs the library Ray: pip install 'opkernel\[ray\]'"
    ):
        serve(tmp_path)
    done = CliRunner().invoke(commands, ["serve", str(tmp_path), "--replicas", "2"])
    assert done.exit_code == 1
    assert "pip install 'opkernel[ray]'" in done.output


def test_replicas_need_a_port(tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["serve", str(tmp_path), "--replicas", "2", "--port", "0"])
    assert (done.exit_code, "--replicas needs a port" in done.output) == (2, True)
