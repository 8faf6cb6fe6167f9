from encore.core.sources import code

FITS = [f"{name}/{part}" for name in config["datasets"] for part in config["graphs"][name]]
FITS += [f"csbm/sweep/{seed}" for seed in config["csbm_seeds"]]
RUNS = [f"<results>/runs/{fit}.parquet" for fit in FITS]
RUNS += collect(
    "<results>/runs/{dataset}.parquet", dataset=[*config["datasets"], "csbm", "packaged"]
)
TIMINGS = []
PLAN = {key: config[key] for key in ("draws", "shape", "schedule")}
TUNE = PLAN | {"schedule": config["tuning"]["schedule"]}


include: "prat_inputs.smk"
include: "shared/paper.smk"


rule tune:
    input:
        raw="data/{dataset}/{part}.npz",
        code=code("prat/tune.py"),
    output:
        "<results>/tuning/{dataset}/{part}.json",
    log:
        "<logs>/tune/{dataset}_{part}.log",
    benchmark:
        "<benchmarks>/tune/{dataset}_{part}.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        methods=config["methods"],
        left_out=config["left_out"],
        splits=config["tuning"]["splits"],
        plan=TUNE,
    script:
        "../scripts/prat/tune.py"


rule tune_csbm:
    input:
        code=code("prat/tune_csbm.py"),
    output:
        "<results>/tuning/csbm.json",
    log:
        "<logs>/tune/csbm.log",
    benchmark:
        "<benchmarks>/tune/csbm.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        methods=config["methods"]["csbm"],
        csbm=config["csbm"],
        tuning=config["tuning"],
        plan=TUNE,
    script:
        "../scripts/prat/tune_csbm.py"


rule finetune:
    input:
        raw=raw_files,
        code=code("prat/finetune.py"),
    output:
        runs="<results>/runs/{dataset}/{part}.parquet",
        models="<results>/models/{dataset}/{part}.npz",
    log:
        "<logs>/finetune/{dataset}_{part}.log",
    benchmark:
        "<benchmarks>/finetune/{dataset}_{part}.jsonl"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        methods=config["methods"],
        left_out=of_part("left_out"),
        splits=of_part("splits"),
        seeds=config["seeds"],
        choice=of_part("choice"),
        plan=PLAN,
    script:
        "../scripts/prat/finetune.py"


rule sweep:
    input:
        code=code("prat/sweep.py"),
    output:
        runs="<results>/runs/csbm/sweep/{seed}.parquet",
        models="<results>/models/csbm/sweep/{seed}.npz",
    log:
        "<logs>/sweep/{seed}.log",
    benchmark:
        "<benchmarks>/sweep/{seed}.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        methods=config["methods"]["csbm"],
        csbm=config["csbm"],
        choice=config["choice"]["csbm"],
        plan=PLAN,
    script:
        "../scripts/prat/sweep.py"


rule evaluate:
    input:
        raw=raw_files,
        fitted=fitted_tables,
        code=code("prat/evaluate.py"),
    output:
        "<results>/runs/{dataset}.parquet",
    log:
        "<logs>/evaluate/{dataset}.log",
    benchmark:
        "<benchmarks>/evaluate/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=15,
    params:
        csbm=config["csbm"],
        csbm_seeds=config["csbm_seeds"],
    script:
        "../scripts/prat/evaluate.py"


rule figures:
    input:
        table="<results>/metrics.parquet",
        models=[f"<results>/models/{fit}.npz" for fit in FITS],
        code=code("prat/figures.py"),
    output:
        collect("<results>/figures/{name}.svg", name=config["figures"]),
    log:
        "<logs>/figures.log",
    benchmark:
        "<benchmarks>/figures.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=5,
    params:
        fits=FITS,
        names=config["figures"],
    script:
        "../scripts/prat/figures.py"
