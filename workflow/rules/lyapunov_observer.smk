from encore.core.sources import code

PLAN = {key: config[key] for key in ("nets", "main_net", "seeds", "other_seeds")}
MINE = ["pretrain", "finetune", "certify", "theory"]
RUNS = collect("<results>/runs/{dataset}/{part}.parquet", dataset=config["datasets"], part=MINE)
RUNS += collect("<results>/runs/{dataset}/robustness.parquet", dataset=config["datasets"])
RUNS += collect("<results>/runs/{dataset}/tracking.parquet", dataset=["quadrotor", "auv"])
RUNS += ["<results>/runs/auv/flow.parquet"]
TIMINGS = collect(
    "<results>/timings/{dataset}/{part}.parquet",
    dataset=config["datasets"],
    part=["pretrain", "finetune", "direct_sdp"],
)


include: "shared/paper.smk"


rule prepare:
    input:
        raw="data/{dataset}/{dataset}_linear_models.json",
        code=code("lyapunov_observer/prepare.py"),
    output:
        "<results>/data/{dataset}.json",
    log:
        "<logs>/prepare/{dataset}.log",
    benchmark:
        "<benchmarks>/prepare/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=500,
        runtime=5,
    params:
        main=config["main_system"],
        others=config["other_systems"],
    script:
        "../scripts/lyapunov_observer/prepare.py"


rule pretrain:
    input:
        data="<results>/data/{dataset}.json",
        code=code("lyapunov_observer/pretrain.py"),
    output:
        models="<results>/models/{dataset}_pretrained.safetensors",
        runs="<results>/runs/{dataset}/pretrain.parquet",
        timings="<results>/timings/{dataset}/pretrain.parquet",
    log:
        "<logs>/pretrain/{dataset}.log",
    benchmark:
        "<benchmarks>/pretrain/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=30,
    params:
        plan=PLAN,
        options=config["pretrain"],
        eps=config["eps"],
        rho=config["rho"],
        M_w=config["M_w"],
    script:
        "../scripts/lyapunov_observer/pretrain.py"


rule finetune:
    input:
        data="<results>/data/{dataset}.json",
        models="<results>/models/{dataset}_pretrained.safetensors",
        code=code("lyapunov_observer/finetune.py"),
    output:
        models="<results>/models/{dataset}_observers.safetensors",
        curves="<results>/models/{dataset}_curves.npz",
        clocks="<results>/timings/{dataset}/clocks.npz",
        runs="<results>/runs/{dataset}/finetune.parquet",
        timings="<results>/timings/{dataset}/finetune.parquet",
    log:
        "<logs>/finetune/{dataset}.log",
    benchmark:
        "<benchmarks>/finetune/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=60,
    params:
        plan=PLAN,
        options=config["finetune"],
        pretrain=config["pretrain"],
        eps=config["eps"],
        rho=config["rho"],
        M_w=config["M_w"],
    script:
        "../scripts/lyapunov_observer/finetune.py"


rule direct_sdp:
    input:
        data="<results>/data/{dataset}.json",
        timings="<results>/timings/{dataset}/finetune.parquet",
        code=code("lyapunov_observer/direct_sdp.py"),
    output:
        solutions="<results>/models/{dataset}_direct_sdp.npz",
        timings="<results>/timings/{dataset}/direct_sdp.parquet",
    log:
        "<logs>/direct_sdp/{dataset}.log",
    benchmark:
        "<benchmarks>/direct_sdp/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=6000,
        runtime=90,
    params:
        plan=PLAN,
        runs=config["sdp_runs"],
        max_seconds=config["sdp_seconds"],
        eps=config["eps"],
        rho=config["rho"],
    script:
        "../scripts/lyapunov_observer/direct_sdp.py"


rule certify:
    input:
        data="<results>/data/{dataset}.json",
        pretrained="<results>/models/{dataset}_pretrained.safetensors",
        finetuned="<results>/models/{dataset}_observers.safetensors",
        solutions="<results>/models/{dataset}_direct_sdp.npz",
        code=code("lyapunov_observer/certify.py"),
    output:
        certificates="<results>/models/{dataset}_certificates.json",
        runs="<results>/runs/{dataset}/certify.parquet",
    log:
        "<logs>/certify/{dataset}.log",
    benchmark:
        "<benchmarks>/certify/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=20,
    params:
        plan=PLAN,
        estimation=config["estimation"],
        eps=config["eps"],
        rho=config["rho"],
        M_w=config["M_w"],
    script:
        "../scripts/lyapunov_observer/certify.py"


rule theory:
    input:
        data="<results>/data/{dataset}.json",
        models="<results>/models/{dataset}_pretrained.safetensors",
        code=code("lyapunov_observer/theory.py"),
    output:
        balls="<results>/models/{dataset}_balls.npz",
        runs="<results>/runs/{dataset}/theory.parquet",
    log:
        "<logs>/theory/{dataset}.log",
    benchmark:
        "<benchmarks>/theory/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        plan=PLAN,
        theory=config["theory"],
        pretrain=config["pretrain"],
        rate_state=config["rate_state"],
        eps=config["eps"],
        rho=config["rho"],
        M_w=config["M_w"],
    script:
        "../scripts/lyapunov_observer/theory.py"


rule robustness:
    input:
        data="<results>/data/{dataset}.json",
        models="<results>/models/{dataset}_observers.safetensors",
        code=code("lyapunov_observer/robustness.py"),
    output:
        runs="<results>/runs/{dataset}/robustness.parquet",
    log:
        "<logs>/robustness/{dataset}.log",
    benchmark:
        "<benchmarks>/robustness/{dataset}.jsonl"
    threads: 1
    resources:
        mem_mb=1500,
        runtime=20,
    params:
        nets=list(config["nets"]),
        seeds=config["seeds"],
        options=config["robustness"],
    script:
        "../scripts/lyapunov_observer/robustness.py"


rule flow:
    input:
        code=code("lyapunov_observer/flow.py"),
    output:
        frames="<results>/data/auv.npz",
        runs="<results>/runs/auv/flow.parquet",
    log:
        "<logs>/flow/auv.log",
    benchmark:
        "<benchmarks>/flow/auv.jsonl"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        flow=config["flow"],
    script:
        "../scripts/lyapunov_observer/flow.py"


rule quad:
    input:
        code=code("lyapunov_observer/quad.py"),
    output:
        runs="<results>/runs/quadrotor/tracking.parquet",
        paths="<results>/runs/quadrotor/paths.npz",
    log:
        "<logs>/quad/quadrotor.log",
    benchmark:
        "<benchmarks>/quad/quadrotor.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        vehicles=config["vehicles"],
    script:
        "../scripts/lyapunov_observer/quad.py"


rule auv:
    input:
        frames="<results>/data/auv.npz",
        code=code("lyapunov_observer/auv.py"),
    output:
        runs="<results>/runs/auv/tracking.parquet",
        paths="<results>/runs/auv/paths.npz",
    log:
        "<logs>/auv/auv.log",
    benchmark:
        "<benchmarks>/auv/auv.jsonl"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=20,
    params:
        vehicles=config["vehicles"],
        flow=config["flow"],
    script:
        "../scripts/lyapunov_observer/auv.py"


rule vehicle_figures:
    input:
        metrics="<results>/metrics.parquet",
        quadrotor="<results>/runs/quadrotor/paths.npz",
        auv="<results>/runs/auv/paths.npz",
        wake="<results>/data/auv.npz",
        code=code("lyapunov_observer/vehicle_figures.py"),
    output:
        robustness="<results>/figures/robustness.svg",
        quadrotor="<results>/figures/quadrotor.svg",
        auv="<results>/figures/auv.svg",
    log:
        "<logs>/vehicle_figures.log",
    localrule: True
    script:
        "../scripts/lyapunov_observer/vehicle_figures.py"


rule figures:
    input:
        table="<results>/metrics.parquet",
        curves=collect("<results>/models/{dataset}_curves.npz", dataset=config["datasets"]),
        balls=collect("<results>/models/{dataset}_balls.npz", dataset=config["datasets"]),
        code=code("lyapunov_observer/figures.py"),
    output:
        iterations="<results>/figures/iterations.svg",
        coverage="<results>/figures/coverage.svg",
        certificates="<results>/figures/certificates.svg",
        strategies="<results>/figures/strategies.svg",
    log:
        "<logs>/figures.log",
    localrule: True
    params:
        datasets=config["datasets"],
    script:
        "../scripts/lyapunov_observer/figures.py"


rule timed_figures:
    input:
        table="<results>/timings.parquet",
        clocks=collect("<results>/timings/{dataset}/clocks.npz", dataset=config["datasets"]),
        curves=collect("<results>/models/{dataset}_curves.npz", dataset=config["datasets"]),
        code=code("lyapunov_observer/timed_figures.py"),
    output:
        "<results>/timings/seconds.svg",
    log:
        "<logs>/timed_figures.log",
    localrule: True
    params:
        datasets=config["datasets"],
    script:
        "../scripts/lyapunov_observer/timed_figures.py"
