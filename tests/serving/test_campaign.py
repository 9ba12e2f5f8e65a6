"""The first cases of the campaign on the server find nothing; `dev.py campaigns` runs many."""

from tools.campaigns import serving
from tools.campaigns.campaign import run_campaign


def test_the_first_cases() -> None:
    report = run_campaign("serving", serving.case, 0, 600, iter(range(60)), 1)
    assert report.findings == {}
    assert report.outcomes.total() == 60
