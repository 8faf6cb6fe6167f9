from encore.core.sources import code

RUNS = collect("<results>/runs/{dataset}.parquet", dataset=config["datasets"])
TIMINGS = []


include: "shared/paper.smk"


rule prepare:
    input:
        raw="data/{dataset}/digits.csv.gz",
        code=code("PAPER_SLUG/prepare.py"),
    output:
        "<results>/data/{dataset}.npz",
    log:
        "<logs>/prepare/{dataset}.log",
    benchmark:
        "<benchmarks>/prepare/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=5,
    script:
        "../scripts/PAPER_SLUG/prepare.py"


rule evaluate:
    input:
        data="<results>/data/{dataset}.npz",
        code=code("PAPER_SLUG/evaluate.py"),
    output:
        runs="<results>/runs/{dataset}.parquet",
    log:
        "<logs>/evaluate/{dataset}.log",
    benchmark:
        "<benchmarks>/evaluate/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        seeds=config["seeds"],
        train_share=config["train_share"],
    script:
        "../scripts/PAPER_SLUG/evaluate.py"


rule figures:
    input:
        table="<results>/metrics.parquet",
        code=code("PAPER_SLUG/figures.py"),
    output:
        collect("<results>/figures/{name}.svg", name=config["figures"]),
    log:
        "<logs>/figures.log",
    benchmark:
        "<benchmarks>/figures.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=5,
    script:
        "../scripts/PAPER_SLUG/figures.py"
