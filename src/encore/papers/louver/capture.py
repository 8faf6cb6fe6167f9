"""Queries, keys and values of a real model, as its attention sees them (after rotary embedding)."""

import torch
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from encore.papers.louver.qkv import QKVCapture

NAME = "louver_capture"


def capture_qkv(
    model: PreTrainedModel, ids: torch.Tensor, layers: list[int], last: int = 256
) -> QKVCapture:
    """Run the model once and keep what its attention sees; layers above the last one do not run.

    Args:
        model: a causal language model of transformers with a list of decoder layers at ``model.model``.
        ids: (N,) token ids.
        layers: which layers to keep.
        last: how many positions' queries to keep.

    Raises:
        ValueError: ids that are not 1-D, a layer that the model does not have, or ``last`` not in 1 to N.
    """
    depth = model.config.num_hidden_layers
    if ids.ndim != 1:
        raise ValueError(f"ids has shape {tuple(ids.shape)}; expected one dimension")
    if wrong := [layer for layer in layers if not 0 <= layer < depth]:
        raise ValueError(f"layer {wrong[0]}; expected 0 to {depth - 1}")
    if not 1 <= last <= len(ids):
        raise ValueError(f"last={last}; expected 1 to {len(ids)}")
    seen: dict[int, tuple[torch.Tensor, ...]] = {}
    AttentionInterface.register(NAME, _recording)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    before, decoder = model.config._attn_implementation, model.model
    stack = decoder.layers
    try:
        model.set_attn_implementation(NAME)
        decoder.layers = stack[: max(layers) + 1]
        with torch.inference_mode():
            decoder(ids[None], use_cache=False, seen=seen)
    finally:
        decoder.layers = stack
        model.set_attn_implementation(before)
    return QKVCapture(
        {layer: seen[layer][0][0, :, -last:].clone() for layer in layers},
        {layer: seen[layer][1][0].clone() for layer in layers},
        {layer: seen[layer][2][0].clone() for layer in layers},
    )


def _recording(module, query, key, value, attention_mask, seen=None, **kwargs):
    if seen is not None:
        seen[module.layer_idx] = (query, key, value)
    return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
