"""Figures of measured times."""

import numpy as np

from encore.core.figures import COLORS, new_figure
from encore.papers.sparse_sos.plots import TITLES

METHODS = {
    "dense_kkt": ("dense KKT, LU", COLORS[1], "o"),
    "dense_cholesky": ("dense Newton, Cholesky", COLORS[5], "s"),
    "diffcp_dense": ("diffcp, dense", COLORS[3], "v"),
    "diffcp_lsqr": ("diffcp, lsqr", COLORS[4], "^"),
    "sparse": ("sparse", COLORS[0], "o"),
    "sparse_reuse": ("sparse, forward's factor reused", COLORS[2], "s"),
}


def backward_figure(timings):
    """Backward time over n for chained quartics; means over seeds, bars from least to largest seed."""
    rows = timings[(timings["metric"] == "backward_ms") & (timings["dataset"] == "chains")]
    figure, axes = new_figure(5.6, 3.9)
    means = {}
    for method, (label, color, marker) in METHODS.items():
        mine = rows[rows["method"] == method].groupby("size")["value"]
        mean, low, high = mine.mean(), mine.min(), mine.max()
        if mean.empty:
            continue
        means[method] = mean
        axes.errorbar(
            mean.index, mean, yerr=[mean - low, high - mean], fmt=f"{marker}-", ms=4, color=color,
            label=label, capsize=2,
        )  # fmt: skip
    for peer, shift in (("dense_kkt", 1.25), ("dense_cholesky", 0.62)):
        for n, value in means.get(peer, means["sparse"][:0]).items():
            ratio = value / means["sparse"][n]
            axes.text(
                n, value * shift, f"{ratio:.2g}×", ha="center", fontsize=7, color=METHODS[peer][1]
            )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="variables n",
        ylabel="backward of a certificate loss [ms]",
    )
    ticks = sorted(rows["size"].astype(int).unique())
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.legend(fontsize=7)
    return figure


def tasks_figure(metrics, timings, datasets):
    """Table of the tasks at their largest timed size."""
    cells = [_row(metrics, timings, name) for name in datasets]
    names = [
        "blocks",
        "largest",
        "moments",
        "forward",
        "sparse",
        "dense KKT",
        "Cholesky",
        "bound gap",
    ]
    figure, axes = new_figure(8.2, 0.34 * len(cells) + 0.9)
    axes.axis("off")
    table = axes.table(
        cellText=cells, colLabels=names, rowLabels=[TITLES[name] for name in datasets], loc="center"
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7.5)
    table.scale(1.0, 1.35)
    axes.set_title("largest laptop size of each task; times in ms", fontsize=9)
    return figure


def _row(metrics, timings, dataset: str) -> list[str]:
    mine = timings[(timings["dataset"] == dataset) & (timings["largest"] == 1)]

    def mean(metric: str, method: str) -> float:
        values = mine[(mine["metric"] == metric) & (mine["method"] == method)]["value"]
        return float(values.mean()) if len(values) else np.nan

    times = [mean("forward_ms", "forward")]
    times += [mean("backward_ms", m) for m in ("sparse", "dense_kkt", "dense_cholesky")]
    gap = metrics[(metrics["dataset"] == dataset) & (metrics["metric"] == "bound_gap")][
        "value"
    ].max()
    shape = [mean(name, "program") for name in ("blocks", "largest_block", "moments")]
    return [f"{v:.0f}" for v in shape] + [_text(v) for v in times] + [f"{gap:.1e}"]


def _text(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3g}"
