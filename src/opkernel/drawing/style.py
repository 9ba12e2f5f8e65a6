"""The style sheets and scripts of drawings, which are files beside this module."""

from __future__ import annotations

from importlib.resources import files

DARK_NOTEBOOKS = '[data-jp-theme-light="false"] .ok-graph, .vscode-dark .ok-graph'
"""The selector of drawings in notebooks that are dark."""


def style_sheet(dark: str) -> str:
    """The style sheet of drawings, with the selector of where they are dark."""
    return resource("drawing.css").replace("DARK", dark)


def dark_rule(selector: str) -> str:
    """The rule for dark drawings alone, for another selector."""
    text = resource("drawing.css")
    start = text.index("DARK")
    return text[start : text.index("}", start) + 1].replace("DARK", selector)


def resource(name: str) -> str:
    """The text of a file of the room."""
    return (files(__name__.rpartition(".")[0]) / name).read_text("utf-8")
