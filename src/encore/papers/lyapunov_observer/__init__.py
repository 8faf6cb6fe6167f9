"""Provable neural network observers: Lyapunov pre-training at points, then LMI fine-tuning.

An observer estimates the state and a lumped disturbance of a linear(ised) plant; its correction is a
bias-free neural network of the output error. Stage 1 (``pretrain_pointwise``) trains it by a Lyapunov
decrease at sampled error states, stage 2 (``finetune_lmi``) until a linear matrix inequality holds,
and ``verify_certificate`` re-checks that inequality rigorously. Names are loaded when first used.
"""

from importlib import import_module

_HOMES = {
    "auv": ["VortexStreetAUV"],
    "baselines": ["ESO", "PID", "LuenbergerLQE", "NeuralLander", "SuperTwistingObserver"],
    "errors": ["NotObservableError", "UnsupportedActivationError"],
    "linear_systems": ["UncertainLTI", "pendulum", "x29"],
    "lmi": ["Certificate", "LMIReport", "finetune_lmi", "lmi_matrix", "verify_certificate"],
    "lyapunov": ["F_V", "coverage_bound", "local_radius", "lyapunov_value"],
    "network": ["ObserverNet"],
    "observer": ["NeuralObserver"],
    "pretrain": ["PointReport", "pretrain_pointwise"],
    "quadrotor": ["QuadrotorGroundEffect"],
    "sdp": ["SDPReport", "train_direct_sdp"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
