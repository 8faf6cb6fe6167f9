"""Errors that name what is wrong with a system or a network."""


class NotObservableError(ValueError):
    """The pair (A_eps, [C 0]) of the scaled error system is not observable.

    Attributes
    ----------
    rank: numerical rank of the observability matrix.
    size: number of error states, the rank that is needed.
    """

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size
        super().__init__(
            f"(A_eps, [C 0]) is not observable: the observability matrix has rank {rank}, needed "
            f"{size}; measure more outputs, use fewer disturbance channels, or a larger eps"
        )


class UnsupportedActivationError(ValueError):
    """An activation whose sector is neither known (tanh, ReLU) nor declared."""

    def __init__(self, activation):
        self.activation = activation
        super().__init__(
            f"activation {activation!r}: only 'tanh' and 'relu' have a known sector [0, 1]; pass "
            "sector=(a, b) with a callable that satisfies (w - a v)(b v - w) >= 0"
        )
