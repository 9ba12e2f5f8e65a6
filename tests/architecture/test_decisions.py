"""Decisions are numbered without gaps; each says when it was taken, and whether it holds."""

import re
from pathlib import Path

DECISIONS = sorted((Path(__file__).parents[2] / "docs" / "decisions").glob("*.md"))
BEGINNING = re.compile(
    r"# (?P<number>\d+)\. \S.*\n\n\d{4}-\d\d-\d\d\. (Accepted|Replaced by decision \d+)\.\n\n"
)


def test_each_decision_has_its_number_a_date_and_a_status():
    beginnings = [BEGINNING.match(path.read_text()) for path in DECISIONS]
    assert [path.name for path, found in zip(DECISIONS, beginnings, strict=True) if not found] == []
    numbers = [int(found["number"]) for found in beginnings if found]
    assert numbers == [int(path.name[:4]) for path in DECISIONS] == [*range(1, len(numbers) + 1)]
