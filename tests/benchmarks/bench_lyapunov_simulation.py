"""Closed loop of 100 trials x 10,000 steps, arrays against tensors, and the lattice-Boltzmann step.

Prints seconds and ratios; asserts nothing.
"""

import time

import numpy as np

from encore.papers.lyapunov_observer.lbm import LatticeBoltzmann
from encore.papers.lyapunov_observer.linear_systems import UncertainLTI
from encore.papers.lyapunov_observer.network import ObserverNet
from encore.papers.lyapunov_observer.observer import NeuralObserver
from encore.papers.lyapunov_observer.simulate import ArrayObserver, closed_loop, draw_trials


def aircraft():
    """A stable plant of the size of the aircraft models with a network of 128 neurons."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4)) - 4 * np.eye(4)
    system = UncertainLTI(a, rng.normal(size=(4, 3)), np.eye(4), np.eye(4)[:, 1:3])
    net = ObserverNet(4, 4, 2, (32, 64, 32), seed=0)
    for weight in net.weights:
        weight.data.mul_(0.1)
    net.weights[-1].data[:4] = 2 * net.weights[-1].new_ones(4).diag()
    net.weights[-1].data[4:] = net.weights[-1].new_tensor([[0, 1.0, 0, 0], [0, 0, 1.0, 0]])
    return system, NeuralObserver(system, net, 0.1)


def seconds(call, repeats=1):
    """Wall time of one call, the least of ``repeats``."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def closed_loops():
    system, observer = aircraft()
    trials = draw_trials(system, 100, 0)
    spent = seconds(lambda: closed_loop(system, observer, trials, seconds=20.0, dt=0.002))
    print(f"closed loop, 100 trials x 10,000 steps, 128 neurons: {spent:.2f} s (target 8 s)")


def arrays_against_tensors():
    _system, observer = aircraft()
    arrays = ArrayObserver(observer)
    rng = np.random.default_rng(1)
    values = [rng.normal(size=(100, k)) for k in (4, 2, 3, 4)]
    times = [
        seconds(lambda o=o: [o.step(*values, 0.002) for _ in range(300)], 3)
        for o in (observer, arrays)
    ]
    print(f"one step of 100 trials: tensors {times[0] / 300 * 1e6:.0f} us, "
          f"arrays {times[1] / 300 * 1e6:.0f} us, ratio {times[0] / times[1]:.1f}")  # fmt: skip


def lattice_boltzmann():
    flow = LatticeBoltzmann()
    spent = seconds(lambda: flow.step(200), 3) / 200
    print(f"lattice Boltzmann, 192 x 96 cells: {spent * 1e3:.2f} ms a step, "
          f"{192 * 96 / spent / 1e6:.0f} million cells a second")  # fmt: skip


if __name__ == "__main__":
    closed_loops()
    arrays_against_tensors()
    lattice_boltzmann()
