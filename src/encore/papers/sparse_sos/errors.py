"""What can go wrong in a solve that no check of the input can foresee."""


class InfeasibleSOSError(ArithmeticError):
    """The relaxation has no centred solution: infeasible, unbounded, or the solver gave up.

    Attributes:
        status: what the solver said.
        batch_index: which item of the batch it was.
    """

    def __init__(self, status: str, batch_index: int = 0) -> None:
        super().__init__(f"item {batch_index} of the batch has no certificate: {status}")
        self.status = status
        self.batch_index = batch_index
