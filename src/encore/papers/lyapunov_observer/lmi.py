"""Stage 2: the linear matrix inequality H(theta) < 0, descent on its largest eigenvalue, certificates."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from encore.papers.lyapunov_observer.observer import NeuralObserver
from encore.papers.lyapunov_observer.pretrain import FLOOR, initial_factor, store

UNIT = 2.0**-53  # unit round-off of float64
TOP, SHARPNESS = 8, 20.0
BETA_1, BETA_2, ADAM_EPS = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class LMIReport:
    """Outcome of stage 2.

    lambda_max: largest eigenvalue of H at the end; iterations, seconds: cost of getting there.
    history: lambda_max before each iteration, and at the end; clock: seconds at those moments.
    """

    lambda_max: float
    iterations: int
    seconds: float
    history: np.ndarray = field(repr=False)
    clock: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Certificate:
    """Result of a rigorous check of H < 0, P > 0, Lambda > 0 in float64.

    P (m, m), Lambda (neurons,), rho: what was checked. lambda_max: of H, for information.
    condition: kappa(P). rate: rho/eps, decay rate of V in 1/s without disturbance rate.
    bound: ultimate bound 2 eps M_w sqrt(kappa(P))/rho of |eta|. delta: margin of the Cholesky test.
    valid: all conditions hold. violated: those that do not, in words.
    """

    P: np.ndarray | None
    Lambda: np.ndarray | None
    rho: float
    lambda_max: float
    condition: float
    rate: float
    bound: float
    delta: float
    valid: bool
    violated: tuple[str, ...]


# -- the matrix -----------------------------------------------------------------------------------


def lmi_matrix(obs: NeuralObserver, P, Lambda, rho: float) -> np.ndarray:
    """H (N, N), N = m + neurons, with V' + rho V <= zeta' H zeta for zeta = (eta, w_1 .. w_L), w = 0.

    P (m, m); Lambda: one vector of multipliers per hidden layer, or all of them in one vector.
    H holds A_cl'P + P A_cl + rho P (A_cl = A_e - W_{L+2} C_e), -P W_{L+1} beside the last layer,
    -2 Lambda_i on the diagonal, Lambda_i W_i between layers i-1 and i (W_1 C_e for the first). The
    sector [0, 1] enters as 2 w_i' Lambda_i (v_i - w_i) >= 0; for another sector [a, b] as
    2 (w_i - a v_i)' Lambda_i (b v_i - w_i). Source: arXiv 2609.30819; the layout is ours.
    """
    if not rho >= 0:
        raise ValueError(f"rho must be >= 0, got {rho}")
    P = np.asarray(P, dtype=np.float64)
    if P.shape != (obs.size, obs.size):
        raise ValueError(f"P has shape {P.shape}, the error state has {obs.size} components")
    weights = [weight.numpy() for weight in obs.weights]
    layers = split_multipliers(Lambda, obs.net.hidden)
    return assemble(weights, layers, P, obs.A_e, obs.C_e, rho, obs.net.sector)


def split_multipliers(Lambda, hidden: Sequence[int]) -> list[np.ndarray]:
    """Multipliers as one vector per hidden layer, from such a list or from one long vector."""
    rows = [np.ravel(np.asarray(row, dtype=np.float64)) for row in Lambda]
    flat = np.concatenate(rows) if rows else np.zeros(0)
    if flat.size != sum(hidden):
        raise ValueError(f"Lambda has {flat.size} multipliers, the net has {sum(hidden)} neurons")
    return np.split(flat, np.cumsum(hidden)[:-1]) if hidden else []


def assemble(weights, layers, P, A_e, C_e, rho, sector=(0.0, 1.0)) -> np.ndarray:
    """H of raw arrays: weights W_1..W_{L+2}, layers lambda_1..lambda_L."""
    (a, b), m = sector, len(P)
    PA = P @ (A_e - weights[-1] @ C_e)
    H = np.zeros((m + sum(map(len, layers)),) * 2)
    H[:m, :m] = PA + PA.T + rho * P
    before, end = slice(0, m), m
    for i, multipliers in enumerate(layers):
        W = weights[i] @ C_e if i == 0 else weights[i]
        here = slice(end, end + len(multipliers))
        scaled = multipliers[:, None] * W
        H[here, here] -= np.diag(2 * multipliers)
        H[here, before] += (a + b) * scaled
        if a * b:
            H[before, before] -= 2 * a * b * (W.T @ scaled)
        before, end = here, here.stop
    if layers:
        H[before, :m] -= weights[-2].T @ P
    lower = np.tril(H, -1)
    return lower + lower.T + np.diag(np.diag(H))


def adjoint(G, weights, layers, P, A_e, C_e, rho, sector=(0.0, 1.0)):
    """Gradients of <G, H>, G symmetric: (d/dP, [d/dW_i], [d/dlambda_i]) for symmetric P."""
    (a, b), m = sector, len(P)
    A_cl = A_e - weights[-1] @ C_e
    core = G[:m, :m]
    AG = A_cl @ core
    d_P = AG + AG.T + rho * core
    d_W = [np.zeros_like(weight) for weight in weights]
    d_W[-1] = -2 * P @ core @ C_e.T
    d_layers = []
    before, end = slice(0, m), m
    for i, multipliers in enumerate(layers):
        W = weights[i] @ C_e if i == 0 else weights[i]
        here = slice(end, end + len(multipliers))
        cross = 2 * (a + b) * G[here, before]
        if a * b:
            cross = cross - 4 * a * b * (W @ G[before, before])
        change = multipliers[:, None] * cross
        d_W[i] = change @ C_e.T if i == 0 else change
        along = (cross * W).sum(1)
        if a * b:
            along += 2 * a * b * ((W @ G[before, before]) * W).sum(1)
        d_layers.append(along - 2 * np.diag(G)[here])
        before, end = here, here.stop
    if layers:
        last = G[:m, before]
        d_W[-2] = -2 * P @ last
        WG = weights[-2] @ last.T
        d_P = d_P - WG - WG.T
    return d_P, d_W, d_layers


def smooth_lambda_max(H, top: int = TOP, sharpness: float = SHARPNESS):
    """logsumexp(sharpness lambda)/sharpness over the ``top`` largest eigenvalues of H.

    Returns (value, G, lambda_max) with G = sum_k p_k u_k u_k' its gradient with respect to H:
    eigenvectors are treated as constants, so that no derivative of eigh is needed.
    """
    N = len(H)
    first = max(0, N - top)
    values, vectors = eigh(
        H, subset_by_index=[first, N - 1], driver="evr", check_finite=False, overwrite_a=False
    )
    powers = np.exp(sharpness * (values - values[-1]))
    total = powers.sum()
    value = values[-1] + np.log(total) / sharpness
    return float(value), (vectors * (powers / total)) @ vectors.T, float(values[-1])


# -- training -------------------------------------------------------------------------------------


def finetune_lmi(
    obs: NeuralObserver,
    rho: float = 0.2,
    margin: float = 1e-3,
    max_seconds: float = 600.0,
    *,
    max_iterations: int = 20_000,
    learning_rate: float = 2e-3,
    multiplier_rate: float = 3e-2,
    beta: float = 1e-6,
    top: int = TOP,
    sharpness: float = SHARPNESS,
) -> LMIReport:
    """Train weights, P = LL' + 0.01 I and multipliers in place until lambda_max(H) < -margin.

    Loss: smooth lambda_max of H + beta |weights|^2 (``top=1``: the plain largest eigenvalue, the
    paper's penalty). Adam with two rates: weights and L, and log-multipliers. Starts from obs.P and
    obs.multipliers, or from the identity and ones. ``max_seconds`` is a safety net; a run that ends
    by ``max_iterations`` or by success is the same on every machine. Source: arXiv 2609.30819,
    stage 2; the two rates and the detached eigenvectors are our choice.

    Raises
    ------
    ValueError: rho, beta negative, or margin, max_seconds not positive.
    """
    for name, value in (("rho", rho), ("beta", beta)):
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, got {value}")
    for name, value in (("margin", margin), ("max_seconds", max_seconds)):
        if not value > 0:
            raise ValueError(f"{name} must be > 0, got {value}")
    problem = _Problem(obs, rho, beta, top, sharpness)
    adam = _Adam(problem.rates(learning_rate, multiplier_rate))
    history, clock, start = [], [], time.perf_counter()
    while True:
        lambda_max, gradient = problem.gradient()
        history.append(lambda_max)
        clock.append(time.perf_counter() - start)
        done = lambda_max < -margin or len(history) > max_iterations or clock[-1] > max_seconds
        if done:
            break
        adam.step(problem.theta, gradient)
    problem.write()
    return LMIReport(history[-1], len(history) - 1, clock[-1], np.array(history), np.array(clock))


class _Problem:
    """All parameters in one vector theta; the weights, L and log-multipliers are views of it."""

    def __init__(self, obs, rho, beta, top, sharpness):
        self.obs, self.rho, self.beta = obs, rho, beta
        self.top, self.sharpness = top, sharpness
        weights = [weight.numpy() for weight in obs.weights]
        layers = obs.multipliers or [np.ones(width) for width in obs.net.hidden]
        parts = [*weights, initial_factor(obs), *(np.log(layer) for layer in layers)]
        self.theta = np.concatenate([part.ravel() for part in parts])
        cuts = np.cumsum([part.size for part in parts])[:-1]
        views = np.split(self.theta, cuts)
        views = [v.reshape(part.shape) for v, part in zip(views, parts, strict=True)]
        self.weights, self.factor = views[: len(weights)], views[len(weights)]
        self.logs = views[len(weights) + 1 :]
        self.n_weights = sum(weight.size for weight in weights)
        self.lower = np.tril(np.ones((obs.size, obs.size)))

    def matrices(self):
        L = self.factor * self.lower
        return L, L @ L.T + FLOOR * np.eye(self.obs.size), [np.exp(log) for log in self.logs]

    def gradient(self):
        """Largest eigenvalue of H, and the gradient of the loss."""
        obs, (L, P, layers) = self.obs, self.matrices()
        given = (self.weights, layers, P, obs.A_e, obs.C_e, self.rho, obs.net.sector)
        _, G, lambda_max = smooth_lambda_max(assemble(*given), self.top, self.sharpness)
        d_P, d_W, d_layers = adjoint(G, *given)
        d_logs = [d * layer for d, layer in zip(d_layers, layers, strict=True)]
        parts = [*d_W, 2 * (d_P @ L) * self.lower, *d_logs]
        gradient = np.concatenate([part.ravel() for part in parts])
        gradient[: self.n_weights] += 2 * self.beta * self.theta[: self.n_weights]
        return lambda_max, gradient

    def rates(self, learning_rate, multiplier_rate):
        rates = np.full(self.theta.size, learning_rate)
        rates[self.n_weights + self.factor.size :] = multiplier_rate
        return rates

    def write(self):
        _, P, layers = self.matrices()
        store(self.obs, self.weights, (P + P.T) / 2, layers)


class _Adam:
    """Adam (Kingma and Ba, 2015) on one vector with a rate per entry."""

    def __init__(self, rates):
        self.rates, self.steps = rates, 0
        self.mean, self.square = np.zeros_like(rates), np.zeros_like(rates)

    def step(self, theta, gradient):
        self.steps += 1
        self.mean += (1 - BETA_1) * (gradient - self.mean)
        self.square += (1 - BETA_2) * (gradient**2 - self.square)
        root = np.sqrt(self.square / (1 - BETA_2**self.steps)) + ADAM_EPS
        theta -= self.rates / (1 - BETA_1**self.steps) * self.mean / root


# -- certificates ---------------------------------------------------------------------------------


def verify_certificate(
    obs: NeuralObserver, rho: float = 0.2, M_w: float = 1.0, P=None, Lambda=None
) -> Certificate:
    """Re-check H < 0, P > 0 and Lambda > 0 for the weights as they are now; nothing is trusted.

    P and Lambda default to those stored in ``obs``. In float64 H is assembled and symmetrised;
    ``valid`` means that the Cholesky factorisations of -(H + delta I) and of P - delta I succeed,
    delta = 10 N u |H|_F with u = 2^-53, which exceeds the rounding errors of the factorisation
    (Rump, BIT 46, 2006), and that every multiplier is positive.

    Raises
    ------
    ValueError: shapes that do not fit, rho or M_w negative.
    """
    for name, value in (("rho", rho), ("M_w", M_w)):
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, got {value}")
    P = obs.P if P is None else np.array(P, dtype=np.float64)
    Lambda = obs.multipliers if Lambda is None else Lambda
    missing = [
        f"no {name}"
        for name, value, needed in (("P", P, True), ("Lambda", Lambda, obs.net.depth > 0))
        if value is None and needed
    ]
    if missing:
        return _invalid(rho, obs.eps, missing)
    P = (P + P.T) / 2
    layers = split_multipliers(Lambda if Lambda is not None else [], obs.net.hidden)
    flat = np.concatenate(layers) if layers else np.zeros(0)
    if not (np.isfinite(P).all() and np.isfinite(flat).all()):
        return _invalid(rho, obs.eps, ["P or Lambda is not finite"], P, flat)
    H = lmi_matrix(obs, P, layers, rho)
    if not np.isfinite(H).all():
        return _invalid(rho, obs.eps, ["H is not finite"], P, flat)
    delta = 10 * len(H) * UNIT * float(np.linalg.norm(H))
    violated = []
    if not _positive(-(H + delta * np.eye(len(H)))):
        violated.append("H + delta I is not negative definite")
    if not _positive(P - delta * np.eye(len(P))):
        violated.append("P - delta I is not positive definite")
    if not (flat > 0).all():
        violated.append(f"{int((flat <= 0).sum())} multipliers are not positive")
    spectrum = np.linalg.eigvalsh(P)
    kappa = float(spectrum[-1] / spectrum[0]) if spectrum[0] > 0 else float("inf")
    bound = 2 * obs.eps * M_w * kappa**0.5 / rho if rho > 0 and not violated else float("inf")
    return Certificate(
        P=P,
        Lambda=flat,
        rho=rho,
        lambda_max=float(np.linalg.eigvalsh(H)[-1]),
        condition=kappa,
        rate=rho / obs.eps,
        bound=bound,
        delta=delta,
        valid=not violated,
        violated=tuple(violated),
    )


def _positive(matrix) -> bool:
    try:
        cholesky(matrix, lower=True, check_finite=True)
    except (LinAlgError, ValueError):
        return False
    return True


def _invalid(rho, eps, violated, P=None, Lambda=None) -> Certificate:
    nan = float("nan")
    return Certificate(
        P, Lambda, rho, nan, nan, rho / eps, float("inf"), nan, False, tuple(violated)
    )
