"""``encore sparse-sos``: a certified bound of a polynomial, or synchronised rotations of a pose graph."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Certified bounds by sparse sums of squares.")


@app.callback()
def _group() -> None:
    """Certified bounds by sparse sums of squares."""


@app.command("bound")
def bound_command(
    poly: Annotated[
        Path, typer.Argument(help='JSON: {"exponents": [[4, 0], …], "coeffs": [1.0, …]}')
    ],
    mu: Annotated[
        float, typer.Option(help="barrier parameter, in units of the coefficients")
    ] = 1e-6,
    box: Annotated[float | None, typer.Option(help="prove the bound for |x_i| <= box only")] = None,
) -> None:
    """A certified lower bound of a polynomial; what is printed as rigorous_bound is proven."""
    _show(lambda: bound(poly, mu, box))


@app.command("sync")
def sync_command(
    graph: Annotated[Path, typer.Argument(help="g2o file with EDGE_SE2 or EDGE_SE3:QUAT records")],
    mu: Annotated[float, typer.Option(help="barrier parameter")] = 1e-6,
    out: Annotated[Path | None, typer.Option(help="npz file for the rotations (N, d, d)")] = None,
) -> None:
    """Rotations of a pose graph with a certified lower bound on their cost (unit weights)."""
    _show(lambda: sync(graph, mu, out))


def _show(result: Any) -> None:
    try:
        typer.echo(json.dumps(result(), indent=1))
    except (ValueError, TypeError, KeyError, ArithmeticError, OSError) as error:
        typer.echo(f"encore sparse-sos: {error}", err=True)
        raise typer.Exit(2) from None


def bound(path: Path, mu: float = 1e-6, box: float | None = None) -> dict[str, Any]:
    """What ``encore sparse-sos bound`` prints.

    Raises:
        ValueError: the file does not hold exponents and coeffs, or they are no polynomial.
        InfeasibleSOSError: the polynomial has no SOS bound.
    """
    import numpy as np
    import torch

    from encore.papers.sparse_sos.certificate import verify_certificate
    from encore.papers.sparse_sos.layer import SOSLayer
    from encore.papers.sparse_sos.polynomial import SparsePolynomial
    from encore.papers.sparse_sos.program import SOSProgram

    given = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(given, dict) or set(given) != {"exponents", "coeffs"}:
        raise ValueError(f"{path} must hold the keys 'exponents' and 'coeffs'")
    poly = SparsePolynomial(np.array(given["exponents"]), np.array(given["coeffs"])).combined()
    program = SOSProgram.build(poly)
    layer = SOSLayer(program, mu=mu, outputs=("gram",))
    output = layer(torch.from_numpy(poly.coeffs)[None])
    report = verify_certificate(poly, output, box)
    return {
        "bound": output.bound.item(),
        "rigorous_bound": report.rigorous_bound if np.isfinite(report.rigorous_bound) else None,
        "min_eig": report.min_eig,
        "max_residual": report.max_residual,
        "cliques": [list(clique) for clique in program.cliques],
        "block_sizes": program.block_sizes,
    }


def sync(path: Path, mu: float = 1e-6, out: Path | None = None) -> dict[str, Any]:
    """What ``encore sparse-sos sync`` prints; writes the rotations to ``out``.

    Raises:
        ValueError: see ``read_g2o``.
    """
    import numpy as np
    import torch

    from encore.core.job import write_npz
    from encore.papers.sparse_sos.certificate import verify_certificate
    from encore.papers.sparse_sos.layer import BlockSDPLayer
    from encore.papers.sparse_sos.poses import (
        read_g2o,
        rotation_sync_program,
        rounded_rotations,
        sync_cost,
    )

    graph = read_g2o(path)
    layer = BlockSDPLayer(rotation_sync_program(graph), mu=mu, outputs=("gram",))
    weights = np.ones(len(graph.edges))
    output = layer(torch.from_numpy(weights)[None])
    rotations = rounded_rotations(graph, [part[0].numpy() for part in output.gram])
    if out is not None:
        write_npz(out, rotations=rotations)
    return {
        "poses": graph.num_poses,
        "measurements": len(graph.edges),
        "cost": sync_cost(graph, rotations, weights),
        "rigorous_bound": verify_certificate(weights, output).rigorous_bound,
    }
