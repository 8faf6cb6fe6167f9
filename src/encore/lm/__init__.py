"""Small language models for the papers that study them: a packaged real one, a tiny one, text, tokens.

``load_smollm2`` gives SmolLM2-135M-Instruct from an installed package; ``pretrain`` trains TinyLM, a
Llama-shaped model of 0.65 million parameters, on a ``TextCorpus``. Names are loaded when first used.
"""

from importlib import import_module

_HOMES = {
    "corpus": ["TextCorpus", "TokenStream"],
    "smollm2": ["ChecksumError", "ModelNotFoundError", "load_smollm2"],
    "tinylm": ["Recipe", "evaluate", "load_tinylm", "pretrain", "tiny_config"],
    "tokenizer": ["token_bytes", "train_bpe"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
