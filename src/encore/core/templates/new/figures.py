"""Accuracy of each method with its interval over seeds."""

from encore.core.figures import COLORS, new_figure, save_svg
from encore.core.intervals import mean
from encore.core.job import job
from encore.core.metrics import read

with job(snakemake) as (input, output, params):
    table = read(input.table)
    figure, axes = new_figure()
    for i, (name, rows) in enumerate(table.groupby("method")):
        estimate = mean(rows["value"].to_numpy())
        spread = [[estimate.effect - estimate.low], [estimate.high - estimate.effect]]
        axes.errorbar([i], [estimate.effect], yerr=spread, fmt="o", color=COLORS[i], label=name)
    axes.set(xticks=range(table["method"].nunique()), ylabel="accuracy on held-out samples")
    axes.set_xticklabels(sorted(table["method"].unique()))
    save_svg(figure, output[0])
