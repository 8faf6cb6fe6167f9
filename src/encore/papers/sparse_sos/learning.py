"""All training runs of a data set."""

from collections.abc import Iterator
from typing import Any

from encore.papers.sparse_sos.learn_bounds import learn_chain, learn_cut
from encore.papers.sparse_sos.learn_control import learn_oscillators, learn_pendulum
from encore.papers.sparse_sos.learn_robotics import (
    graph_with_outliers,
    learn_arm,
    learn_sync,
    loop_with_outliers,
)
from encore.papers.sparse_sos.poses import (
    read_g2o,
)
from encore.papers.sparse_sos.training import Run


def runs(
    dataset: str, seeds: list[int], options: dict[str, Any], folder: str = ""
) -> Iterator[tuple[str, int, Run]]:
    """Train on one data set: (instance, seed, run) for every seed."""
    plain = {"chains": learn_chain, "pendulum_swing": learn_pendulum, "arms": learn_arm}
    plain["oscillators"] = learn_oscillators
    for seed in seeds:
        if dataset in plain:
            yield dataset, seed, plain[dataset](seed, **options)
        elif dataset == "packaged_graphs":
            rest = {key: value for key, value in options.items() if key != "graphs"}
            for graph in options["graphs"]:
                yield graph, seed, learn_cut(seed, graph, **rest)
        else:
            rest = {key: options[key] for key in ("mu", "steps", "rate", "scale")}
            if dataset == "pose_loops":
                problem = loop_with_outliers(
                    seed, options["poses"], options["noise"], options["share"]
                )
            else:
                measured = read_g2o(f"{folder}/CSAIL.g2o").first(options["poses"])
                problem = graph_with_outliers(measured, seed, options["share"], options["mu"])
            yield dataset, seed, learn_sync(*problem, **rest)
