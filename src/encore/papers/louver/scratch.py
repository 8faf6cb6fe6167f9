"""Working memory of the kernels, kept between calls: fresh pages at every step cost more than the work."""

import threading

import numpy as np

_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """An array with arbitrary content, valid until the same thread asks for the same name again."""
    size = int(np.prod(shape))
    held = getattr(_kept, name, None)
    if held is None or held.size < size or held.dtype != dtype:
        held = np.empty(max(size, 2 * held.size if held is not None else 0), dtype)
        setattr(_kept, name, held)
    return held[:size].reshape(shape)
