# Which files and settings a job of prat needs.


def raw_files(wildcards):
    """Files of the graphs of one part, or without a part of all graphs of a data set."""
    parts = config["graphs"].get(wildcards.dataset, {})
    if "part" in wildcards.keys():
        return [f"data/{wildcards.dataset}/{name}.npz" for name in parts[wildcards.part]]
    names = sum(parts.values(), []) + config["diagnosed"].get(wildcards.dataset, [])
    return [f"data/{wildcards.dataset}/{name}.npz" for name in names]


def of_part(key):
    """Settings by graph, of the graphs of one part only: another graph's change reruns nothing here."""

    def values(wildcards):
        names = config["graphs"][wildcards.dataset][wildcards.part]
        return {name: config[key][name] for name in names if name in config[key]}

    return values


def fitted_tables(wildcards):
    """Tables of the networks trained on one data set."""
    return [f"<results>/runs/{fit}.parquet" for fit in FITS if fit.startswith(wildcards.dataset)]
