"""Figures of patterns, controllers, arms, poses and training, from arrays."""

import numpy as np

from encore.core.figures import COLORS, MUTED, new_figure
from encore.papers.sparse_sos.chains import chained_quartic
from encore.papers.sparse_sos.dense import DenseKKT
from encore.papers.sparse_sos.instances import LEVEL, OBSTACLES
from encore.papers.sparse_sos.pendulum import lyapunov
from encore.papers.sparse_sos.program import SOSProgram
from encore.papers.sparse_sos.solver import solve

TITLES = {
    "chains": "polynomials",
    "pendulum_swing": "pendulum",
    "packaged_graphs": "max-cut",
    "arms": "arm",
    "oscillators": "Duffing chain",
    "pose_loops": "pose loops",
    "g2o_pose_graphs": "pose graph (CSAIL)",
}


def pattern_figure(size: int, seed: int):
    """Nonzero patterns of the KKT matrix, and of the Newton matrix as numbered and as eliminated."""
    poly = chained_quartic(size, seed)
    program = SOSProgram.build(poly.exponents)
    solution = solve(program, program.objective @ poly.coeffs, 1e-4)
    kkt = DenseKKT(solution.cone, solution.q).matrix(solution)
    matrix = solution.hessian().tocoo()
    order = program.cone.permutation
    figure, panels = new_figure(7.4, 2.9, 1, 3)
    shown = (
        ("KKT matrix", *np.nonzero(kkt), len(kkt)),
        ("Newton matrix, as numbered", order[matrix.row], order[matrix.col], len(order)),
        ("Newton matrix, as eliminated", matrix.row, matrix.col, len(order)),
    )
    for axes, (title, rows, cols, n) in zip(panels, shown, strict=True):
        picture = np.zeros((n, n))
        picture[rows, cols] = 1.0
        axes.imshow(picture, cmap="Blues", vmin=0, vmax=1.3, interpolation="nearest")
        axes.set_title(f"{title}\n{n} rows, {100 * picture.mean():.0f} % nonzero", fontsize=8)
        axes.grid(visible=False)
        axes.set(xlabel="column", ylabel="row")
    return figure


def pendulum_figure(arrays):
    """Certified set of the first seed before and after training, with closed-loop trajectories."""
    key = min(name for name in arrays if name.endswith("/paths")).removesuffix("paths")
    paths, shapes, gains = (arrays[key + name] for name in ("paths", "shapes", "gains"))
    figure, panels = new_figure(7.4, 3.2, 1, 2, sharey=True)
    angle, rate = np.meshgrid(np.linspace(-np.pi, np.pi, 241), np.linspace(-3, 3, 241))
    for axes, path, shape, gain, title in zip(
        panels, paths, shapes, gains, ("before training", "after training"), strict=True
    ):
        value = lyapunov(shape, angle, rate)
        color = COLORS[1] if title.startswith("before") else COLORS[2]
        axes.contourf(angle, rate, value, levels=[0, LEVEL], colors=[color], alpha=0.2)
        axes.contour(angle, rate, value, levels=[LEVEL], colors=[color], linewidths=1.2)
        for line in np.moveaxis(path, 2, 0):
            inside = np.abs(line[:, 0]) < np.pi
            stop = len(line) if inside.all() else int(np.argmin(inside))
            axes.plot(line[:stop, 0], line[:stop, 1], color=COLORS[0], lw=0.9)
            axes.plot(*line[0], "o", ms=3, color=COLORS[0])
        axes.plot(0, 0, "k+", ms=7)
        label = ", ".join(f"{k:.1f}" for k in gain)
        axes.set_title(f"{title}: k = ({label})", fontsize=9)
        axes.set(xlim=(-np.pi, np.pi), ylim=(-3, 3), xlabel="angle from upright [rad]")
    panels[0].set_ylabel("angular velocity [rad/s]")
    return figure


def arms_figure(arrays):
    """Proposals (dashed) and their projections before and after training, one panel per seed."""
    keys = sorted(name.removesuffix("joints") for name in arrays if name.endswith("/joints"))[:3]
    figure, panels = new_figure(2.5 * len(keys) + 0.4, 3.1, 1, len(keys), squeeze=False)
    for axes, key in zip(panels[0], keys, strict=True):
        for joints, pose, color, label in zip(
            arrays[key + "joints"], arrays[key + "proposals"], (COLORS[1], COLORS[2]),
            ("before", "after"), strict=True,
        ):  # fmt: skip
            chain = np.vstack([np.zeros(2), joints])
            axes.plot(*chain.T, "o-", ms=3, color=color, label=f"projected, {label}")
            axes.plot(
                *np.vstack([np.zeros(2), pose]).T, "--", lw=0.9, color=color,
                label=f"proposed, {label}",
            )  # fmt: skip
        axes.plot(*arrays[key + "goal"], "*", ms=11, color=COLORS[0], label="goal")
        for x, y, radius in OBSTACLES:
            circle = np.exp(1j * np.linspace(0, 2 * np.pi, 60)) * radius + x + 1j * y
            axes.fill(circle.real, circle.imag, color=MUTED, alpha=0.6)
        axes.set_title(f"seed {key.split('/')[1]}", fontsize=9)
        axes.set(aspect="equal", xlabel="x [links]")
    panels[0, 0].set_ylabel("y [links]")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=7)
    return figure


def poses_figure(arrays):
    """Angle error of every pose, and the learned weights of closures: one row per data set of poses."""
    shown = [name for name in ("g2o_pose_graphs", "pose_loops") if name in arrays]
    figure, panels = new_figure(7.4, 2.6 * len(shown), len(shown), 2, squeeze=False)
    for (left, right), name in zip(panels, shown, strict=True):
        mine = arrays[name]
        key = min(k for k in mine if k.endswith("/rotations")).removesuffix("rotations")
        first, last, reference = mine[key + "rotations"]
        for rotations, color, label in (
            (first, COLORS[1], "all weights 1"),
            (last, COLORS[2], "learned weights"),
        ):
            left.plot(_angles(rotations, reference), color=color, lw=1.2, label=label)
        left.set(yscale="log", xlabel="pose", ylabel="rotation error [degrees]", title=TITLES[name])
        left.legend(fontsize=7)
        outliers = mine[key + "outliers"]
        closures = np.abs(np.diff(mine[key + "edges"], axis=1)[:, 0]) != 1
        weights, bins = mine[key + "weights"], np.linspace(0, 1, 21)
        parts = [weights[closures & ~outliers], weights[outliers]]
        right.hist(
            parts, bins=bins, stacked=True, color=[COLORS[2], COLORS[1]],
            label=["measured closures", "planted outliers"],
        )  # fmt: skip
        right.set(xlabel="learned weight", ylabel="loop closures")
        right.legend(fontsize=7)
    return figure


def _angles(rotations: np.ndarray, reference: np.ndarray) -> np.ndarray:
    u, _, vt = np.linalg.svd((rotations @ reference.swapaxes(-1, -2)).sum(0))
    turn = u @ np.diag([*[1.0] * (len(u) - 1), np.linalg.det(u @ vt)]) @ vt
    gaps = (turn @ reference).swapaxes(-1, -2) @ rotations
    sine = np.linalg.norm(gaps - gaps.swapaxes(-1, -2), axis=(1, 2)) / np.sqrt(8.0)
    cosine = (np.trace(gaps, axis1=1, axis2=2) - (gaps.shape[-1] - 2)) / 2
    return np.degrees(np.arctan2(sine, cosine)) + 1e-4


def curves_figure(arrays):
    """Training curves: losses relative to their start, margins as they are; one line per seed."""
    figure, panels = new_figure(7.4, 3.0, 1, 2)
    for place, (name, mine) in enumerate(arrays.items()):
        label = TITLES[name]
        for key in sorted(k for k in mine if k.endswith("/curve")):
            curve = mine[key]
            if name in ("pendulum_swing", "oscillators"):
                panels[1].plot(-curve, color=COLORS[place % 7], lw=1, label=label)
            else:
                panels[0].plot(curve / curve[0], color=COLORS[place % 7], lw=1, label=label)
            label = None
    panels[0].set(yscale="log", xlabel="training step", ylabel="loss / first loss")
    panels[1].axhline(0, color=MUTED, lw=0.8)
    panels[1].set(xlabel="training step", ylabel="margin (minus penalty) [1/s]")
    for axes in panels:
        axes.legend(fontsize=7)
    return figure
