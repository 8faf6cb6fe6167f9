"""All methods on every family, demand model and seed: chosen on one half of the profiles, scored on the other."""

import pandas as pd

from encore.core.job import job, read_parquet, write_json
from encore.core.metrics import Table
from encore.papers.portfolio import evaluation
from encore.papers.portfolio.evaluation import Cell, archives, seed_of

with job(snakemake) as (input, output, params):
    table, dataset, ks = Table("portfolio"), params.dataset, params.sizes
    scores, gains, cells = [], [], []
    for family, archive in archives(read_parquet(input.data)).items():
        for seed in params.seeds:
            key, archive_only = seed_of(family, seed), None
            for demand in params.demands:
                where = {"family": family, "demand": demand, "seed": seed}
                cell = Cell.draw(archive, demand, params.profiles, key)
                archive_only = archive_only or evaluation.archive_choices(cell.train, ks, key)
                choices = archive_only | evaluation.profile_choices(cell.train, ks)
                choices |= evaluation.tuned_choices(cell.train, ks, key, params.restarts)
                test = evaluation.score(cell.test, choices, cell.masks)
                train = evaluation.score(cell.train, choices, {"all": cell.train.feasible})
                scores.append(test.assign(**where))
                gains.append(evaluation.all_gains(test, train).assign(**where))
                cells.append(where | {"coverability": cell.coverability})
        print(f"{family}: scored")
    scores, gains, cells = pd.concat(scores), pd.concat(gains), pd.DataFrame(cells)
    gains = gains.merge(evaluation.coverability_halves(cells), on=["family", "demand"])
    factors = ["family", "demand", "seed", "k", "scope"]
    table.add(dataset=dataset, metric="coverage", value=scores["coverage"], method=scores["method"],
              better="higher", **scores[factors])  # fmt: skip
    for metric in ("gain", "wins", "loses"):
        table.add(dataset=dataset, metric=metric, value=gains[metric], method="bundled",
                  better="lower" if metric == "loses" else "higher", best=gains["best"],
                  reference=gains["reference"], half=gains["half"], **gains[factors])  # fmt: skip
    table.add(dataset=dataset, metric="coverability", value=cells["coverability"], method="archive",
              **cells[["family", "demand", "seed"]])  # fmt: skip
    table.write(output.runs)
    write_json(output.cards, evaluation.cards(read_parquet(input.data), params), digits=6)
