"""Differentiable sparse sum-of-squares layers: certified lower bounds whose gradients keep the sparsity.

The forward solves a sparse SOS relaxation (or a clique-sparse SDP) to a point of its central path; the
backward of the bound needs the moments only, and that of the certificate one sparse linear system
with the pattern of the cliques. Names are loaded when first used.
"""

from importlib import import_module

_HOMES = {
    "arms": ["arm_projection_program"],
    "baselines": ["DenseKKTLayer", "DiffcpLayer"],
    "block_sdp": ["BlockStructure"],
    "certificate": ["CertificateReport", "verify_certificate"],
    "chordal": ["chordal_cliques"],
    "errors": ["InfeasibleSOSError"],
    "graphs": ["maxcut_program"],
    "layer": ["BlockSDPLayer", "SOSLayer", "SOSOutput"],
    "oscillators": ["DuffingChain", "duffing_chain_program"],
    "pendulum": ["pendulum_program"],
    "polynomial": ["SparsePolynomial"],
    "poses": ["PoseGraph", "read_g2o", "rotation_sync_program"],
    "program": ["SOSProgram"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
