"""What the backward of a layer keeps from its forward."""

from collections.abc import Iterator
from typing import Any

import torch

from encore.papers.sparse_sos.instances import Instance
from encore.papers.sparse_sos.layer import SOSLayer


def kept_bytes(instance: Instance, outputs: tuple[str, ...], mu: float) -> dict[str, int]:
    """Bytes that a layer's backward keeps of one item: all, and of Gram blocks or their factor."""
    layer = SOSLayer(instance.program, mu=mu, outputs=outputs)
    output = layer(*_tensors(instance))
    node = output.bound.grad_fn
    vectors = sum(tensor.numel() * 8 for tensor in node.saved_tensors)
    grams = 0
    for item in getattr(node, "items", []):
        blocks = [*item.grams, *item.inverses]
        grams += sum(part.nbytes for part in blocks) + 2 * item.factor.lu.L.nnz * 12
    return {"kept_bytes": vectors + grams, "gram_bytes": grams}


def _tensors(instance: Instance) -> list[torch.Tensor]:
    parts = (instance.coeffs, instance.norm_coeffs, instance.data)
    return [torch.from_numpy(part.copy())[None].requires_grad_() for part in parts]


def memory_rows(instance: Instance, mu: float) -> Iterator[dict[str, Any]]:
    """Rows of kept_bytes, gram_bytes and kept_vectors (in vectors of the length of y) of both backwards."""
    length = instance.program.cone.num_variables
    for method, outputs in (("moments_only", ("bound",)), ("certificate", ("gram",))):
        kept: dict[str, float] = dict(kept_bytes(instance, outputs, mu))
        kept["kept_vectors"] = kept["kept_bytes"] / (8 * length)
        for metric, value in kept.items():
            yield {
                "method": method, "metric": metric, "value": value, "name": instance.name,
                "size": instance.size,
            }  # fmt: skip
