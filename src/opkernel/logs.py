"""Loggers, found when something is logged: most processes log nothing, and `logging` loads much."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger(name: str) -> Logger:
    """The logger of a name."""
    import logging

    return logging.getLogger(name)
