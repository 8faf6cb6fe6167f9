"""The LMI: its quadratic form, its gradient, peers (scipy, cvxpy, exact fractions), simulated decay."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_lyapunov

from encore.papers.lyapunov_observer import (
    NeuralObserver,
    ObserverNet,
    UncertainLTI,
    finetune_lmi,
    lmi_matrix,
    lyapunov_value,
    pendulum,
    verify_certificate,
)
from encore.papers.lyapunov_observer.lmi import adjoint, assemble, smooth_lambda_max
from encore.papers.lyapunov_observer.sdp import lmi_feasibility, train_direct_sdp

RHO = 0.2
CUSTOM = (lambda v: v + 0.3 * torch.sin(v), (0.7, 1.3))


def observer(hidden=(5, 4, 3), seed=0, activation="tanh", sector=None):
    plant = pendulum()
    net = ObserverNet(2, 2, 1, hidden, activation, seed, sector)
    return NeuralObserver(plant, net, 0.1)


def random_P(size, rng):
    L = rng.normal(size=(size, size))
    return L @ L.T + 0.1 * np.eye(size)


def states(obs, eta):
    """eta' and the layer outputs of the net at error states (B, m)."""
    v, layers = torch.from_numpy(eta @ obs.C_e.T), []
    for weight in obs.weights[:-2]:
        v = obs.net.act(v @ weight.T)
        layers.append(v.numpy())
    return obs.error_derivative(torch.from_numpy(eta)).numpy(), layers


@pytest.mark.parametrize("hidden", [(), (4,), (5, 4, 3)])
@pytest.mark.parametrize("kind", ["tanh", "custom"])
def test_H_is_the_explicit_quadratic_form(hidden, kind):
    activation, sector = (kind, None) if kind == "tanh" else CUSTOM
    a, b = sector or (0.0, 1.0)
    obs, rng = observer(hidden, 1, activation, sector), np.random.default_rng(0)
    P, lam = random_P(3, rng), [rng.uniform(0.5, 2, size=h) for h in hidden]
    H = lmi_matrix(obs, P, lam, RHO)
    assert np.array_equal(H, H.T)
    W = [weight.numpy() for weight in obs.weights]
    for _ in range(20):
        eta, w = rng.normal(size=3), [rng.normal(size=h) for h in hidden]
        rate = obs.A_e @ eta - W[-1] @ obs.C_e @ eta
        if hidden:
            rate = rate - W[-2] @ w[-1]
        form = 2 * rate @ P @ eta + RHO * eta @ P @ eta
        before = obs.C_e @ eta
        for layer, weight, out in zip(lam, W, w, strict=False):
            v = weight @ before
            form += 2 * (layer * (out - a * v) * (b * v - out)).sum()
            before = out
        zeta = np.concatenate([eta, *w])
        assert zeta @ H @ zeta == pytest.approx(form, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("kind", ["tanh", "relu", "custom"])
def test_S_procedure_bounds_the_rate_of_V(kind):
    activation, sector = (kind, None) if kind != "custom" else CUSTOM
    obs, rng = observer((6, 5), 2, activation, sector), np.random.default_rng(1)
    P, lam = random_P(3, rng), [rng.uniform(0.1, 3, size=h) for h in (6, 5)]
    H, eta = lmi_matrix(obs, P, lam, RHO), 3 * rng.normal(size=(500, 3))
    rate, layers = states(obs, eta)
    left = 2 * np.einsum("bi,ij,bj->b", rate, P, eta) + RHO * np.einsum("bi,ij,bj->b", eta, P, eta)
    zeta = np.hstack([eta, *layers])
    assert (left <= np.einsum("bi,ij,bj->b", zeta, H, zeta) + 1e-9).all()


@pytest.mark.parametrize("top", [1, 8])
@pytest.mark.parametrize("sector", [(0.0, 1.0), (0.2, 1.1)])
def test_gradient_agrees_with_differences_and_with_autograd_through_eigh(top, sector):
    obs, rng = observer((4, 3), 3), np.random.default_rng(2)
    W = [weight.numpy() for weight in obs.weights]
    P, lam = random_P(3, rng), [rng.uniform(0.5, 2, size=h) for h in (4, 3)]

    def value(W, lam, P):
        H = assemble(W, lam, P, obs.A_e, obs.C_e, RHO, sector)
        return smooth_lambda_max(H, top)

    _, G, _ = value(W, lam, P)
    d_P, d_W, d_lam = adjoint(G, W, lam, P, obs.A_e, obs.C_e, RHO, sector)
    h = 1e-6
    for arrays, gradients in ((W, d_W), (lam, d_lam)):
        for array, gradient in zip(arrays, gradients, strict=True):
            for index in np.ndindex(array.shape):
                array[index] += h
                up = value(W, lam, P)[0]
                array[index] -= 2 * h
                down = value(W, lam, P)[0]
                array[index] += h
                assert gradient[index] == pytest.approx((up - down) / (2 * h), rel=1e-5, abs=1e-5)
    S = rng.normal(size=(3, 3))
    S = S + S.T
    slope = (value(W, lam, P + h * S)[0] - value(W, lam, P - h * S)[0]) / (2 * h)
    assert (d_P * S).sum() == pytest.approx(slope, rel=1e-5)
    H = torch.from_numpy(assemble(W, lam, P, obs.A_e, obs.C_e, RHO, sector)).requires_grad_()
    (torch.logsumexp(20 * torch.linalg.eigvalsh(H)[-top:], 0) / 20).backward()
    assert G == pytest.approx(H.grad.numpy(), abs=1e-9)


@pytest.mark.parametrize("shift", [0.5, -0.5])
def test_linear_case_is_feasible_iff_a_lyapunov_solution_exists(shift):
    """A_cl + rho/2 I Hurwitz (shift > 0) or not (shift < 0), by scipy's Lyapunov equation."""
    rng = np.random.default_rng(3)
    obs = observer(())
    raw = rng.normal(size=(3, 2))
    A_cl = obs.A_e - raw @ obs.C_e
    abscissa = np.linalg.eigvals(A_cl).real.max()
    A_e = obs.A_e - (abscissa + RHO / 2 + shift) * np.eye(3)
    A_cl = A_e - raw @ obs.C_e
    solution = solve_continuous_lyapunov((A_cl + RHO / 2 * np.eye(3)).T, -np.eye(3))
    exists = bool(np.linalg.eigvalsh((solution + solution.T) / 2)[0] > 0)
    assert exists == (shift > 0)
    assert (lmi_feasibility([raw], A_e, obs.C_e, RHO)[0] > 1e-6) == exists
    if exists:
        H = assemble([raw], [], solution, A_e, obs.C_e, RHO)
        assert H == pytest.approx(-np.eye(3), abs=1e-8)


def test_fine_tuning_linear_gains_reaches_a_hurwitz_error():
    obs = observer(())
    assert finetune_lmi(obs, RHO).lambda_max < -1e-3
    A_cl = obs.A_e - obs.weights[-1].numpy() @ obs.C_e
    assert np.linalg.eigvals(A_cl).real.max() < -RHO / 2
    assert verify_certificate(obs, RHO).valid


@pytest.fixture(scope="module")
def certified():
    obs = observer((6, 5), seed=5)
    assert not verify_certificate(obs, RHO).valid  # nothing to verify yet
    report = finetune_lmi(obs, RHO)
    return obs, report


def test_a_certified_observer_decays_at_the_promised_rate(certified):
    obs, report = certified
    certificate = verify_certificate(obs, RHO, 1.0)
    assert certificate.valid, certificate.violated
    assert report.history[0] > 0 > report.lambda_max == report.history[-1]
    assert certificate.lambda_max == pytest.approx(report.lambda_max, abs=1e-9)
    eta = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 5
    dtau, value = 0.01, lyapunov_value(obs, eta)
    for _ in range(1000):
        eta = obs.error_step(eta, dtau)
        after = lyapunov_value(obs, eta)
        assert (after <= value * np.exp(-RHO * dtau) * (1 + 1e-9)).all()
        value = after


def test_the_ultimate_bound_holds_under_the_worst_disturbance(certified):
    obs, _ = certified
    M_w, P = 1.5, torch.from_numpy(obs.P)
    bound = verify_certificate(obs, RHO, M_w).bound
    eta = torch.zeros(50, 3, dtype=torch.float64) + 0.01 * torch.randn(50, 3, dtype=torch.float64)
    for _ in range(3000):
        push = eta @ P
        eta = obs.error_step(eta, 0.02, M_w * push / push.norm(dim=-1, keepdim=True))
        assert (eta.norm(dim=-1) <= bound).all()


def test_the_certificate_holds_in_exact_arithmetic(certified):
    obs, _ = certified
    exact = np.vectorize(Fraction, otypes=[object])
    W = [exact(weight.numpy()) for weight in obs.weights]
    H = assemble_exact(
        W, [exact(m) for m in obs.multipliers], exact(obs.P), exact(obs.A_e), exact(obs.C_e)
    )
    floats = lmi_matrix(obs, obs.P, obs.multipliers, RHO)
    assert np.abs(H.astype(float) - floats).max() < 1e-12
    rounded = np.vectorize(lambda x: Fraction(round(x * 2**40), 2**40), otypes=[object])(H)
    assert np.abs((rounded - H).astype(float)).max() < 1e-11
    assert is_positive(-rounded - exact(1e-9 * np.eye(len(H))))  # slack above the rounding
    assert is_positive(exact(obs.P))


def assemble_exact(W, lam, P, A_e, C_e):
    rho = Fraction(RHO)
    PA = P @ (A_e - W[-1] @ C_e)
    sizes = np.cumsum([len(P), *map(len, lam)])
    H = np.full((sizes[-1], sizes[-1]), Fraction(0), dtype=object)
    m = len(P)
    H[:m, :m] = PA + PA.T + rho * P
    H[sizes[0] : sizes[1], :m] = lam[0][:, None] * (W[0] @ C_e)
    H[sizes[1] : sizes[2], sizes[0] : sizes[1]] = lam[1][:, None] * W[1]
    H[sizes[1] : sizes[2], :m] = -(W[2].T @ P)
    for i in range(m, sizes[-1]):
        H[i, i] = -2 * np.concatenate(lam)[i - m]
        H[:i, i] = H[i, :i]
    return H


def is_positive(matrix):
    """Exact LDL' of a matrix of fractions."""
    A = matrix.copy()
    for k in range(len(A)):
        if A[k, k] <= 0:
            return False
        factor = A[k + 1 :, k] / A[k, k]
        A[k + 1 :, k + 1 :] = A[k + 1 :, k + 1 :] - factor[:, None] * A[k, k + 1 :]
    return True


def test_cvxpy_agrees_with_valid_at_fixed_weights(certified):
    obs, _ = certified
    outcomes = []
    for weights in (obs.weights, observer((6, 5), seed=8).weights):
        arrays = [weight.numpy() for weight in weights]
        best, P, layers = lmi_feasibility(arrays, obs.A_e, obs.C_e, RHO)
        trial = observer((6, 5))
        with torch.no_grad():
            for parameter, weight in zip(trial.net.weights, weights, strict=True):
                parameter.copy_(weight)
        ours = verify_certificate(trial, RHO, P=obs.P, Lambda=obs.multipliers).valid
        theirs = verify_certificate(trial, RHO, P=P, Lambda=layers).valid
        assert theirs == (best > 1e-9)
        assert theirs or not ours  # what cvxpy proves infeasible, we never call valid
        outcomes.append((ours, theirs))
    assert outcomes == [(True, True), (False, False)]


def test_rotating_neurons_of_a_layer_changes_nothing(certified):
    obs, _ = certified
    order = np.random.default_rng(0).permutation(6)
    turned = observer((6, 5))
    W1, W2, *rest = obs.weights
    with torch.no_grad():
        for parameter, weight in zip(
            turned.net.weights, [W1[order], W2[:, order], *rest], strict=True
        ):
            parameter.copy_(weight)
    lam = [obs.multipliers[0][order], obs.multipliers[1]]
    eigenvalues = [
        np.linalg.eigvalsh(lmi_matrix(o, obs.P, layers, RHO))
        for o, layers in ((obs, obs.multipliers), (turned, lam))
    ]
    assert eigenvalues[0] == pytest.approx(eigenvalues[1], abs=1e-12)


def test_verification_trusts_nothing(certified):
    obs, _ = certified
    wrong = verify_certificate(obs, RHO, P=-obs.P)
    assert not wrong.valid
    assert any("P" in line for line in wrong.violated)
    assert not verify_certificate(obs, rho=50.0).valid
    assert not verify_certificate(obs, RHO, Lambda=[-m for m in obs.multipliers]).valid
    spoiled = [obs.multipliers[0].copy(), obs.multipliers[1]]
    spoiled[0][0] = np.nan
    assert verify_certificate(obs, RHO, Lambda=spoiled).violated == ("P or Lambda is not finite",)
    changed = observer((6, 5), seed=11)
    changed.P, changed.multipliers = obs.P, obs.multipliers
    assert not verify_certificate(changed, RHO).valid  # a certificate of other weights
    with pytest.raises(ValueError, match="7 multipliers"):
        verify_certificate(obs, RHO, Lambda=np.ones(7))
    with pytest.raises(ValueError, match="rho"):
        finetune_lmi(obs, -1.0)


def test_the_margin_of_the_certificate_is_not_crossed_by_a_singular_H():
    """-H singular up to rounding: valid must be refused although floating eigenvalues may be < 0."""
    plant = UncertainLTI(np.zeros((1, 1)), [[1.0]], [[1.0]], [[1.0]])
    obs = NeuralObserver(plant, ObserverNet(1, 1, 1, ()), 0.1)
    with torch.no_grad():
        obs.net.weights[0].copy_(torch.tensor([[2.0], [1.0]]))
    A_cl = obs.A_e - obs.weights[-1].numpy() @ obs.C_e  # eigenvalues -1, -1
    rho = 2.0  # A_cl + rho/2 I is not Hurwitz: no certificate exists
    P = solve_continuous_lyapunov((A_cl + (rho / 2 - 1e-9) * np.eye(2)).T, -1e-12 * np.eye(2))
    assert not verify_certificate(obs, rho, P=(P + P.T) / 2).valid


@pytest.mark.parametrize("hidden", [(), (3, 3)])
def test_direct_sdp_finds_a_certificate_on_a_small_net(hidden):
    obs = observer(hidden, seed=2)
    hidden_weights = [weight.numpy() for weight in obs.weights[: len(hidden)]]
    report = train_direct_sdp(obs.system, hidden_weights, RHO, max_seconds=60)
    assert report.finished
    assert report.size == 3 + sum(hidden)
    with torch.no_grad():
        for parameter, weight in zip(obs.net.weights, report.weights, strict=True):
            parameter.copy_(torch.as_tensor(weight))
    assert verify_certificate(obs, RHO, P=report.P, Lambda=report.Lambda).valid
    assert report.lambda_max < 0


def test_direct_sdp_is_really_cut_off():
    plant = pendulum()
    net = ObserverNet(2, 2, 1, (40, 40), seed=0)
    report = train_direct_sdp(
        plant, [w.detach().numpy() for w in net.weights[:2]], RHO, max_seconds=0.2
    )
    assert (report.finished, report.status, report.seconds) == (False, "cut off", 0.2)
    with pytest.raises(ValueError, match="MOSEK"):
        train_direct_sdp(plant, [], RHO, solver="MOSEK")
    with pytest.raises(ValueError, match=r"hidden_weights\[0\]"):
        train_direct_sdp(plant, [np.ones((3, 5))], RHO)
