"""The first cases of the campaigns on files, what ops decode, and kills find nothing; `dev.py campaigns` runs many."""

import sys
from importlib.util import find_spec

import pytest
from tools.campaigns import checkpoints, decoding, kills, saved_models
from tools.campaigns.campaign import Case, run_campaign


@pytest.mark.parametrize(
    ("name", "case", "count"),
    [
        ("checkpoints", checkpoints.case, 40),
        ("saved_models", saved_models.case, 8),
        pytest.param(
            *("decoding", decoding.case, 500),
            marks=pytest.mark.skipif(not find_spec("PIL"), reason="Pillow writes its images"),
        ),
        pytest.param(
            *("kills", kills.case, 4),
            marks=pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork"),
        ),
    ],
)
def test_the_first_cases(name: str, case: Case, count: int) -> None:
    report = run_campaign(name, case, 0, 600, iter(range(count)), 1)
    assert report.findings == {}
    assert report.outcomes.total() == count
