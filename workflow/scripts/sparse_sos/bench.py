"""CPU times of forward and backward by every method, interleaved in this one process."""

from functools import partial
from pathlib import Path

from encore.core.job import job
from encore.core.metrics import Table
from encore.papers.sparse_sos.bench import backward_times, batch_times, forward_times
from encore.papers.sparse_sos.instances import make

with job(snakemake) as (input, output, params):
    dataset, plan, table = params.dataset, params.plan, Table("sparse_sos")
    folder = str(Path(input.raw[0]).parent) if input.raw else ""
    for size in plan["sizes"][dataset]:
        for seed in params.seeds:
            instance = make(dataset, size, seed, folder)
            largest = int(size == max(plan["sizes"][dataset]))
            row = {"dataset": dataset, "seed": seed, "size": size, "largest": largest}
            row |= {"name": instance.name, "timing": True}
            times = backward_times(instance, plan["mu"], plan)
            print(instance.name, times)
            for method, value in times.items():
                table.add(
                    method=method,
                    metric="backward_ms",
                    value=value,
                    unit="ms",
                    better="lower",
                    **row,
                )
                for ours in ("sparse", "sparse_reuse"):
                    table.add(
                        method=ours, metric="speedup", value=value / times[ours], better="higher",
                        peer=method, **row,
                    )  # fmt: skip
            forward = forward_times(instance, plan["mu"], plan["repeats"])
            for method, value in forward.items():
                table.add(method=method, metric="forward_ms", value=value, unit="ms", **row)
            extra = forward["forward"] / forward["clarabel"] - 1
            table.add(method="forward", metric="centring_share", value=extra, **row)
            shape = {"moments": instance.program.cone.num_variables}
            shape |= {"blocks": len(instance.program.block_sizes)}
            shape |= {"largest_block": max(instance.program.block_sizes)}
            for metric, value in shape.items():
                table.add(method="program", metric=metric, value=value, **row)
    if dataset == "chains":
        for seed in params.seeds:
            times = batch_times(partial(make, dataset, 10, seed), plan["batch"], plan["mu"])
            table.add(
                dataset=dataset, method="batch", seed=seed, metric="batch_speedup", timing=True,
                value=times["batch_separate"] / times["batch_shared"], size=10, name="chain10",
            )  # fmt: skip
    table.write_timings(output.timings)
