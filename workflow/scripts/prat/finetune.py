"""Every method on the judged splits of a few real graphs: scores, and what signed attention does."""

from encore.core.job import job, write_npz
from encore.core.metrics import Table
from encore.papers.prat.experiments import fit_graph
from encore.papers.prat.graphs import read_graph
from encore.papers.prat.records import Trained, add_scores
from encore.papers.prat.training import Inputs

with job(snakemake) as (input, output, params):
    dataset, table, arrays = snakemake.wildcards.dataset, Table("prat"), {}
    for path in input.raw:
        graph = read_graph(path)
        trained, inputs = Trained(graph), Inputs.of(graph.to_data())
        left_out = params.left_out.get(graph.name, [])
        methods = [name for name in params.methods[dataset] if name not in left_out]
        splits, choice = params.splits[graph.name], params.choice.get(graph.name, {})
        for found in fit_graph(
            graph, inputs, methods, splits, params.seeds, choice=choice, **params.plan
        ):
            print(f"{graph.name} {found.split} {found.method}: {found.val:.3f} {found.test:.3f}")
            add_scores(table, dataset, graph, inputs, found, instance=graph.name)
            trained.keep(inputs, found)
        arrays |= trained.arrays
    table.write(output.runs)
    write_npz(output.models, **arrays)
