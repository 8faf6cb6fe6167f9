"""One look for every figure, and SVG files that are the same bytes on every run."""

from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler

from encore.core.job import replacing

matplotlib.use("svg")
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "encore",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e3e5e8",
        "grid.linewidth": 0.7,
        "axes.edgecolor": "#5b6470",
        "axes.labelcolor": "#2b3138",
        "xtick.color": "#5b6470",
        "ytick.color": "#5b6470",
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "figure.facecolor": "white",
    }
)

# Okabe & Ito's colour-blind-safe set, the yellow (hard to see on white) last.
COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#2b3138", "#F0E442"]
MUTED = "#9aa3ad"
matplotlib.rcParams["axes.prop_cycle"] = cycler(color=COLORS)


def new_figure(
    width: float = 5.0, height: float = 3.2, rows: int = 1, cols: int = 1, **grid: Any
) -> Any:
    """A figure of ``width`` x ``height`` inches and its axes: one Axes, or an array if there are several."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, cols, **grid)


def band(axes: Any, x: Any, mean: Any, low: Any, high: Any, **style: Any) -> Any:
    """A line through ``mean`` with the interval from ``low`` to ``high`` shaded in its colour."""
    (line,) = axes.plot(x, mean, **style)
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.18, linewidth=0)
    return line


def save_svg(figure: Any, path: str | Path) -> None:
    """Write the figure as SVG; the same figure gives the same bytes."""
    with replacing(path) as part:
        figure.savefig(part, format="svg", metadata={"Date": None})
