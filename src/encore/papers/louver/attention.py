"""The attention function "louver" for transformers."""

import warnings

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "louver"


def register() -> None:
    """Make ``attn_implementation="louver"`` known, with the mask that it needs; may be called again.

    Without the mask's registration transformers would leave padding and chunked prefill unmasked.
    """
    AttentionInterface.register(NAME, louver_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def louver_attention(module, query, key, value, attention_mask, scaling=None, **kwargs):
    """Decode steps through the index of the cache; everything else as ``sdpa``, counted by reason.

    Args:
        module: the attention module.
        query: (B, H_q, t, d).
        key, value: (B, H_kv, N, d); a ``LouverCache`` puts its layer on ``key``.
        attention_mask: None or (B, 1, t, N) bool.
        scaling: of the scores.

    Returns:
        Output (B, t, H_q, d_v), and None for the weights.
    """
    layer = getattr(key, "_louver_layer", None)
    if layer is None:
        warnings.warn("no LouverCache: attention 'louver' runs dense", stacklevel=2)
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
    reason = _why_dense(layer, module, query, attention_mask, kwargs)
    layer.counts[reason or NAME] += 1
    if reason:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
    scale = query.shape[3] ** -0.5 if scaling is None else scaling
    mask = None if attention_mask is None else attention_mask[:, 0, 0, : key.shape[2]]
    with torch.no_grad():
        output = layer.attend(query[:, :, 0], scale, mask)
    return output[:, None], None


def _why_dense(layer, module, query, mask, kwargs) -> str:
    """Why this call is left to dense attention; empty if it is not."""
    if query.shape[2] > 1:
        return "prefill"
    if layer.dense:
        return "dense_layer"
    if module.training:
        return "training"
    if kwargs.get("output_attentions"):
        return "output_attentions"
    if mask is not None and (mask.dtype != torch.bool or mask.shape[1] != 1):
        return "mask"
    return ""
