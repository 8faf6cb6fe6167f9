"""The direct SDP: hidden layers fixed at random, solved by two solvers, really cut off."""

from encore.core.job import job, read_json, read_parquet, write_npz
from encore.core.metrics import Table
from encore.papers.lyapunov_observer.evaluation import cases
from encore.papers.lyapunov_observer.sdp import train_direct_sdp

with job(snakemake) as (input, output, params):
    dataset, table, solutions = snakemake.wildcards.dataset, Table("lyapunov_observer"), {}
    times = read_parquet(input.timings)
    given = times["metric"].eq("total_seconds") & times["rate"].eq("given")
    ours = times[given & times["method"].eq("two_stage")].set_index("seed")["value"]
    plan = [case for case in cases(**read_json(input.data), **params.plan) if case.role == "main"]
    for solver in ("CLARABEL", "SCS"):
        for case in plan[: params.runs[solver]]:
            net = case.fresh(params.eps).weights[: len(case.hidden)]
            report = train_direct_sdp(
                case.system, [weight.numpy() for weight in net], params.rho, solver,
                eps=params.eps, max_seconds=params.max_seconds[dataset],
            )  # fmt: skip
            print(case.key, solver, report.status, report.seconds, report.lambda_max)
            row = {"dataset": dataset, "method": "direct_sdp", "seed": case.seed}
            row |= case.factors() | {"solver": solver, "finished": int(report.finished)}
            table.add(metric="sdp_seconds", value=report.seconds, unit="s", timing=True, **row)
            peers = ours if params.runs[solver] == 1 else ours[ours.index == case.seed]
            row |= {"seed": peers.index, "better": "higher"}
            table.add(metric="speedup", value=report.seconds / peers, timing=True, **row)
            if report.weights is not None and solver == "SCS":
                parts = {f"W{i + 1}": weight for i, weight in enumerate(report.weights)}
                parts |= {"P": report.P, "Lambda": report.Lambda}
                solutions |= {f"{case.seed}/{key}": part for key, part in parts.items()}
    write_npz(output.solutions, **solutions)
    table.write_timings(output.timings)
