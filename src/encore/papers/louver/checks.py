"""Checks of what users pass in; every message names the argument, what was found and what is expected."""

import warnings

import torch

STORED = (torch.float32, torch.bfloat16)


def checked_floats(name: str, tensor, dims: int) -> torch.Tensor:
    """The tensor, detached, if it is float32, bfloat16 or (converted with a warning) float16.

    Raises:
        TypeError: not a tensor, or of another type.
        ValueError: another number of dimensions, another device than the CPU, or numbers that are not finite.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}; expected a torch tensor")
    if tensor.dtype not in (*STORED, torch.float16):
        raise TypeError(f"{name} is {tensor.dtype}; expected float32 or bfloat16")
    if tensor.ndim != dims:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; expected {dims} dimensions")
    if tensor.device.type != "cpu":
        raise ValueError(f"{name} is on {tensor.device}; the index works on the CPU")
    if tensor.dtype == torch.float16:
        warnings.warn(f"{name} is float16, slow on a CPU: converted to float32", stacklevel=3)
        tensor = tensor.float()
    return tensor.detach()


def check_finite(name: str, tensor: torch.Tensor, places: tuple[str, ...]) -> None:
    """Raise ``ValueError`` with the place of the first entry of (…, d) that is not finite."""
    if not torch.isfinite(tensor).all():
        bad = (~torch.isfinite(tensor)).any(-1).nonzero()[0].tolist()
        where = ", ".join(f"{place} {i}" for place, i in zip(places, bad, strict=True))
        raise ValueError(f"non-finite {name} at {where}")
