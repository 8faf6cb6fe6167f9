"""Flow past a cylinder or a square by the D2Q9 lattice-Boltzmann method, vectorised numpy.

Two-relaxation-time collision (Ginzburg, Verhaeghe and d'Humieres, 2008) with the magic number 1/12,
which removes the third-order error of advection (3/16, the usual choice for walls, is unstable at our
open ends); half-way bounce-back at the body; velocity inlet and pressure outlet by non-equilibrium
extrapolation (Guo, Zheng and Shi, 2002); top and bottom periodic. Lattice units throughout: cell, step
and mean density are 1, the speed of sound is ``1 / sqrt(3)``.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Lattice velocities (9, 2): rest, then four pairs of opposite directions.
DIRECTIONS = np.array(
    [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]]
)
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = np.array([0, 2, 1, 4, 3, 6, 5, 8, 7])
MAGIC = 1 / 12


def equilibrium(density: Array, u: Array, v: Array) -> Array:
    """Second-order equilibrium populations (9, ...) of ``density``, ``u``, ``v`` (...)."""
    density, u, v = np.broadcast_arrays(density, u, v)
    along = np.tensordot(DIRECTIONS.astype(float), np.stack([u, v]), axes=1)
    weights = WEIGHTS.reshape(-1, *[1] * density.ndim)
    return weights * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u + v * v))


def obstacle(shape: str, nx: int, ny: int, centre: tuple[float, float], diameter: float):
    """Mask (ny, nx) of solid cells: a ``"cylinder"`` or a ``"square"`` of side ``diameter``."""
    y, x = np.mgrid[:ny, :nx].astype(float)
    dx, dy = x - centre[0], y - centre[1]
    if shape == "cylinder":
        return dx * dx + dy * dy < (diameter / 2) ** 2
    if shape == "square":
        return np.maximum(abs(dx), abs(dy)) < diameter / 2
    raise ValueError(f"shape must be 'cylinder' or 'square', got {shape!r}")


class LatticeBoltzmann:
    """Populations of a 2-D flow past one body, advanced by ``step``.

    ``nx`` by ``ny`` cells, body of ``diameter`` (cells) centred at ``centre`` (cells), inflow
    ``speed`` (cells per step), ``reynolds = speed * diameter / viscosity``. With ``closed=True`` the box
    is periodic on all sides, so that mass is conserved. The start is the inflow with a transverse
    perturbation (the same on every run), so that vortices soon shed.

    Raises ``ValueError`` for ``speed`` outside (0, 0.2] (compressible), ``reynolds <= 0``, a body that
    does not fit, or a relaxation time so near 1/2 that the scheme is unstable.
    """

    def __init__(
        self,
        nx: int = 192,
        ny: int = 96,
        *,
        diameter: float = 12.0,
        reynolds: float = 100.0,
        speed: float = 0.1,
        shape: str = "cylinder",
        centre: tuple[float, float] | None = None,
        closed: bool = False,
    ):
        centre = (nx / 4, ny / 2 - 0.5) if centre is None else centre
        if not 0 < speed <= 0.2:
            raise ValueError(f"speed must lie in (0, 0.2] cells per step, got {speed}")
        if not reynolds > 0:
            raise ValueError(f"reynolds must be positive, got {reynolds}")
        room = min(centre[0], nx - 1 - centre[0], centre[1], ny - 1 - centre[1])
        if not 2 <= diameter / 2 <= room - 2:
            raise ValueError(
                f"diameter {diameter} does not fit: {nx} x {ny} cells, centre {centre}"
            )
        self.nx, self.ny, self.diameter, self.speed = nx, ny, float(diameter), float(speed)
        self.centre, self.closed, self.steps = centre, closed, 0
        self.viscosity = speed * diameter / reynolds
        relaxation = 3 * self.viscosity + 0.5
        if relaxation < 0.505:
            raise ValueError(
                f"reynolds {reynolds} is too high for this grid: relaxation time {relaxation:.4f} < 0.505"
            )
        self._even = 1 / relaxation
        self._odd = 1 / (MAGIC / (relaxation - 0.5) + 0.5)
        self.solid = obstacle(shape, nx, ny, centre, diameter)
        self._rest = np.flatnonzero(self.solid)
        self._blocks = _streaming_blocks(nx, ny)
        self._into, self._from = _bounce_links(self.solid)
        y, x = np.mgrid[:ny, :nx].astype(float)
        bump = np.exp(
            -(((x - centre[0]) / (2 * diameter)) ** 2 + ((y - centre[1]) / diameter) ** 2)
        )
        v = np.where(self.solid, 0.0, 0.3 * speed * bump)
        u = np.where(self.solid, 0.0, speed)
        self.populations = equilibrium(np.ones((ny, nx)), u, v)
        self._next = np.empty_like(self.populations)
        self._work = np.empty((8, ny, nx))

    def mass(self) -> float:
        """Sum of the density over the fluid cells."""
        return float(self.populations[:, ~self.solid].sum())

    def velocity(self) -> Array:
        """Velocity (2, ny, nx) in cells per step, zero inside the body."""
        _, u, v = self._moments(self.populations)
        return np.where(self.solid, 0.0, np.stack([u, v]))

    def vorticity(self) -> Array:
        """Vorticity (ny, nx) dv/dx - du/dy, 1/step, by central differences."""
        u, v = self.velocity()
        return np.gradient(v, axis=1) - np.gradient(u, axis=0)

    def step(self, count: int = 1) -> None:
        """Advance ``count`` steps in place; raises ``FloatingPointError`` when the flow blows up."""
        for _ in range(count):
            self._collide()
            self._stream()
            if not self.closed:
                self._open_ends()
        self.steps += count
        if not np.isfinite(self.populations[0, 0, 0] + self.populations[:, :, -2].sum()):
            raise FloatingPointError(f"the flow is not finite after {self.steps} steps")

    @staticmethod
    def _moments(f):
        density = f.sum(axis=0)
        u = (f[1] - f[2] + f[5] - f[6] + f[7] - f[8]) / density
        v = (f[3] - f[4] + f[5] - f[6] - f[7] + f[8]) / density
        return density, u, v

    def _collide(self):
        """Relax even and odd parts of each pair of opposite directions, in place."""
        f = self.populations
        density, u, v, base, along, even, odd, spare = self._work
        np.sum(f, axis=0, out=density)
        for out, pairs in ((u, ((1, 5), (7, 0))), (v, ((3, 5), (0, 7)))):
            # momentum: forward minus backward population of each pair, with its sign
            (first, second), (plus, minus) = pairs
            np.subtract(f[first], f[first + 1], out=out)
            out += f[second]
            out -= f[second + 1]
            if plus:
                out += f[plus]
                out -= f[plus + 1]
            else:
                out -= f[minus]
                out += f[minus + 1]
        np.divide(1.0, density, out=spare)
        u *= spare
        v *= spare
        np.multiply(u, u, out=base)
        np.multiply(v, v, out=along)
        base += along
        base *= -1.5
        base += 1.0
        f[0] *= 1 - self._even
        np.multiply(base, density, out=along)
        along *= WEIGHTS[0] * self._even
        f[0] += along
        for i in (1, 3, 5, 7):
            cx, cy = DIRECTIONS[i]
            if cx and cy:
                (np.add if cy > 0 else np.subtract)(u, v, out=along)
            else:
                along[:] = u if cx else v
            np.add(f[i], f[i + 1], out=even)
            np.subtract(f[i], f[i + 1], out=odd)
            even *= -0.5 * self._even
            odd *= -0.5 * self._odd
            np.multiply(along, along, out=spare)
            spare *= 4.5
            spare += base
            spare *= density
            spare *= WEIGHTS[i] * self._even
            even += spare
            along *= density
            along *= 3 * WEIGHTS[i] * self._odd
            odd += along
            f[i] += even
            f[i] += odd
            f[i + 1] += even
            f[i + 1] -= odd

    def _stream(self):
        source, target = self.populations, self._next
        for i, to, of in self._blocks:
            target[i][to] = source[i][of]
        flat = target.reshape(9, -1)
        flat[:, self._rest] = WEIGHTS[:, None]
        target.reshape(-1)[self._into] = source.reshape(-1)[self._from]
        self.populations, self._next = target, source

    def _open_ends(self):
        f = self.populations
        for edge, inner, u_edge, density_edge in ((0, 1, self.speed, None), (-1, -2, None, 1.0)):
            density, u, v = self._moments(f[:, :, inner])
            rest = f[:, :, inner] - equilibrium(density, u, v)
            f[:, :, edge] = rest + equilibrium(
                density if density_edge is None else density_edge,
                u if u_edge is None else u_edge,
                v if u_edge is None else 0.0,
            )


def _streaming_blocks(nx, ny):
    """``(direction, target slices, source slices)`` that shift populations periodically."""

    def pieces(length, shift):
        if shift == 0:
            return [(slice(0, length), slice(0, length))]
        if shift > 0:
            return [
                (slice(1, length), slice(0, length - 1)),
                (slice(0, 1), slice(length - 1, length)),
            ]
        return [(slice(0, length - 1), slice(1, length)), (slice(length - 1, length), slice(0, 1))]

    return [
        (i, (to_y, to_x), (of_y, of_x))
        for i, (cx, cy) in enumerate(DIRECTIONS)
        for to_y, of_y in pieces(ny, cy)
        for to_x, of_x in pieces(nx, cx)
    ]


def _bounce_links(solid):
    """Flat indices of what a fluid cell receives from the body, and of what it sent there."""
    ny, nx = solid.shape
    into, source = [], []
    y, x = np.nonzero(~solid)
    for i, (cx, cy) in enumerate(DIRECTIONS):
        hit = solid[(y - cy) % ny, (x - cx) % nx]
        cells = (y * nx + x)[hit]
        into.append(i * ny * nx + cells)
        source.append(OPPOSITE[i] * ny * nx + cells)
    return np.concatenate(into), np.concatenate(source)


def record(
    flow: LatticeBoltzmann,
    *,
    warm_up: int,
    frames: int,
    every: int,
    window: tuple[int, int, int, int],
) -> dict[str, Array]:
    """Run ``flow`` and store its wake.

    After ``warm_up`` steps, ``frames`` frames, one per ``every`` steps, of the cells
    ``window = (x0, x1, y0, y1)`` (ends excluded). Returns ``velocity`` (frames, 2, y1-y0, x1-x0)
    float32 in units of the inflow speed, ``vorticity`` (ny, nx) of the last frame in units of
    speed/diameter, ``probe`` (frames * every,) the transverse velocity 2.5 diameters behind the body
    at every step in units of the speed, and ``mass`` (2,) at the first and last frame.
    Raises ``ValueError`` for a window outside the grid.
    """
    x0, x1, y0, y1 = window
    if not (0 <= x0 < x1 <= flow.nx and 0 <= y0 < y1 <= flow.ny):
        raise ValueError(f"window {window} does not fit the grid of {flow.nx} x {flow.ny} cells")
    flow.step(warm_up)
    column = min(round(flow.centre[0] + 2.5 * flow.diameter), flow.nx - 3)
    row = round(flow.centre[1])
    velocity = np.empty((frames, 2, y1 - y0, x1 - x0), dtype=np.float32)
    probe = np.empty(frames * every)
    mass = [flow.mass()]
    for k in range(frames):
        velocity[k] = flow.velocity()[:, y0:y1, x0:x1] / flow.speed
        for j in range(every):
            flow.step()
            probe[k * every + j] = flow._moments(flow.populations[:, row, column])[2] / flow.speed
    mass.append(flow.mass())
    return {
        "velocity": velocity,
        "vorticity": (flow.vorticity() * flow.diameter / flow.speed).astype(np.float32),
        "probe": probe.astype(np.float32),
        "mass": np.array(mass),
    }


def strouhal(signal: Array, diameter: float, speed: float) -> float:
    """Shedding frequency times ``diameter / speed`` of a transverse velocity (T,), one value a step.

    From the mean time between upward zero crossings of the centred signal. Raises ``ValueError`` when
    it holds fewer than two periods.
    """
    signal = np.asarray(signal, dtype=np.float64)
    signal = signal - signal.mean()
    up = np.flatnonzero((signal[:-1] < 0) & (signal[1:] >= 0))
    if len(up) < 3:
        raise ValueError(f"signal holds {max(len(up) - 1, 0)} periods, expected at least 2")
    exact = up + signal[up] / (signal[up] - signal[up + 1])
    return float((len(exact) - 1) / (exact[-1] - exact[0]) * diameter / speed)
