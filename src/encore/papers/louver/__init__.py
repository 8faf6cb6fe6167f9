"""Louver: a KV-cache index that returns every key whose score reaches a threshold.

At a decode step the keys that matter to a query q are {n : q.k_n >= T}. ``LouverIndex`` finds all of
them (no false negative, in exact and in float arithmetic) through an int8 filter with certified
bounds, and attends over them; ``register`` and ``LouverCache`` bring it into transformers. Names are
loaded when first used.
"""

from importlib import import_module

_HOMES = {
    "ann": ["AnnIndex"],
    "attention": ["register"],
    "baselines": ["H2O", "OracleTopK", "Quest", "SparseMethod", "StreamingLLM", "Twilight"],
    "cache": ["LouverCache", "LouverLayer"],
    "capture": ["capture_qkv"],
    "index": ["AttendResult", "LouverIndex", "RangeResult"],
    "qkv": ["QKVCapture"],
    "thresholds": [
        "Budget", "CertifiedMass", "Fixed", "SampleGap", "SampleMax", "SampleMeanMax", "ThresholdPolicy",
    ],
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
