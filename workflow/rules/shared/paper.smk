# What every paper's rule file includes: its constraints (a module sees only its own), the table, the verdicts, the targets.
from encore.core.sources import code

CONTEXT = {key: config[key] for key in ("slug", "scale", "datasets", "blocked", "synthetic")}


wildcard_constraints:
    dataset=r"[a-z0-9_-]+",
    method=r"[a-z0-9_-]+",
    part=r"[a-z0-9_-]+",
    seed=r"\d+",


rule all:
    input:
        "<results>/claims.json",
        "<results>/speed.json",
        "<results>/metrics.json",
        collect("<results>/figures/{name}.svg", name=config["figures"]),
        collect("<results>/timings/{name}.svg", name=config["timed_figures"]),
    localrule: True


rule claims:
    input:
        "<results>/claims.json",
        "<results>/speed.json",
    localrule: True


rule collect:
    input:
        runs=RUNS,
        code=code("shared/collect.py"),
    output:
        table="<results>/metrics.parquet",
        summary="<results>/metrics.json",
    log:
        "<logs>/collect.log",
    localrule: True
    script:
        "../../scripts/shared/collect.py"


rule collect_timings:
    input:
        runs=TIMINGS,
        code=code("shared/collect.py"),
    output:
        table="<results>/timings.parquet",
    log:
        "<logs>/collect_timings.log",
    localrule: True
    script:
        "../../scripts/shared/collect.py"


rule judge:
    input:
        table="<results>/metrics.parquet",
        code=code("shared/judge.py"),
    output:
        report("<results>/claims.json", category="Verdicts", caption="../../report/claims.rst"),
    log:
        "<logs>/judge.log",
    localrule: True
    params:
        claims=[claim for claim in config["claims"] if claim["kind"] != "speed"],
        context=CONTEXT,
    script:
        "../../scripts/shared/judge.py"


rule judge_speed:
    input:
        table="<results>/timings.parquet",
        code=code("shared/judge.py"),
    output:
        "<results>/speed.json",
    log:
        "<logs>/judge_speed.log",
    localrule: True
    params:
        claims=[claim for claim in config["claims"] if claim["kind"] == "speed"],
        context=CONTEXT,
    script:
        "../../scripts/shared/judge.py"
