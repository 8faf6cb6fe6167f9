"""Every method on generated graphs of rising homophily, all drawn with one seed."""

from encore.core.job import job, write_npz
from encore.core.metrics import Table
from encore.papers.prat.experiments import fit_graph
from encore.papers.prat.generator import csbm
from encore.papers.prat.records import Trained, add_scores
from encore.papers.prat.training import Inputs

with job(snakemake) as (input, output, params):
    seed, table, arrays = int(snakemake.wildcards.seed), Table("prat"), {}
    shared = {name: value for name, value in params.csbm.items() if name != "h"}
    for h in params.csbm["h"]:
        graph = csbm(h=h, seed=seed, **shared)
        trained, inputs = Trained(graph), Inputs.of(graph.to_data())
        for found in fit_graph(
            graph, inputs, params.methods, [0], [seed], choice=params.choice, **params.plan
        ):
            print(f"h={h} {found.method}: {found.val:.3f} {found.test:.3f}")
            instance = f"{graph.name}_{seed}"
            add_scores(table, "csbm", graph, inputs, found, instance=instance, h=h)
            trained.keep(inputs, found)
        arrays |= trained.arrays
    table.write(output.runs)
    write_npz(output.models, **arrays)
