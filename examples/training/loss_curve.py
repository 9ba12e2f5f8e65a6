"""Curves over steps as an SVG picture."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

WIDTH, HEIGHT, MARGIN = 720, 400, 48
COLOURS = ("#f4a261", "#1d3557")
WIDTHS = (5, 1.2)
TICKS = (10, 3, 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def loss_curve(losses: Mapping[str, Sequence[float]], window: int) -> str:
    """The losses of two trainings over each other, the first one wide and pale, as SVG.

    Each point is the mean of the last `window` steps; the axis of the losses is logarithmic.
    """
    steps = max(len(values) for values in losses.values())
    means = {name: _running_means(values, window) for name, values in losses.items()}
    top = max(max(values) for values in means.values())
    bottom = min(min(values) for values in means.values())

    def place(step: float, loss: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * step / max(steps - 1, 1)
        down = math.log(top / loss) / max(math.log(top / bottom), 1e-9)
        return round(x, 1), round(MARGIN + (HEIGHT - 2 * MARGIN) * down, 1)

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for tick in TICKS:
        if bottom <= tick <= top:
            parts += _rule(*place(0, tick), str(tick))
    for number, (name, values) in enumerate(means.items()):
        points = [place(step, loss) for step, loss in enumerate(values)]
        parts += _curve(name, points, number)
    caption = f"{steps} steps: the loss, on average over {window} of them"
    parts.append(_text(WIDTH / 2, HEIGHT - MARGIN / 3, caption, "middle"))
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">'
    )
    return "\n".join([opening, *parts, "</svg>\n"])


def _running_means(values: Sequence[float], window: int) -> list[float]:
    """For each value the mean of the last ones, itself included; at first there are fewer."""
    sums = np.cumsum([0.0, *values])
    first = np.maximum(np.arange(len(values)) - window + 1, 0)
    last = np.arange(len(values)) + 1
    means: list[float] = ((sums[last] - sums[first]) / (last - first)).tolist()
    return means


def _rule(x: float, y: float, label: str) -> Iterable[str]:
    """A horizontal line with its value."""
    yield f'<line x1="{x}" y1="{y}" x2="{WIDTH - MARGIN}" y2="{y}" stroke="#dddddd"/>'
    yield _text(x - 6, y + 4, label, "end")


def _curve(name: str, points: Iterable[tuple[float, float]], number: int) -> Iterable[str]:
    """A line through points, and its name at the upper right."""
    line = (
        f'fill="none" stroke="{COLOURS[number]}" stroke-width="{WIDTHS[number]}" '
        'stroke-linejoin="round"'
    )
    yield f'<polyline {line} points="{" ".join(f"{x},{y}" for x, y in points)}"/>'
    y = MARGIN + 20 * number
    yield f'<line x1="{WIDTH - 170}" y1="{y}" x2="{WIDTH - 140}" y2="{y}" {line}/>'
    yield _text(WIDTH - 132, y + 4, name, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'
