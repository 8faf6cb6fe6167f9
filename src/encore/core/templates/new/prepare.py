"""Read the raw digits and scale their pixels to [0, 1]."""

import numpy as np

from encore.core.job import job, write_npz

with job(snakemake) as (input, output, params):
    table = np.loadtxt(input.raw, delimiter=",")
    write_npz(output[0], samples=table[:, :-1] / 16.0, labels=table[:, -1].astype(int))
