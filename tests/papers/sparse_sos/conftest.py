"""Helpers shared by the tests of sparse_sos."""

import pytest
import torch

from encore.papers.sparse_sos import SOSLayer, SOSProgram

ALL = ("bound", "moments", "gram")


@pytest.fixture
def solve():
    """A function: layer output of a polynomial with its own program."""

    def run(poly, mu=1e-6, outputs=ALL, layer=SOSLayer, **build):
        program = SOSProgram.build(poly.exponents, **build)
        coeffs = torch.tensor(poly.coeffs)[None].requires_grad_()
        return layer(program, mu=mu, outputs=outputs)(coeffs), coeffs

    return run
