"""Accuracy of the method and its baseline on held-out samples, for every seed."""

import numpy as np

from encore.core.job import job, read_npz
from encore.core.metrics import Table
from encore.papers.PAPER_SLUG.baselines import Majority
from encore.papers.PAPER_SLUG.method import Centroid

METHODS = {"centroid": Centroid, "majority": Majority}

with job(snakemake) as (input, output, params):
    data = read_npz(input.data)
    table = Table("PAPER_SLUG")
    for seed in params.seeds:
        order = np.random.default_rng(seed).permutation(len(data["labels"]))
        train, test = np.split(order, [int(params.train_share * len(order))])
        for name, method in METHODS.items():
            model = method().fit(data["samples"][train], data["labels"][train])
            right = model.predict(data["samples"][test]) == data["labels"][test]
            table.add(
                dataset=snakemake.wildcards.dataset, method=name, seed=seed, metric="accuracy",
                value=right.mean(), better="higher",
            )  # fmt: skip
    table.write(output.runs)
