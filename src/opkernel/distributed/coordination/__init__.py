"""The coordination service: which tasks there are and how they fare, barriers, values by key."""
