"""Figures without clocks: the pattern, the pendulum, arms, poses, learning curves."""

from encore.core.figures import save_svg
from encore.core.job import job, read_npz
from encore.papers.sparse_sos.plots import (
    arms_figure,
    curves_figure,
    pattern_figure,
    pendulum_figure,
    poses_figure,
)

with job(snakemake) as (input, output, params):
    arrays = {
        name: read_npz(path) for name, path in zip(params.datasets, input.arrays, strict=True)
    }
    paths = {path.split("/")[-1].removesuffix(".svg"): path for path in output}
    save_svg(pattern_figure(params.size, params.seed), paths["pattern"])
    save_svg(pendulum_figure(arrays["pendulum_swing"]), paths["pendulum"])
    save_svg(arms_figure(arrays["arms"]), paths["arms"])
    save_svg(poses_figure(arrays), paths["poses"])
    save_svg(curves_figure(arrays), paths["learning"])
