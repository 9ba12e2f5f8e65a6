"""The first cases of the campaign of kills find nothing; `dev.py campaigns` runs more."""

import sys

import pytest
from tools.campaigns import batches
from tools.campaigns.campaign import run_campaign


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
def test_the_first_cases() -> None:
    report = run_campaign("batches", batches.case, 0, 600, iter(range(2)), 1)
    assert report.findings == {}
    assert report.outcomes.total() == 2
