"""Pseudo-Riemannian attention on graphs: a learned metric whose signs may be negative, and an index of when that is needed.

``graph_signature_index`` measures how much of a graph's structure needs negative metric directions,
``PRATConv`` and ``PRAT`` attend by a learned indefinite metric (PyTorch Geometric modules), and
``PRATClassifier`` puts both together for node classification. Names are loaded when first used.
"""

from importlib import import_module

_HOMES = {
    "baselines": ["FAGCN", "H2GCN", "build"],
    "classifier": ["PRATClassifier"],
    "conv": ["PRATConv"],
    "embedding": ["pseudo_euclidean_embedding"],
    "generator": ["csbm"],
    "graphs": ["Graph", "clean_edges", "load_graph"],
    "index": ["SignatureReport", "graph_signature_index", "signature"],
    "models": ["PRAT", "learned_signature"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
