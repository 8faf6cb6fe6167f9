# Data sets: one rule each, made from config/datasets.yaml; those that no source can give have none.
from encore.core.data import Registry

for dataset in Registry.load().datasets:

    rule:
        name:
            f"data_{dataset}"
        input:
            Registry.load().code(dataset),
        output:
            Registry.load().paths(dataset),
        log:
            f"results/logs/data/{dataset}.log",
        resources:
            mem_mb=2000,
            runtime=30,
        params:
            name=dataset,
        script:
            "../../scripts/shared/fetch.py"
