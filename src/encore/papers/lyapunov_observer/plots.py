"""Figures of training, certificates, estimation and coverage from tables and arrays."""

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from encore.core.figures import COLORS, MUTED, new_figure

METHODS = {
    "two_stage": ("two-stage", COLORS[0]),
    "lmi_only": ("LMI only", COLORS[1]),
    "point_only": ("point-only", COLORS[2]),
    "direct_sdp": ("direct SDP", COLORS[3]),
}
TITLES = {"x29": "X-29A, LON_UA", "pendulum": "pendulum"}


def training_figure(curves, clocks=None, times=None):
    """lambda_max of every seed over iterations, or over seconds with ``clocks``; one panel per data set.

    curves, clocks: {data set: {"method/rate/seed": values}}; times: rows with ``sdp_seconds``.
    """
    figure, panels = new_figure(3.6 * len(curves), 3.1, 1, len(curves), squeeze=False, sharey=True)
    for axes, (dataset, runs) in zip(panels[0], curves.items(), strict=True):
        for name in sorted(runs):
            method, rate, _ = name.split("/")
            label, color = METHODS[method]
            style = {"lw": 1.5, "alpha": 0.85} if rate == "given" else {"lw": 0.8, "ls": "--"}
            x = np.arange(len(runs[name])) if clocks is None else clocks[dataset][name]
            axes.plot(x, runs[name], color=color, **style)
            axes.plot(x[-1], runs[name][-1], "o", ms=3.5, color=color)
        for method in ("two_stage", "lmi_only"):
            label, color = METHODS[method]
            axes.plot([], [], color=color, label=label)
        axes.plot([], [], color=MUTED, lw=0.8, ls="--", label="step x 5")
        axes.axhline(0, color=MUTED, lw=0.8)
        axes.set(title=TITLES.get(dataset, dataset), xscale="log")
        axes.set_yscale("symlog", linthresh=0.03)
        if clocks is None:
            axes.set_xlim(left=1)
        axes.set_xlabel("LMI iterations" if clocks is None else "seconds, stage 1 included")
    if times is not None:
        _sdp_marks(panels[0], curves, times)
    panels[0, 0].set_ylabel("largest eigenvalue of H")
    lines, labels = panels[0, -1].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=5, fontsize=8)
    return figure


def _sdp_marks(panels, curves, times):
    rows = times[times["metric"] == "sdp_seconds"]
    for axes, dataset in zip(panels, curves, strict=True):
        for solver, style in (("CLARABEL", ":"), ("SCS", "-.")):
            mine = rows[(rows["dataset"] == dataset) & (rows["solver"] == solver)]
            if len(mine):
                note = "" if mine["finished"].min() else ", cut off"
                axes.axvline(
                    mine["value"].median(), color=METHODS["direct_sdp"][1], ls=style, lw=1.2,
                    label=f"SDP, {solver}{note}",
                )  # fmt: skip


def certificates_figure(table):
    """Condition number and ultimate bound of every valid certificate, by system and net."""
    rows = table[
        (table["metric"].isin(["condition", "bound", "valid"])) & table["method"].isin(METHODS)
    ]
    rows = rows[rows["method"] != "point_only"]
    wide = rows.pivot_table(
        index=["system", "net", "role", "method", "seed"], columns="metric", values="value"
    ).reset_index()
    groups = sorted({(r.role != "main", r.role, r.system, r.net) for r in wide.itertuples()})
    figure, panels = new_figure(7.4, 0.42 * len(groups) + 1.1, 1, 2, sharey=True)
    for axes, metric, label in (
        (panels[0], "condition", "condition number of P"),
        (panels[1], "bound", "ultimate bound of the scaled error"),
    ):
        for line, (_, role, system, net) in enumerate(groups):
            mine = wide[(wide["system"] == system) & (wide["net"] == net) & (wide["valid"] == 1)]
            for shift, method in enumerate(("two_stage", "lmi_only", "direct_sdp")):
                some = mine[mine["method"] == method]
                axes.plot(
                    some[metric], np.full(len(some), line + 0.22 * (shift - 1)), "o", ms=4.5,
                    color=METHODS[method][1], alpha=0.85,
                    mfc="white" if role == "other" else METHODS[method][1],
                )  # fmt: skip
        axes.set(xscale="log", xlabel=label)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    counts = [_count(wide, system, net) for _, _, system, net in groups]
    names = [f"{s}, {n}  {c}" for (_, _, s, n), c in zip(groups, counts, strict=True)]
    panels[0].set_yticks(range(len(groups)), names)
    panels[0].invert_yaxis()
    for method in ("two_stage", "lmi_only", "direct_sdp"):
        panels[1].plot([], [], "o", ms=4.5, color=METHODS[method][1], label=METHODS[method][0])
    figure.legend(loc="outside upper right", ncols=3, fontsize=8)
    return figure


def _count(wide, system, net):
    mine = wide[(wide["system"] == system) & (wide["net"] == net)]
    return f"({int(mine['valid'].sum())}/{len(mine)})"


def strategies_figure(table, datasets):
    """Estimation error and success of each training strategy: seeds as points, medians as bars."""
    figure, panels = new_figure(7.4, 3.0, 1, 2)
    shown = table[table["role"] == "main"]
    for axes, metric, label in (
        (panels[0], "estimation_mse", "mean squared estimation error"),
        (panels[1], "success_rate", "share of successful trials"),
    ):
        ticks, names = [], []
        for block, dataset in enumerate(datasets):
            for place, (method, (name, color)) in enumerate(METHODS.items()):
                x = block * (len(METHODS) + 1) + place
                mine = shown[(shown["dataset"] == dataset) & (shown["method"] == method)]
                values = mine[mine["metric"] == metric]["value"].dropna().to_numpy()
                ticks.append(x)
                names.append(name)
                if len(values):
                    jitter = np.linspace(-0.16, 0.16, len(values))
                    axes.plot(x + jitter, values, "o", ms=3.8, color=color, alpha=0.8)
                    axes.plot([x - 0.32, x + 0.32], [np.median(values)] * 2, color=color, lw=2.2)
            axes.text(
                block * (len(METHODS) + 1) + 1.5, 1.02, TITLES.get(dataset, dataset),
                transform=axes.get_xaxis_transform(), ha="center",
            )  # fmt: skip
        axes.set_xticks(ticks, names, rotation=35, ha="right")
        axes.set_ylabel(label)
    panels[0].set_yscale("log")
    panels[1].set_ylim(-0.04, 1.04)
    return figure


def coverage_figure(table, balls):
    """The ring with certified balls of the first samples, and coverage over the number of samples."""
    from matplotlib.collections import EllipseCollection

    figure, panels = new_figure(7.4, 3.1 * len(balls), len(balls), 2, squeeze=False)
    for (left, right), (dataset, data) in zip(panels, balls.items(), strict=True):
        inner, outer = data["ring"]
        width = 2 * data["radii"]
        discs = EllipseCollection(
            width, width, np.zeros_like(width), units="xy", offsets=data["samples"],
            transOffset=left.transData, facecolors=COLORS[4], alpha=0.25, linewidths=0,
        )  # fmt: skip
        left.add_collection(discs)
        angle = np.linspace(0, 2 * np.pi, 200)
        for radius in (inner, outer):
            left.plot(radius * np.cos(angle), radius * np.sin(angle), color=COLORS[6], lw=1)
        left.set(xlim=(-1.12 * outer, 1.12 * outer), ylim=(-1.12 * outer, 1.12 * outer))
        left.set(aspect="equal", xlabel="scaled rate error", ylabel="disturbance error")
        left.set_title(f"{TITLES.get(dataset, dataset)}: {len(width)} certified balls")
        rows = table[(table["dataset"] == dataset) & (table["method"] == "least_radius")]
        parts = {
            m: rows[rows["metric"] == m].sort_values("samples")
            for m in ("log10_uncovered", "covered_fully", "coverage_bound")
        }
        low = parts["log10_uncovered"]
        right.plot(
            low["samples"], 10 ** low["value"], "o-", ms=3, color=COLORS[1], label="uncovered share"
        )
        right.set(yscale="log", xlabel="sampled states T", ylabel="uncovered share of the ring")
        twin = right.twinx()
        twin.grid(visible=False)
        for metric, label, style in (
            ("covered_fully", "all covered, observed", {"color": COLORS[0]}),
            ("coverage_bound", "all covered, bound", {"color": COLORS[6], "ls": "--"}),
        ):
            twin.plot(parts[metric]["samples"], parts[metric]["value"], label=label, **style)
        twin.set(ylim=(-0.03, 1.03), ylabel="probability")
        twin.spines["right"].set_visible(True)
        lines = [*right.get_lines(), *twin.get_lines()]
    labels = [line.get_label() for line in lines]
    figure.legend(lines, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure
