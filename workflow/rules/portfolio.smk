from encore.core.data import Registry
from encore.core.sources import code

PARTS = ["select", "exact", "noise", "sampling", "storage"]
RUNS = [
    *collect("<results>/runs/{dataset}/{part}.parquet", dataset=config["datasets"], part=PARTS),
    "<results>/runs/instances/instances.parquet",
]
TIMINGS = collect("<results>/timings/{dataset}/storage.parquet", dataset=config["datasets"])


include: "shared/paper.smk"


for dataset in config["datasets"]:

    rule:
        name:
            f"prepare_{dataset}"
        input:
            raw=Registry.load().paths(dataset),
            code=code("portfolio/prepare.py"),
        output:
            f"<results>/data/{dataset}.parquet",
        log:
            f"<logs>/prepare/{dataset}.log",
        benchmark:
            f"<benchmarks>/prepare/{dataset}.jsonl"
        threads: 1
        resources:
            mem_mb=1500,
            runtime=10,
        params:
            dataset=dataset,
            families=config["families"],
        script:
            "../scripts/portfolio/prepare.py"


rule select:
    input:
        data="<results>/data/{dataset}.parquet",
        code=code("portfolio/select.py"),
    output:
        runs="<results>/runs/{dataset}/select.parquet",
        cards="<results>/runs/{dataset}/cards.json",
    log:
        "<logs>/select/{dataset}.log",
    benchmark:
        "<benchmarks>/select/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        dataset="{dataset}",
        seeds=config["seeds"],
        profiles=config["profiles"],
        sizes=config["sizes"],
        demands=config["demands"],
        restarts=config["restarts"],
        card_families=config["card_families"],
    script:
        "../scripts/portfolio/select.py"


rule exact:
    input:
        data="<results>/data/{dataset}.parquet",
        code=code("portfolio/exact.py"),
    output:
        runs="<results>/runs/{dataset}/exact.parquet",
    log:
        "<logs>/exact/{dataset}.log",
    benchmark:
        "<benchmarks>/exact/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        dataset="{dataset}",
        seeds=config["seeds"],
        options=config["exact"],
    script:
        "../scripts/portfolio/exact.py"


rule noise:
    input:
        data="<results>/data/{dataset}.parquet",
        code=code("portfolio/noise.py"),
    output:
        runs="<results>/runs/{dataset}/noise.parquet",
    log:
        "<logs>/noise/{dataset}.log",
    benchmark:
        "<benchmarks>/noise/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        dataset="{dataset}",
        seeds=config["seeds"],
        profiles=config["profiles"],
        options=config["noise"],
    script:
        "../scripts/portfolio/noise.py"


rule sampling:
    input:
        data="<results>/data/{dataset}.parquet",
        code=code("portfolio/sampling.py"),
    output:
        runs="<results>/runs/{dataset}/sampling.parquet",
    log:
        "<logs>/sampling/{dataset}.log",
    benchmark:
        "<benchmarks>/sampling/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        dataset="{dataset}",
        seeds=config["seeds"],
        options=config["sampling"],
    script:
        "../scripts/portfolio/sampling.py"


rule storage:
    input:
        data="<results>/data/{dataset}.parquet",
        code=code("portfolio/storage.py"),
    output:
        runs="<results>/runs/{dataset}/storage.parquet",
        timings="<results>/timings/{dataset}/storage.parquet",
    log:
        "<logs>/storage/{dataset}.log",
    benchmark:
        "<benchmarks>/storage/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        dataset="{dataset}",
        seeds=config["seeds"],
        options=config["storage"],
    script:
        "../scripts/portfolio/storage.py"


rule instances:
    input:
        code=code("portfolio/instances.py"),
    output:
        runs="<results>/runs/instances/instances.parquet",
    log:
        "<logs>/instances.log",
    benchmark:
        "<benchmarks>/instances.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        seeds=config["seeds"],
        options=config["instances"],
    script:
        "../scripts/portfolio/instances.py"


rule figures:
    input:
        table="<results>/metrics.parquet",
        cards=collect("<results>/runs/{dataset}/cards.json", dataset=config["datasets"]),
        code=code("portfolio/figures.py"),
    output:
        collect("<results>/figures/{name}.svg", name=config["figures"]),
    log:
        "<logs>/figures.log",
    benchmark:
        "<benchmarks>/figures.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        datasets=config["datasets"],
    script:
        "../scripts/portfolio/figures.py"


rule timed_figures:
    input:
        table="<results>/timings.parquet",
        code=code("portfolio/timed_figures.py"),
    output:
        collect("<results>/timings/{name}.svg", name=config["timed_figures"]),
    log:
        "<logs>/timed_figures.log",
    benchmark:
        "<benchmarks>/timed_figures.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        datasets=config["datasets"],
    script:
        "../scripts/portfolio/timed_figures.py"
