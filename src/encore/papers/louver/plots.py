"""Figures from the table of metrics."""

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from encore.core.figures import COLORS, MUTED, band, new_figure
from encore.core.intervals import mean

TITLES = {"lm_text": "reviews and speeches", "packaged_text": "reference text"}
NAMES = {
    "louver": "Louver", "sdpa_gqa": "SDPA, GQA", "sdpa_packed": "SDPA, packed", "eager": "eager",
    "quest": "Quest", "twilight": "Twilight", "hnsw": "HNSW", "ivf": "IVF", "pq": "PQ", "lsh": "LSH",
    "streaming_llm": "StreamingLLM", "h2o": "H2O", "oracle": "oracle top-k", "int8": "int8 (default)",
    "subspace": "16 subspaces", "tree": "tree of balls", "page_boxes": "page boxes",
    "top": "best key", "top_no_sink": "best key, no sink", "random": "random kept key",
}  # fmt: skip
STYLES = {
    "louver": COLORS[1], "sdpa_gqa": COLORS[6], "sdpa_packed": COLORS[0], "eager": COLORS[4],
    "quest": COLORS[2], "twilight": COLORS[3], "hnsw": COLORS[5], "streaming_llm": COLORS[4],
    "h2o": COLORS[3], "oracle": MUTED,
}  # fmt: skip


def _panels(table, width, height, **grid):
    """One panel per data set, with its title."""
    datasets = list(dict.fromkeys(table["dataset"]))
    figure, axes = new_figure(
        width * len(datasets), height, 1, len(datasets), squeeze=False, **grid
    )
    for panel, dataset in zip(axes[0], datasets, strict=True):
        panel.set_title(TITLES.get(dataset, dataset))
    return figure, [
        (panel, table[table["dataset"] == d]) for panel, d in zip(axes[0], datasets, strict=True)
    ]


def latency_figure(table):
    """Median CPU time over the number of keys, with the range of the repeats; float32 and bfloat16."""
    rows = table[table["metric"] == "cpu_ms"]
    datasets, dtypes = list(dict.fromkeys(rows["dataset"])), ["fp32", "bf16"]
    figure, axes = new_figure(
        7.4, 2.9 * len(datasets), len(datasets), 2, squeeze=False, sharey="row"
    )
    for line, dataset in zip(axes, datasets, strict=True):
        for panel, dtype in zip(line, dtypes, strict=True):
            mine = rows[(rows["dataset"] == dataset) & (rows["dtype"] == dtype)]
            for method in dict.fromkeys(mine["method"]):
                times = mine[mine["method"] == method].groupby("keys")["value"]
                middle = times.median()
                band(
                    panel, middle.index, middle, times.min(), times.max(), color=STYLES[method],
                    label=NAMES[method], marker="o", ms=4 if len(middle) > 1 else 6,
                )  # fmt: skip
            panel.set(xscale="log", yscale="log", xlabel="keys")
            panel.set_title(f"{TITLES.get(dataset, dataset)}, {dtype}")
            ticks = sorted(mine["keys"].unique())
            panel.set_xticks(
                ticks, [f"{t // 1024}k" if t >= 1024 else f"{t}" for t in map(int, ticks)]
            )
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter(ScalarFormatter())
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_minor_formatter(NullFormatter())
        line[0].set_ylabel("CPU time of a step [ms]")
    labels = {
        label: item
        for panel in axes.flat
        for item, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=4)
    return figure


def recall_figure(table):
    """Recall of the k best keys at a budget of k keys (bars) and of 5 % of all (ticks)."""
    rows = table[table["metric"] == "recall"]
    figure, panels = _panels(rows, 3.9, 3.0, sharey=True)
    for panel, mine in panels:
        methods = list(dict.fromkeys(mine["method"]))
        ks = sorted(mine["k"].unique())
        for shift, k in enumerate(ks):
            place = np.arange(len(methods)) + 0.27 * (shift - (len(ks) - 1) / 2)
            found = {
                budget: [
                    mean(
                        mine[(mine["method"] == m) & (mine["k"] == k) & (mine["budget"] == budget)][
                            "value"
                        ].to_numpy()
                    )
                    for m in methods
                    if budget == "k" or m != "louver"
                ]
                for budget in ("k", "fraction")
            }
            effects = np.array([e.effect for e in found["k"]])
            spans = np.array([[e.effect - e.low, e.high - e.effect] for e in found["k"]]).T
            panel.bar(place, effects, 0.25, color=COLORS[shift], label=f"k = {int(k)}")
            panel.errorbar(
                place, effects, np.maximum(spans, 0), fmt="none", ecolor="#2b3138", lw=0.8
            )
            wide = [e.effect for e in found["fraction"]]
            panel.plot(place[len(methods) - len(wide) :], wide, "_", ms=7, mew=1.6, color="#2b3138")
        panel.set_xticks(range(len(methods)), [NAMES[m] for m in methods], rotation=40, ha="right")
        panel.set_ylim(0, 1.04)
    panels[0][0].plot([], [], "_", ms=7, mew=1.6, color="#2b3138", label="budget 5 % of the keys")
    panels[0][0].set_ylabel("recall of the k best keys")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(panels)
    )
    return figure


def nll_figure(table):
    """Nats per token lost at each budget, with the interval over blocks of tokens."""
    rows = table[(table["metric"] == "nats_lost") & (table["budget"] != "mass")]
    figure, panels = _panels(rows, 3.7, 3.0, sharey=True)
    for panel, mine in panels:
        budgets = list(dict.fromkeys(mine["budget"]))
        for shift, method in enumerate(dict.fromkeys(mine["method"])):
            some = mine[mine["method"] == method]
            found = [mean(some[some["budget"] == b]["value"].to_numpy()) for b in budgets]
            effects = np.array([e.effect for e in found])
            spans = np.array([[e.effect - e.low, e.high - e.effect] for e in found]).T
            place = np.arange(len(budgets)) + 0.12 * (shift - 2)
            panel.errorbar(
                place, effects, np.maximum(spans, 0), fmt="o", ms=5, color=STYLES[method],
                label=NAMES[method],
            )  # fmt: skip
        panel.axhline(0, color=MUTED, lw=0.8)
        panel.set_xticks(range(len(budgets)), [b.replace("pct", " %") for b in budgets])
        panel.set_xlabel("budget, share of the keys")
    panels[0][0].set_ylabel("loss over dense [nats/token]")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3 * len(panels)
    )
    return figure


def spikes_figure(table):
    """Distribution of the relative output error when one key of the 5 % is missed."""
    rows = table[table["metric"] == "error_share"]
    figure, panels = _panels(rows, 3.7, 2.8, sharey=True)
    for panel, mine in panels:
        for color, (method, some) in zip(
            (1, 5, 0), mine.groupby("method", sort=False), strict=False
        ):
            x = 10 ** some["log10_error"].to_numpy()
            panel.step(
                x, 100 * some["value"], where="mid", color=COLORS[color], label=NAMES[method]
            )
        panel.axvline(0.2, color=MUTED, lw=0.8)
        panel.set(xscale="log", xlabel="relative error of a head's output")
    panels[0][0].set_ylabel("share of (head, step) [%]")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(panels)
    )
    return figure


def pruning_figure(table):
    """Share of the keys that each structure must look at; one point per head, the bar is the mean."""
    rows = table[table["metric"] == "scanned"]
    figure, panels = _panels(rows, 3.5, 2.9, sharey=True)
    for panel, mine in panels:
        methods = list(dict.fromkeys(mine["method"]))
        for place, method in enumerate(methods):
            values = mine[mine["method"] == method]["value"].to_numpy()
            x = place + np.linspace(-0.25, 0.25, len(values))
            panel.plot(x, values, "o", ms=2.5, alpha=0.7, color=COLORS[place])
            panel.plot([place - 0.3, place + 0.3], [values.mean()] * 2, color=COLORS[place], lw=2.2)
        panel.axhline(0.05, color=MUTED, lw=0.8, ls="--")
        panel.set_xticks(range(len(methods)), [NAMES[m] for m in methods], rotation=30, ha="right")
        panel.set_ylim(0, 1.04)
    panels[0][0].set_ylabel("share of keys scored exactly")
    return figure


def candidates_figure(table):
    """Keys scored exactly per key of the answer, by layer: mean over heads with its interval."""
    rows = table[table["metric"] == "per_answer"]
    figure, panels = _panels(rows, 3.5, 2.9, sharey=True)
    for panel, mine in panels:
        layers = sorted(mine["layer"].unique())
        for color, method in enumerate(dict.fromkeys(mine["method"])):
            found = [
                mean(
                    mine[(mine["method"] == method) & (mine["layer"] == layer)]["value"].to_numpy()
                )
                for layer in layers
            ]
            line = [[getattr(e, name) for e in found] for name in ("effect", "low", "high")]
            band(panel, layers, *line, color=COLORS[color], label=NAMES[method], marker="o", ms=4)
        panel.set(yscale="log", xlabel="layer")
        panel.set_xticks(layers, [f"{int(layer)}" for layer in layers])
    panels[0][0].set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    panels[0][0].yaxis.set_minor_formatter(NullFormatter())
    panels[0][0].set_ylabel("keys scored per key found")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(panels)
    )
    return figure
