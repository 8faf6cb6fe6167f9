"""The theorems on generated instances: submodularity, the reduction, and traps for greedy selection."""

from encore.core.job import job
from encore.core.metrics import Table
from encore.papers.portfolio.evaluation import reduction_errors
from encore.papers.portfolio.feasibility import Feasibility
from encore.papers.portfolio.selection import select
from encore.papers.portfolio.theory import greedy_trap, random_instance, violations

with job(snakemake) as (input, output, params):
    table, options, first = Table("portfolio"), params.options, params.seeds[0]
    for seed in range(first, first + options["random"]):
        instance = random_instance(options["models"], options["profiles"], seed)
        found = violations(Feasibility.build(*instance, prune=False))
        found["reduction"] = reduction_errors(options["models"], options["profiles"], seed)
        for name in ("monotone", "submodular", "reduction"):
            table.add(dataset="instances", method="coverage", seed=seed, better="lower",
                      metric=f"{name}_violations", value=float(found[name]))  # fmt: skip
    for seed in range(first, first + options["traps"]):
        k = 2 + seed % 4
        trap = Feasibility.build(*greedy_trap(k, n_distractors=6, seed=seed))
        best, found = select(trap, k, method="exact"), select(trap, k)
        table.add(dataset="instances", method="greedy", seed=seed, metric="share_of_optimum", k=k,
                  value=found.coverage / best.coverage, better="higher", family="trap")  # fmt: skip
        table.add(dataset="instances", method="exact", seed=seed, metric="certified", k=k,
                  value=float(best.optimal), better="higher", family="trap")  # fmt: skip
    table.write(output.runs)
