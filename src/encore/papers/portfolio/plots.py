"""Figures from the table of metrics; every function returns a matplotlib figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from encore.core.figures import COLORS, MUTED, band, new_figure
from encore.core.intervals import mean

METHODS = {
    "bundled": ("bundled (greedy)", COLORS[0], "-"),
    "hypervolume_greedy": ("hypervolume", COLORS[1], "-"),
    "tchebycheff": ("Tchebycheff", COLORS[2], "-"),
    "scalarization": ("weighted sums", COLORS[3], "-"),
    "scalarization_tuned": ("weighted sums, tuned", COLORS[3], ":"),
    "pareto_kmedoids": ("k-medoids of the front", COLORS[4], "-"),
    "random_portfolio": ("random on the front", COLORS[5], "-"),
    "marginal_coverage": ("marginal coverage", COLORS[6], "--"),
    "accuracy_top": ("most accurate", MUTED, "--"),
}
DATASETS = {
    "nb201_hw": "NAS-Bench-201 on hardware",
    "digits_zoo": "our zoo of classifiers",
    "hwnasbench_full": "HW-NAS-Bench, full",
}
DEMAND_NAMES = {
    "uniform": "uniform",
    "accuracy_heavy": "accuracy-heavy",
    "edge_heavy": "edge-heavy",
    "correlated": "correlated",
}


def _panels(datasets: Sequence[str], width: float, height: float, **grid: Any) -> tuple[Any, list]:
    """A figure with one panel per data set, titled."""
    figure, axes = new_figure(width * len(datasets), height, cols=len(datasets), **grid)
    axes = list(np.atleast_1d(axes))
    for panel, dataset in zip(axes, datasets, strict=True):
        panel.set_title(DATASETS.get(dataset, dataset))
    return figure, axes


def _over_families(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Mean with its interval over families for each value of a factor: columns effect, low, high."""
    found = {}
    for key, part in rows.groupby(by, sort=True):
        estimate = mean(part.groupby("family")["value"].mean().to_numpy())
        low, high = np.nan_to_num([estimate.low, estimate.high], nan=estimate.effect)
        found[key] = (estimate.effect, low, high)
    return pd.DataFrame.from_dict(found, orient="index", columns=["effect", "low", "high"])


def _gains(table: pd.DataFrame, dataset: str, **where: Any) -> pd.DataFrame:
    rows = table[
        (table["dataset"] == dataset) & (table["metric"] == "gain") & (table["reference"] == "test")
    ]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def coverage(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Coverage against K, a line with its interval for every method."""
    figure, axes = _panels(datasets, 4.3, 3.6, sharey=True)
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = table[(table["dataset"] == dataset) & (table["metric"] == "coverage")]
        rows = rows[(rows["demand"] == "uniform") & (rows["scope"] == "all")]
        for name, (label, color, style) in reversed(METHODS.items()):
            line = 100 * _over_families(rows[rows["method"] == name], "k")
            main = name == "bundled"
            panel.plot(
                line.index, line["effect"], style, color=color, label=label,
                zorder=3 if main else 2, linewidth=2.4 if main else 1.4,
            )  # fmt: skip
            panel.fill_between(
                line.index, line["low"], line["high"], color=color, linewidth=0,
                alpha=0.22 if main else 0.09,
            )  # fmt: skip
        panel.set(xlabel="models kept, K", ylim=(0, 101), xticks=sorted(rows["k"].unique()))
    axes[0].set_ylabel("feasible profiles served, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", fontsize=8)
    return figure


def gain(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Heat map of gains, families by K."""
    from matplotlib.colors import LinearSegmentedColormap

    maps = [
        _gains(table, dataset, demand="uniform", scope="all").pivot_table(
            index="family", columns="k", values="value"
        )
        * 100
        for dataset in datasets
    ]
    rows = max(len(m) for m in maps)
    figure, axes = _panels(datasets, 4.6, 1.0 + 0.2 * rows)
    limit = max(np.abs(m.to_numpy()).max() for m in maps) or 1.0
    colors = LinearSegmentedColormap.from_list("gain", [COLORS[1], "#ffffff", COLORS[0]])
    for panel, heat in zip(axes, maps, strict=True):
        heat = heat.loc[heat.mean(axis=1).sort_values(ascending=False).index]
        image = panel.imshow(heat, cmap=colors, vmin=-limit, vmax=limit, aspect="auto")
        for (row, column), value in np.ndenumerate(heat.to_numpy()):
            ink = "white" if abs(value) > 0.62 * limit else "#2b3138"
            text = f"{value:.0f}" if abs(value) >= 0.5 else "0"
            panel.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
        panel.set(xlabel="models kept, K", yticks=range(len(heat)), xticks=range(heat.shape[1]))
        panel.set_yticklabels(heat.index, fontsize=8)
        panel.set_xticklabels([f"{k:.0f}" for k in heat.columns])
        panel.grid(False)
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0)
    figure.colorbar(image, ax=axes, label="gain, percentage points", shrink=0.8)
    return figure


def coverability(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Gain at K = 3 against median coverability, one point per family and demand."""
    figure, axes = _panels(datasets, 4.2, 3.3)
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = _gains(table, dataset, k=3, scope="all")
        met = table[(table["dataset"] == dataset) & (table["metric"] == "coverability")]
        keys = ["family", "demand"]
        share = 100 * met.groupby(keys)["value"].mean().rename("share")
        points = pd.concat(
            [share, 100 * rows.groupby(keys)["value"].mean().rename("gain")], axis=1
        ).reset_index()
        for color, (demand, label) in zip(COLORS, DEMAND_NAMES.items(), strict=False):
            part = points[points["demand"] == demand]
            panel.scatter(part["share"], part["gain"], s=22, color=color, label=label, alpha=0.85)
        edge = share.median()
        panel.set_xscale("log")
        _plain_ticks(panel, points["share"])
        panel.axvline(edge, color=MUTED, linewidth=1, linestyle="--")
        panel.axhline(0, color="#5b6470", linewidth=0.8)
        for half, where, align in (("low", -4, "right"), ("high", 4, "left")):
            value = 100 * rows[rows["half"] == half]["value"].mean()
            panel.annotate(
                f"mean {value:.1f}", (edge, 1.0), (where, 1), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha=align, va="top", fontsize=8, color="#5b6470",
            )  # fmt: skip
        panel.set_ylim(top=points["gain"].max() * 1.12 + 0.1)
        panel.set_xlabel("median share of models that meet a profile, %")
    axes[0].set_ylabel("gain at K = 3, percentage points")
    axes[-1].legend(fontsize=8)
    return figure


def _plain_ticks(panel: Any, values: Any) -> None:
    """Ticks 1, 2 and 5 times powers of ten on a logarithmic x axis, as plain numbers."""
    decades = 10.0 ** np.arange(np.floor(np.log10(np.min(values))), np.log10(np.max(values)) + 1)
    ticks = np.outer(decades, [1, 2, 5]).ravel()
    ticks = ticks[(ticks >= 0.8 * np.min(values)) & (ticks <= 1.25 * np.max(values))]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()


def hardest(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Bars of the gain on the hardest profiles beside all profiles."""
    figure, axes = _panels(datasets, 3.9, 3.0, sharey=True)
    scopes = {
        "all": ("all feasible profiles", COLORS[4]),
        "hardest": ("hardest quarter", COLORS[0]),
    }
    for panel, dataset in zip(axes, datasets, strict=True):
        for offset, (scope, (label, color)) in zip((-0.2, 0.2), scopes.items(), strict=True):
            line = 100 * _over_families(_gains(table, dataset, demand="uniform", scope=scope), "k")
            error = [line["effect"] - line["low"], line["high"] - line["effect"]]
            style = {"elinewidth": 1, "ecolor": "#2b3138"}
            panel.bar(
                np.arange(len(line)) + offset, line["effect"], 0.38, yerr=np.abs(error),
                color=color, label=label, error_kw=style,
            )  # fmt: skip
        panel.set(xlabel="models kept, K", xticks=range(len(line)))
        panel.set_xticklabels([f"{k:.0f}" for k in line.index])
        panel.axhline(0, color="#5b6470", linewidth=0.8)
        panel.grid(axis="x", visible=False)
    axes[0].set_ylabel("gain, percentage points")
    axes[-1].legend(fontsize=8)
    return figure


def demand(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Gain at K = 3 under each demand model: families as dots, mean with interval."""
    figure, axes = _panels(datasets, 3.9, 3.0, sharey=True)
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = _gains(table, dataset, k=3, scope="all")
        for x, name in enumerate(DEMAND_NAMES):
            part = rows[rows["demand"] == name]
            dots = 100 * part.groupby("family")["value"].mean().to_numpy()
            spread = np.linspace(-0.22, 0.22, len(dots))[np.argsort(np.argsort(-dots % 7.3))]
            panel.scatter(x + spread, dots, s=14, color=COLORS[4], alpha=0.8, linewidth=0)
            line = 100 * _over_families(part, "k").iloc[0]
            error = [[line["effect"] - line["low"]], [line["high"] - line["effect"]]]
            panel.errorbar(
                [x], [line["effect"]], yerr=np.abs(error), fmt="D", color=COLORS[0], capsize=4
            )
        panel.axhline(0, color="#5b6470", linewidth=0.8)
        panel.set_xticks(range(len(DEMAND_NAMES)), DEMAND_NAMES.values(), fontsize=8)
        panel.grid(axis="x", visible=False)
    axes[0].set_ylabel("gain at K = 3, percentage points")
    return figure


def noise(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Coverage against the noise of a second measurement, in both directions."""
    figure, axes = _panels(datasets, 4.3, 3.2, sharey=True)
    lines = {"bundled": COLORS[0], "best_baseline": COLORS[1]}
    directions = {"choose": "-", "deploy": "--"}
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = table[(table["dataset"] == dataset) & (table["metric"] == "noisy_coverage")]
        rows = rows[(rows["k"] == 3) & (rows["level"] != "own")]
        rows = rows.assign(cv=100 * rows["level"].astype(float))
        for (method, color), (direction, style) in (
            (m, d) for m in lines.items() for d in directions.items()
        ):
            part = rows[(rows["method"] == method) & (rows["direction"] == direction)]
            line = 100 * _over_families(part, "cv")
            name = "bundled" if method == "bundled" else "best baseline"
            verb = "chosen on" if direction == "choose" else "deployed under"
            values = (line["effect"], line["low"], line["high"])
            if direction == "choose":
                band(panel, line.index, *values, color=color, label=f"{name}, {verb} noisy costs")
            else:
                panel.plot(
                    line.index, values[0], color=color, linestyle=style, marker="o", markersize=3,
                    label=f"{name}, {verb} noisy costs",
                )  # fmt: skip
        panel.set_xlabel("coefficient of variation of a cost, %")
        panel.set_xticks(sorted(rows["cv"].unique()))
    axes[0].set_ylabel("feasible profiles served, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(2, 2 * len(axes)), fontsize=8
    )
    return figure


def sampling(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Errors of estimated coverage and their bounds against the number of profiles."""
    figure, axes = _panels(datasets, 3.9, 3.2, sharey=True)
    lines = {
        "pair": ("worst of all pairs", COLORS[0]),
        "greedy": ("greedy choice, K = 3", COLORS[1]),
    }
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = table[(table["dataset"] == dataset)]
        for name, (label, color) in lines.items():
            gaps = rows[rows["metric"] == f"{name}_gap"].groupby("m")["value"]
            middle, low, high = gaps.mean(), gaps.quantile(0.025), gaps.quantile(0.975)
            band(panel, middle.index, middle, low, high, color=color, label=label, marker="o")
            bound = rows[rows["metric"] == f"{name}_bound"].groupby("m")["value"].mean()
            panel.plot(bound.index, bound, "--", color=color, label=f"bound, {label}")
        sizes = sorted(rows["m"].dropna().unique())
        sizes = [m for m in sizes if m in middle.index]
        panel.set(xscale="log", yscale="log", xlabel="sampled profiles, m")
        panel.set_xticks(sizes, [f"{m:.0f}" for m in sizes])
        panel.minorticks_off()
    axes[0].set_ylabel("error of coverage (share of profiles)")
    axes[0].legend(fontsize=7.5)
    return figure


def optimum(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Greedy over the certified optimum by K, on archives and on traps."""
    figure, panel = new_figure(6.2, 3.2)
    rows = table[table["metric"] == "share_of_optimum"]
    groups = [*datasets, "instances"]
    for index, dataset in enumerate(groups):
        part = rows[rows["dataset"] == dataset]
        shift = (index - (len(groups) - 1) / 2) * 0.26
        jitter = np.linspace(-0.08, 0.08, 7)[np.arange(len(part)) % 7]
        label = "built to be bad for greedy" if dataset == "instances" else DATASETS[dataset]
        color = COLORS[1] if dataset == "instances" else COLORS[[0, 2, 3][index]]
        x = part["k"].to_numpy(float) + shift + jitter
        panel.scatter(x, part["value"], s=10, color=color, alpha=0.7, label=label, linewidth=0)
    panel.axhline(1 - 1 / np.e, color="#2b3138", linestyle="--", linewidth=1)
    panel.text(0.55, 1 - 1 / np.e + 0.006, "1 - 1/e", fontsize=8)
    panel.set(xlabel="models kept, K", ylabel="greedy / certified optimum", ylim=(0.6, 1.02))
    panel.set_xticks(sorted(rows["k"].unique()))
    panel.grid(axis="x", visible=False)
    panel.legend(fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.55))
    return figure


def storage(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Bytes of the feasibility matrix by storage."""
    figure, axes = _panels(datasets, 4.0, 2.6)
    names = ["dense", "csr", "packed", "dense_pruned", "csr_pruned", "packed_pruned"]
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = table[(table["dataset"] == dataset) & (table["metric"] == "bytes")]
        rows = rows[rows["m"] == rows["m"].max()]
        size = rows.groupby("method")["value"].mean()[names] / 1e6
        colors = [COLORS[0] if "packed" in name else COLORS[4] for name in names]
        panel.barh(range(len(names)), size, color=colors)
        for y, value in enumerate(size):
            text = f"{value:.3g} MB" if value >= 0.1 else f"{1000 * value:.3g} kB"
            panel.text(value * 1.15, y, text, va="center", fontsize=8)
        panel.set(xscale="log", xlabel=f"megabytes, {rows['m'].max():,.0f} profiles")
        panel.set_xlim(size.min() / 3, size.max() * 12)
        panel.set_yticks(range(len(names)), [name.replace("_", ", ") for name in names])
        panel.invert_yaxis()
        panel.grid(axis="y", visible=False)
    return figure


def cards(table: pd.DataFrame, datasets: Sequence[str], found: Mapping[str, dict]) -> Any:
    """A portfolio of three: the profiles it serves, and a table of its models."""
    figure, axes = new_figure(
        4.6 * len(datasets), 5.0, rows=2, cols=len(datasets), squeeze=False, height_ratios=[3, 1.5]
    )
    for column, dataset in enumerate(datasets):
        card = found[dataset]
        _card_map(axes[0, column], card, f"{DATASETS[dataset]}: {card['family']}")
        _card_table(axes[1, column], card)
    return figure


def _card_map(panel: Any, card: dict, title: str) -> None:
    profiles = pd.DataFrame(card["profiles"])
    x, y = profiles["latency<="], profiles["accuracy>="]
    server = profiles["server"].to_numpy()
    panel.scatter(x[server == -2], y[server == -2], s=9, color="#d6dade", label="met by no model")
    missed = server == -1
    panel.scatter(
        x[missed],
        y[missed],
        s=16,
        marker="x",
        color="#2b3138",
        linewidth=0.9,
        label="feasible, missed",
    )
    for index, model in enumerate(card["models"]):
        here = server == index
        panel.scatter(
            x[here], y[here], s=11, color=COLORS[index], label=f"served by {'ABC'[index]}"
        )
        panel.scatter(
            model["latency"], model["accuracy"], s=150, marker="*", color=COLORS[index],
            edgecolor="#2b3138", linewidth=0.8, zorder=4,
        )  # fmt: skip
    panel.set(xlabel="latency cap, ms", ylabel="accuracy floor, %", xscale="log")
    _plain_ticks(panel, [*x, *(model["latency"] for model in card["models"])])
    panel.set_title(f"{title}, {100 * card['coverage']:.0f} % served", fontsize=9)
    panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), handletextpad=0.2)


def _card_table(panel: Any, card: dict) -> None:
    panel.axis("off")
    units = {"accuracy": "acc., %", "latency": "lat., ms", "energy": "en., mJ", "memory": "memory"}
    names = [name for name in units if name in card["models"][0]]
    header = ["", *(units[name] for name in names), "serves", "alone"]
    body = [
        ["ABC"[i], *(_number(model[name]) for name in names),
         f"{100 * model['serves']:.0f} %", f"{100 * model['alone']:.0f} %"]
        for i, model in enumerate(card["models"])
    ]  # fmt: skip
    drawn = panel.table(body, colLabels=header, loc="upper center", cellLoc="center")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(7.5)
    for (row, column), cell in drawn.get_celld().items():
        cell.set_edgecolor("#e3e5e8")
        if row > 0 and column == 0:
            cell.get_text().set_color(COLORS[row - 1])
            cell.get_text().set_fontweight("bold")
    text = "\n".join(f"{'ABC'[i]}  {_short(m['label'])}" for i, m in enumerate(card["models"]))
    panel.text(0.0, 0.2, text, transform=panel.transAxes, fontsize=7, va="top", family="monospace")


def _number(value: float) -> str:
    """Three or four digits, with k and M for thousands and millions."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def _short(label: str) -> str:
    """An architecture string in fewer letters."""
    for long, short in (("nor_conv_", "conv"), ("avg_pool_", "pool"), ("skip_connect", "skip")):
        label = label.replace(long, short)
    return label


def runtime(table: pd.DataFrame, datasets: Sequence[str], _: Any) -> Any:
    """Seconds of greedy selection by implementation, every repetition a dot."""
    figure, axes = _panels(datasets, 4.0, 2.6, sharex=True)
    names = {
        "packed_pruned": "packed, pruned",
        "packed": "packed",
        "lazy": "packed, lazy",
        "boolean_matrix": "boolean matrix",
        "python_sets": "Python sets",
        "build": "(building the bits)",
    }
    for panel, dataset in zip(axes, datasets, strict=True):
        rows = table[(table["dataset"] == dataset) & (table["metric"] == "seconds")]
        for y, name in enumerate(names):
            value = 1000 * rows[rows["method"] == name]["value"]
            color = COLORS[0] if name.startswith("packed") else COLORS[4]
            panel.scatter(value, np.full(len(value), y), s=14, color=color, alpha=0.7, linewidth=0)
            panel.text(
                value.max() * 1.4,
                y,
                f"{value.median():.3g} ms",
                va="center",
                fontsize=8,
                color="#2b3138",
            )
        panel.set(xscale="log", xlabel="milliseconds")
        panel.set_yticks(range(len(names)), names.values())
        panel.invert_yaxis()
        panel.margins(x=0.35)
        panel.grid(axis="y", visible=False)
    return figure


FIGURES = {
    function.__name__: function
    for function in (
        coverage, gain, coverability, hardest, demand, noise, sampling, optimum, storage, cards, runtime,
    )
}  # fmt: skip
