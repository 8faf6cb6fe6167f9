from encore.core.data import Registry
from encore.core.sources import code

RAW = {name: Registry.load().paths(name) for name in config["datasets"]}
ALL = [*config["synthetic"], *config["datasets"]]
RUNS = collect("<results>/runs/{dataset}/{part}.parquet", dataset=ALL, part=["checks", "learn"])
TIMINGS = collect("<results>/timings/{dataset}/bench.parquet", dataset=ALL)


include: "shared/paper.smk"


for dataset in ALL:

    rule:
        name:
            f"checks_{dataset}"
        input:
            raw=RAW.get(dataset, []),
            code=code("sparse_sos/checks.py"),
        output:
            runs=f"<results>/runs/{dataset}/checks.parquet",
        log:
            f"<logs>/checks/{dataset}.log",
        benchmark:
            f"<benchmarks>/checks/{dataset}.jsonl"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=15,
        params:
            dataset=dataset,
            seeds=config["seeds"],
            plan=config["checks"],
        script:
            "../scripts/sparse_sos/checks.py"

    rule:
        name:
            f"bench_{dataset}"
        input:
            raw=RAW.get(dataset, []),
            code=code("sparse_sos/bench.py"),
        output:
            timings=f"<results>/timings/{dataset}/bench.parquet",
        log:
            f"<logs>/bench/{dataset}.log",
        benchmark:
            f"<benchmarks>/bench/{dataset}.jsonl"
        threads: 1
        resources:
            mem_mb=3000,
            runtime=20,
        params:
            dataset=dataset,
            seeds=config["seeds"],
            plan=config["bench"],
        script:
            "../scripts/sparse_sos/bench.py"

    rule:
        name:
            f"learn_{dataset}"
        input:
            raw=RAW.get(dataset, []),
            code=code("sparse_sos/learn.py"),
        output:
            runs=f"<results>/runs/{dataset}/learn.parquet",
            arrays=f"<results>/runs/{dataset}/learn.npz",
        log:
            f"<logs>/learn/{dataset}.log",
        benchmark:
            f"<benchmarks>/learn/{dataset}.jsonl"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=20,
        params:
            dataset=dataset,
            seeds=config["seeds"],
            options=config["learn"][dataset],
            plan=config["checks"],
        script:
            "../scripts/sparse_sos/learn.py"


rule figures:
    input:
        table="<results>/metrics.parquet",
        arrays=collect("<results>/runs/{dataset}/learn.npz", dataset=ALL),
        code=code("sparse_sos/figures.py"),
    output:
        collect("<results>/figures/{name}.svg", name=config["figures"]),
    log:
        "<logs>/figures.log",
    localrule: True
    params:
        datasets=ALL,
        size=config["checks"]["sizes"]["chains"][0],
        seed=config["seeds"][0],
    script:
        "../scripts/sparse_sos/figures.py"


rule timed_figures:
    input:
        metrics="<results>/metrics.parquet",
        timings="<results>/timings.parquet",
        code=code("sparse_sos/timed_figures.py"),
    output:
        collect("<results>/timings/{name}.svg", name=config["timed_figures"]),
    log:
        "<logs>/timed_figures.log",
    localrule: True
    params:
        datasets=ALL,
    script:
        "../scripts/sparse_sos/timed_figures.py"
