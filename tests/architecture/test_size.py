"""The package stays small."""

from tests.architecture.source_code import PACKAGE

MAX_PACKAGE_BYTES = 8 << 20
"""What the package may take on disk; half of it is code."""


def test_the_package_stays_small() -> None:
    files = [
        file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    ]
    assert sum(file.stat().st_size for file in files) < MAX_PACKAGE_BYTES
