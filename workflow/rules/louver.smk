from encore.core.sources import code

MODEL = ["data/smollm2/config.json", "data/smollm2/model.safetensors"]
MODEL = MODEL if config["model"] == "smollm2" else []
RAW = {
    dataset: [f"data/{dataset}/{file}" for file in sorted(set(parts.values()))]
    for dataset, parts in config["parts"].items()
}
RUNS = collect(
    "<results>/runs/{dataset}/{part}.parquet",
    dataset=config["datasets"],
    part=["exact", "recall", "accuracy"],
)
TIMINGS = collect("<results>/timings/{dataset}/latency.parquet", dataset=config["datasets"])


include: "shared/paper.smk"


rule prepare:
    input:
        raw=lookup(dpath="{dataset}", within=RAW),
        model=MODEL,
        code=code("louver/prepare.py"),
    output:
        "<results>/data/{dataset}.safetensors",
    log:
        "<logs>/prepare/{dataset}.log",
    benchmark:
        "<benchmarks>/prepare/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=20,
    params:
        model=config["model"],
        parts=config["parts"],
        seeds=config["seeds"],
        layers=config["layers"],
        tokens=config["tokens"],
        queries=config["queries"],
    script:
        "../scripts/louver/prepare.py"


rule exact:
    input:
        data="<results>/data/{dataset}.safetensors",
        code=code("louver/exact.py"),
    output:
        runs="<results>/runs/{dataset}/exact.parquet",
    log:
        "<logs>/exact/{dataset}.log",
    benchmark:
        "<benchmarks>/exact/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        options=config["exact"],
        parts=config["parts"],
        seeds=config["seeds"],
        size=config["latency"]["sizes"]["medium"],
    script:
        "../scripts/louver/exact.py"


rule recall:
    input:
        data="<results>/data/{dataset}.safetensors",
        code=code("louver/recall.py"),
    output:
        runs="<results>/runs/{dataset}/recall.parquet",
    log:
        "<logs>/recall/{dataset}.log",
    benchmark:
        "<benchmarks>/recall/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        options=config["recall"],
        parts=config["parts"],
        seeds=config["seeds"],
        fraction=config["fraction"],
    script:
        "../scripts/louver/recall.py"


rule accuracy:
    input:
        data="<results>/data/{dataset}.safetensors",
        model=MODEL,
        code=code("louver/accuracy.py"),
    output:
        runs="<results>/runs/{dataset}/accuracy.parquet",
    log:
        "<logs>/accuracy/{dataset}.log",
    benchmark:
        "<benchmarks>/accuracy/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        model=config["model"],
        options=config["accuracy"],
        parts=config["parts"],
        seeds=config["seeds"],
    script:
        "../scripts/louver/accuracy.py"


rule latency:
    input:
        data="<results>/data/{dataset}.safetensors",
        code=code("louver/latency.py"),
    output:
        timings="<results>/timings/{dataset}/latency.parquet",
    log:
        "<logs>/latency/{dataset}.log",
    benchmark:
        "<benchmarks>/latency/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=20,
    params:
        options=config["latency"],
        parts=config["parts"],
        seeds=config["seeds"],
        fraction=config["fraction"],
    script:
        "../scripts/louver/latency.py"


rule figures:
    input:
        table="<results>/metrics.parquet",
        code=code("louver/figures.py"),
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
        "../scripts/louver/figures.py"


rule timed_figures:
    input:
        table="<results>/timings.parquet",
        code=code("louver/timed_figures.py"),
    output:
        collect("<results>/timings/{name}.svg", name=config["timed_figures"]),
    log:
        "<logs>/timed_figures.log",
    benchmark:
        "<benchmarks>/timed_figures.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=5,
    script:
        "../scripts/louver/timed_figures.py"
