"""Training runs: what they return, the optimiser, and the proof at the end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from encore.papers.sparse_sos.certificate import verify_certificate
from encore.papers.sparse_sos.layer import SOSLayer


@dataclass
class Run:
    """Outcome of one training run.

    Attributes:
        before, after: task numbers by name.
        curve: (steps + 1,) loss.
        arrays: what figures draw.
    """

    before: dict[str, float]
    after: dict[str, float]
    curve: np.ndarray
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def change(self) -> dict[str, float]:
        """margin_gain, loss_ratio and error_ratio, where the run has these numbers."""
        found = {}
        if "margin" in self.after:
            found["margin_gain"] = self.after["margin"] - self.before["margin"]
        for name, key in (("loss", "loss_ratio"), ("rotation_error", "error_ratio")):
            if name in self.after:
                found[key] = self.after[name] / self.before[name]
        return found


def descend(
    parameters: list[Tensor], loss: Callable[[], Tensor], steps: int, rate: float
) -> np.ndarray:
    """Adam with a cosine-decayed rate; returns the loss before every step and at the end.

    The parameters of the least loss are kept.
    """
    optimizer = torch.optim.Adam(parameters, lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps + 1)
    best, kept, curve = np.inf, [], []
    for step in range(steps + 1):
        optimizer.zero_grad()
        value = loss()
        curve.append(value.item())
        if value.item() < best:
            best, kept = value.item(), [p.detach().clone() for p in parameters]
        if step < steps:
            value.backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    return np.array(curve)


def tensor(values: Any) -> Tensor:
    """A float64 tensor that is trained."""
    return torch.tensor(np.asarray(values, float), requires_grad=True)


def proven(layer: SOSLayer, *parts: Tensor) -> dict[str, float]:
    """Least eigenvalue and rigorous bound of the certificate at some numbers."""
    full = SOSLayer(layer.program, mu=layer.mu, outputs=("gram",))
    inputs = [part.detach()[None] for part in parts]
    report = verify_certificate(inputs[0][0].numpy(), full(*inputs))
    return {"min_eig": report.min_eig, "rigorous_bound": report.rigorous_bound}
