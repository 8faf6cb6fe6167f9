"""Figures of prat from the table of metrics and the arrays of trained networks."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection

from encore.core.figures import COLORS, MUTED, band, new_figure
from encore.core.intervals import mean
from encore.papers.prat.evaluation import strongest
from encore.papers.prat.methods import EGO, VANILLA

LABELS = {
    "mlp": "MLP", "gcn": "GCN", "gatv2": "GATv2", "gcn_ego": "GCN + ego", "gatv2_ego": "GATv2 + ego",
    "sage": "SAGE + ego", "fagcn": "FAGCN", "h2gcn": "H2GCN", "linkx": "LINKX", "riemannian": "Riemannian twin",
    "prat": "PRAT", "flow_riemannian": "twin (flow)", "flow_prat": "PRAT (flow)",
}  # fmt: skip
SHORT = {"chameleon_filtered": "chameleon", "squirrel_filtered": "squirrel"}
COLOR = {
    "prat": COLORS[0], "flow_prat": COLORS[4], "riemannian": COLORS[1], "flow_riemannian": COLORS[5],
    "gcn": COLORS[3], "gcn_ego": COLORS[2], "mlp": MUTED,
}  # fmt: skip
DATASETS = {
    "heterophilous": ("heterophilic benchmarks", COLORS[1], "o"),
    "planetoid_geomgcn": ("citation graphs", COLORS[0], "s"),
    "packaged": ("packaged small graphs", COLORS[2], "^"),
    "csbm": ("generated (cSBM)", MUTED, "."),
}


def graph_label(name: str) -> str:
    """How a graph is called in figures."""
    return SHORT.get(name, name.replace("_", " "))


def index_figure(table: pd.DataFrame) -> Any:
    """Index against homophily: from labels on the left, from the adjacency's spectrum on the right."""
    figure, panels = new_figure(7.6, 3.6, 1, 2, sharey=True)
    titles = {"labels": "from class affinities", "spectral": "from the adjacency's spectrum"}
    for axes, (method, title) in zip(panels, titles.items(), strict=True):
        rows = table[(table["metric"] == "index") & (table["method"] == method)]
        weak = _noisy(table) if method == "labels" else set()
        for dataset, (label, color, marker) in DATASETS.items():
            mine = rows[rows["dataset"] == dataset]
            if mine.empty:
                continue
            solid = ~mine["instance"].isin(weak)
            for shown, face in ((mine[solid], color), (mine[~solid], "none")):
                axes.scatter(
                    shown["h"], shown["value"], s=26, marker=marker, edgecolors=color, facecolors=face,
                    label=label if face == color else None, zorder=3,
                )  # fmt: skip
        real = rows[rows["dataset"] != "csbm"]
        _names(axes, real["h"], real["value"], real["graph"])
        axes.set(xlabel="edge homophily", title=title, xlim=(-0.02, 1.0), ylim=(-0.04, 1.08))
    panels[0].set_ylabel("Graph Signature Index")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _noisy(table: pd.DataFrame) -> set[str]:
    """Instances whose class structure is weaker than chance makes it."""
    rows = table[
        (table["method"] == "labels") & table["metric"].isin(["strength", "noise_strength"])
    ]
    wide = rows.pivot_table(index="instance", columns="metric", values="value")
    return set(wide.index[wide["strength"] < wide["noise_strength"]])


def _names(axes: Any, x: pd.Series, y: pd.Series, names: pd.Series) -> None:
    """Names beside points; one that would cover a name or a point moves up and gets a line to its point."""
    points = sorted(zip(x, y, names, strict=True), key=lambda point: point[1::-1])
    placed: list[tuple[float, float]] = []
    for across, up, name in points:
        height = up
        while any(abs(height - b) < 0.05 and abs(a - across) < 0.25 for a, b in placed) or any(
            abs(height - b) < 0.03 and 0 < a - across < 0.2 for a, b, _ in points
        ):
            height += 0.055
        placed.append((across, height))
        axes.annotate(
            graph_label(name), (across, up), (across + 0.025, height), fontsize=6.5, color="#5b6470",
            va="center",
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": MUTED} if height > up else None,
        )  # fmt: skip


def accuracy_figure(table: pd.DataFrame) -> Any:
    """Test accuracy of every method (rows) on every real graph (columns), coloured by the lead over PRAT."""
    rows = table[(table["metric"] == "accuracy") & table["method"].isin(LABELS)]
    real = rows[rows["dataset"] != "csbm"]
    rows = real if len(real) else rows
    wide = rows.pivot_table(index="method", columns="graph", values="value")
    graphs = list(rows.groupby("graph", sort=False)["h"].first().sort_values().index)
    wide = 100 * wide.reindex(index=[m for m in LABELS if m in wide.index], columns=graphs)
    lead = wide - wide.loc["prat"]
    figure, axes = new_figure(0.85 * len(graphs) + 2.2, 0.27 * len(wide) + 1.3)
    image = axes.imshow(lead.to_numpy(), cmap="PuOr", vmin=-15, vmax=15, aspect="auto")
    for (i, j), value in np.ndenumerate(wide.to_numpy()):
        if np.isfinite(value):
            best = value >= np.nanmax(wide.to_numpy()[:, j]) - 1e-9
            light = abs(lead.iloc[i, j]) > 10.5
            axes.text(
                j, i, f"{value:.1f}", ha="center", va="center", fontsize=8,
                fontweight="bold" if best else "normal", color="white" if light else "#2b3138",
            )  # fmt: skip
    axes.set_xticks(range(len(graphs)), [graph_label(g) for g in graphs], rotation=30, ha="right")
    axes.set_yticks(range(len(wide)), [LABELS[m] for m in wide.index])
    axes.grid(False)
    figure.colorbar(image, ax=axes, label="lead over PRAT [points]", extend="both", shrink=0.9)
    return figure


def gains_figure(table: pd.DataFrame) -> Any:
    """Paired gains of PRAT by graph: over its twin, the strongest vanilla and the strongest ego-separated peer."""
    scores = table[table["metric"].isin(["accuracy", "val_accuracy"])]
    real = scores[scores["dataset"] != "csbm"]
    scores = real if len(real) else scores
    graphs = list(
        scores.groupby("graph", sort=False)["h"].first().sort_values(ascending=False).index
    )
    rivals = (
        ("twin, both updates", COLORS[1], None),
        ("strongest vanilla (GCN, GATv2)", COLORS[3], strongest(scores, VANILLA)),
        ("strongest ego-separated peer", COLORS[2], strongest(scores, EGO)),
    )
    figure, axes = new_figure(6.4, 0.42 * len(graphs) + 1.3)
    for k, (label, color, best) in enumerate(rivals):
        for line, graph in enumerate(graphs):
            estimate = mean(100 * _differences(scores, graph, best and best.get(graph)))
            spread = [[estimate.effect - estimate.low], [estimate.high - estimate.effect]]
            axes.errorbar(
                [estimate.effect], [line + 0.22 * (1 - k)], xerr=np.nan_to_num(spread), fmt="o", ms=4,
                color=color, lw=1.2, label=label if line == 0 else None,
            )  # fmt: skip
    axes.axvline(0, color=MUTED, lw=0.9)
    axes.set_yticks(range(len(graphs)), [graph_label(g) for g in graphs])
    low, high = axes.get_xlim()
    axes.set(
        xlabel="accuracy of PRAT minus the rival's [points]", xlim=(max(low, -30), min(high, 45))
    )
    figure.legend(loc="outside lower center", ncols=3, fontsize=7.5)
    return figure


def _differences(scores: pd.DataFrame, graph: str, rival: str | None) -> np.ndarray:
    """Test accuracy of PRAT minus a rival's on each split; the mean of both updates minus their twins without one."""
    rows = scores[(scores["metric"] == "accuracy") & (scores["graph"] == graph)]
    wide = rows.pivot_table(index=["split", "seed"], columns="method", values="value")
    if rival is not None:
        return (wide["prat"] - wide[rival]).to_numpy()
    residual = wide["prat"] - wide["riemannian"]
    return ((residual + wide["flow_prat"] - wide["flow_riemannian"]) / 2).to_numpy()


def metric_figure(arrays: dict[str, np.ndarray]) -> Any:
    """Histograms of learned metric entries by graph: from the index's signature and from half and half."""
    graphs = list(dict.fromkeys(name.split("/")[0] for name in arrays if name.endswith("/eta")))
    cols = min(4, len(graphs))
    rows = -(-len(graphs) // cols)
    figure, panels = new_figure(
        1.9 * cols + 0.6, 1.55 * rows + 0.8, rows, cols, squeeze=False, sharex=True
    )
    bins = np.linspace(-1.6, 1.6, 41)
    kinds = (
        ("prat", "PRAT", COLORS[0]),
        ("flow_prat", "PRAT (flow)", COLORS[4]),
        ("flow_half", "flow from half and half", COLORS[1]),
    )
    for axes, graph in zip(panels.ravel(), graphs, strict=False):
        for method, label, color in kinds:
            found = [v for k, v in arrays.items() if k.startswith(f"{graph}/{method}/")]
            if found:
                axes.hist(
                    np.concatenate(found).clip(-1.6, 1.6), bins, density=True, histtype="step", color=color,
                    label=label, lw=1.2,
                )  # fmt: skip
        axes.axvline(0, color=MUTED, lw=0.8)
        axes.set(title=graph_label(graph), yticks=[])
    for axes in panels.ravel()[len(graphs) :]:
        axes.set_axis_off()
    figure.supxlabel("metric entry $\\eta$", fontsize=9)
    figure.supylabel("density", fontsize=9)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8)
    return figure


def attention_figure(arrays: dict[str, np.ndarray]) -> Any:
    """Signed weights of one graph: on a circle sorted by class, and their distribution by kind of edge."""
    names = [name.split("/")[0] for name in arrays if name.endswith("/alpha")]
    graph = "texas" if "texas" in names else names[0]
    alpha, edges, labels = (arrays[f"{graph}/{part}"] for part in ("alpha", "edges", "labels"))
    figure, panels = new_figure(7.4, 3.7, 1, 2, width_ratios=[1.15, 1])
    order = np.argsort(labels, kind="stable")
    angle = np.empty(len(labels))
    angle[order] = 2 * np.pi * np.arange(len(labels)) / len(labels)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    size = np.abs(alpha) / np.quantile(np.abs(alpha), 0.98)
    for sign, color in ((1, COLORS[0]), (-1, COLORS[1])):
        mine = np.sign(alpha) == sign
        lines = LineCollection(points[edges[:, mine].T], color=color, lw=0.9)
        lines.set_alpha(0.08 + 0.6 * size[mine].clip(max=1.0))
        panels[0].add_collection(lines)
    panels[0].scatter(
        *points.T, c=[COLORS[2:][label % 6] for label in labels], s=9, zorder=3, edgecolors="white", linewidths=0.3
    )  # fmt: skip
    panels[0].set(title=f"{graph_label(graph)}, nodes by class", aspect="equal")
    panels[0].set_axis_off()
    same = labels[edges[0]] == labels[edges[1]]
    bins = np.linspace(*np.quantile(alpha, [0.01, 0.99]), 31)
    for kind, label, style in ((same, "within a class", "-"), (~same, "between classes", "--")):
        if kind.any():
            panels[1].hist(
                alpha[kind].clip(bins[0], bins[-1]), bins, density=True, histtype="step", label=label, ls=style,
                color="#2b3138", lw=1.3,
            )  # fmt: skip
    panels[1].axvspan(min(bins[0], 0), 0, color=COLORS[1], alpha=0.1, lw=0)
    panels[1].axvspan(0, bins[-1], color=COLORS[0], alpha=0.1, lw=0)
    panels[1].set(
        xlabel="signed weight x degree (red: repels)", ylabel="density", xlim=(bins[0], bins[-1])
    )
    panels[1].legend(fontsize=8)
    return figure


def sweep_figure(table: pd.DataFrame) -> Any:
    """Test accuracy on generated graphs over homophily."""
    rows = table[(table["dataset"] == "csbm") & (table["metric"] == "accuracy")]
    figure, axes = new_figure(6.2, 3.6)
    for method, color in COLOR.items():
        wide = 100 * rows[rows["method"] == method].pivot_table(
            index="h", columns="seed", values="value"
        )
        if wide.empty:
            continue
        estimates = [mean(values) for values in wide.to_numpy()]
        line = [e.effect for e in estimates]
        low, high = (
            np.where(np.isnan(b), line, b)
            for b in zip(*((e.low, e.high) for e in estimates), strict=True)
        )
        style = {"ls": "--"} if method.startswith("flow") else {}
        band(
            axes,
            wide.index,
            line,
            low.clip(0),
            high.clip(max=100),
            label=LABELS[method],
            color=color,
            **style,
        )
    axes.set(xlabel="homophily h", ylabel="test accuracy [%]", ylim=(20, 101))
    axes.legend(fontsize=7.5, ncols=2, loc="lower right")
    return figure


def alignment_figure(table: pd.DataFrame) -> Any:
    """Negative energy of the learned metric against the index, from a half-and-half start."""
    figure, panels = new_figure(7.2, 3.3, 1, 2, sharey=True, sharex=True)
    kinds = (
        ("flow_half", "classification only"),
        ("flow_half_geometry", "with a link loss (control)"),
    )
    for axes, (method, title) in zip(panels, kinds, strict=True):
        rows = table[(table["metric"] == "negative_energy") & (table["method"] == method)]
        for dataset, (label, color, marker) in DATASETS.items():
            mine = rows[rows["dataset"] == dataset]
            if mine.empty:
                continue
            means = (
                mine.groupby(["instance", "graph"], sort=False)[["gsi", "value"]]
                .mean()
                .reset_index()
            )
            axes.scatter(
                means["gsi"],
                means["value"],
                s=28,
                marker=marker,
                color=color,
                label=label,
                zorder=3,
            )
            if dataset == "heterophilous":
                _names(axes, means["gsi"], means["value"], means["graph"])
        axes.axhline(0.5, color=MUTED, lw=0.8, ls=":")
        axes.set(xlabel="Graph Signature Index", title=title, xlim=(-0.05, 1.0), ylim=(0, 1))
    panels[0].set_ylabel("negative energy of the metric")
    panels[0].legend(fontsize=7.5)
    return figure
