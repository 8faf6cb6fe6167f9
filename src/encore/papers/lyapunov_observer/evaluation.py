"""Which observers the experiments train, and the numbers that the claims speak of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.network import ObserverNet
from encore.papers.lyapunov_observer.observer import NeuralObserver


@dataclass(frozen=True)
class Case:
    """One observer of the experiments; role: "main", "ablation" (another net) or "other" (system)."""

    system: UncertainLTI
    net: str
    hidden: tuple[int, ...]
    seed: int
    role: str

    @property
    def key(self) -> str:
        """ "SYSTEM/net/seed", the name of the case in files."""
        return f"{self.system.name}/{self.net}/{self.seed}"

    def fresh(self, eps: float) -> NeuralObserver:
        """The untrained observer of this case."""
        plant = self.system
        net = ObserverNet(plant.n_y, plant.n_x, plant.n_d, self.hidden, seed=self.seed)
        return NeuralObserver(plant, net, eps)

    def factors(self) -> dict[str, str]:
        """Factor columns of the metrics table."""
        return {"system": self.system.name, "net": self.net, "role": self.role}


def cases(
    systems: Mapping[str, Mapping],
    main: str,
    nets: Mapping[str, Sequence[int]],
    main_net: str,
    seeds: Sequence[int],
    other_seeds: Sequence[int],
) -> Iterator[Case]:
    """All nets on the main system, the main net on the other systems, every seed."""
    for name, record in systems.items():
        system = UncertainLTI.from_dict(record)
        for net, hidden in nets.items() if name == main else [(main_net, nets[main_net])]:
            role = "other" if name != main else "main" if net == main_net else "ablation"
            for seed in seeds if name == main else other_seeds:
                yield Case(system, net, tuple(hidden), seed, role)


def rate_loop(system: UncertainLTI, state: int) -> UncertainLTI:
    """One state of a plant with its own disturbance: a plant whose error state is a plane."""
    row = slice(state, state + 1)
    one = np.eye(1)
    return UncertainLTI(system.A[row, row], system.B[row], one, one, f"{system.name}_RATE")


def log_linearity(counts, shares) -> float:
    """R^2 of log(1 - share) against the number of samples, where 0 < 1 - share."""
    x, gap = np.asarray(counts, dtype=float), 1 - np.asarray(shares, dtype=float)
    keep = gap > 0
    return float(np.corrcoef(x[keep], np.log(gap[keep]))[0, 1] ** 2)
