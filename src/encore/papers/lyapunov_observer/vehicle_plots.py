"""Figures of the simulations: success under mismatch, the quadrotor, the vortex street."""

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from encore.core.figures import COLORS, MUTED, new_figure
from encore.core.intervals import mean, share

NAMES = {
    "linear": "linear observer", "tiny": "network 3-3-3", "small": "network 32-64-32",
    "large": "large network", "eso": "ESO", "lqe": "LQE", "pid": "PID", "lander": "Neural Lander",
    "twisting": "super-twisting", "neural": "neural observer",
}  # fmt: skip
ORDER = ("pid", "lander", "eso", "lqe", "twisting", "neural")
COLOR = dict(zip(ORDER, (COLORS[i] for i in (5, 3, 1, 4, 2, 0)), strict=True))


def robustness_figure(table):
    """Bars of the success rate by mismatch, one panel for each data set."""
    rows = table[(table["metric"] == "success") & table["sigma"].notna()]
    panels = list(dict.fromkeys(rows["dataset"]))
    figure, axes = new_figure(3.6 * max(len(panels), 1), 3.2, cols=max(len(panels), 1), sharey=True)
    for axis, dataset in zip(np.ravel(axes), panels, strict=True):
        part = rows[rows["dataset"] == dataset]
        methods, sigmas = list(dict.fromkeys(part["method"])), sorted(set(part["sigma"]))
        width = 0.85 / len(methods)
        for m, method in enumerate(methods):
            cells = [part[(part["method"] == method) & (part["sigma"] == s)] for s in sigmas]
            found = [share(cell["value"].to_numpy()) for cell in cells]
            middle = np.array([e.effect for e in found])
            reach = [[e.effect - e.low for e in found], [e.high - e.effect for e in found]]
            place = np.arange(len(sigmas)) + (m - (len(methods) - 1) / 2) * width
            axis.bar(place, middle, 0.9 * width, label=NAMES[method], color=COLORS[m])
            axis.errorbar(
                place, middle, np.abs(reach), fmt="none", ecolor="#2b3138", elinewidth=0.8
            )
        axis.set(xticks=range(len(sigmas)), xlabel="relative mismatch σ", title=dataset)
        axis.set_xticklabels([f"{s:g}" for s in sigmas])
        axis.grid(axis="x", visible=False)
    np.ravel(axes)[0].set(ylabel="share of trials with |x| ≤ 3", ylim=(0, 1.02))
    figure.legend(
        *np.ravel(axes)[0].get_legend_handles_labels(), loc="outside lower center", ncols=3
    )
    return figure


def _dots(axis, table, dataset):
    """Tracking error of each method: seeds as ticks, mean with its 95 % interval in front."""
    rows = table[(table["metric"] == "tracking_rmse") & (table["dataset"] == dataset)]
    rows = rows.groupby(["method", "seed"], as_index=False)["value"].mean()
    methods = [m for m in ORDER if m in set(rows["method"])]
    for i, method in enumerate(methods[::-1]):
        value = rows.loc[rows["method"] == method, "value"].to_numpy()
        axis.plot(value, np.full(len(value), i), "|", color=COLOR[method], alpha=0.5, ms=9)
        found = mean(value)
        reach = [[found.effect - found.low], [found.high - found.effect]]
        axis.errorbar(found.effect, i, xerr=reach, fmt="o", color=COLOR[method], ms=6, mec="white")
    axis.set(xlabel="tracking error, RMS (mm)", yticks=range(len(methods)), xscale="log")
    axis.set_yticklabels([NAMES[m] for m in methods[::-1]])
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 5, 6)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())


def _first(paths, method):
    """Trials of the first candidate of a method."""
    return list(paths["methods"]).index(method)


def quadrotor_figure(table, paths):
    """Error of the height in a take-off and a landing; errors of all methods."""
    figure, axes = new_figure(8.4, 3.2, cols=3, width_ratios=[1, 1, 1.1])
    count = paths["position"].shape[2] // 2
    for axis, trial, title in ((axes[0], 0, "take-off"), (axes[1], count, "landing")):
        goal = paths["reference"][:, trial]
        for method in ("pid", "eso", "neural"):
            error = paths["position"][:, _first(paths, method), trial] - goal
            axis.plot(paths["time"], 1e3 * error, color=COLOR[method], label=NAMES[method], lw=1.1)
        axis.axhline(0, color=MUTED, lw=0.8)
        twin = axis.twinx()
        twin.plot(paths["time"], goal, color=MUTED, ls="--", lw=1.2)
        twin.set(ylim=(0, 1.3))
        twin.grid(visible=False)
        twin.spines["right"].set_visible(True)
        axis.set(xlabel="time (s)", title=title)
    axes[0].set(ylabel="height minus reference (mm)")
    twin.set(ylabel="reference height, dashed (m)")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=3)
    _dots(axes[2], table, "quadrotor")
    return figure


def auv_figure(table, paths, wake):
    """Paths over the vorticity of one moment; errors of all methods."""
    figure, axes = new_figure(8.4, 3.2, cols=2, width_ratios=[1.7, 1])
    cell, (x0, _, y0, _) = float(paths["cell"]), wake["window"]
    ny, nx = wake["vorticity"].shape
    shown = np.where(wake["solid"], np.nan, wake["vorticity"])
    box = np.array([-0.5 - x0, nx - 0.5 - x0, -0.5 - y0, ny - 0.5 - y0]) * cell
    image = axes[0].imshow(
        shown, origin="lower", extent=box, cmap="RdBu_r", vmin=-3, vmax=3, alpha=0.55
    )
    figure.colorbar(image, ax=axes[0], label="vorticity × diameter / speed", shrink=0.75)
    axes[0].contourf(
        *np.meshgrid(*(np.linspace(a, b, n) for a, b, n in ((*box[:2], nx), (*box[2:], ny)))),
        wake["solid"], levels=[0.5, 2], colors=["#5b6470"],
    )  # fmt: skip
    goal = paths["reference"][:, 0]
    for method in ("pid", "eso", "neural"):
        way = goal + 20 * (paths["position"][:, _first(paths, method), 0] - goal)
        axes[0].plot(*way.T, color=COLOR[method], label=NAMES[method], lw=1.1)
    axes[0].plot(*goal.T, color="#2b3138", ls="--", lw=1.2, label="reference")
    axes[0].set(xlabel="x (m)", ylabel="y (m)", title="one crossing, errors drawn 20 times larger")
    axes[0].set(xlim=(-0.7, 4.3), ylim=(-0.9, 2.7))
    axes[0].grid(visible=False)
    axes[0].legend(loc="upper right", fontsize=7, ncols=2)
    _dots(axes[1], table, "auv")
    return figure
