"""``encore louver``: capture a model's attention, verify the index on it, and time it."""

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

app = typer.Typer(help="Louver: a KV-cache index without false negatives.", no_args_is_help=True)

CaptureFile = Annotated[Path, typer.Argument(help="a capture written by 'encore louver capture'")]


@app.command()
def capture(
    text: Annotated[Path, typer.Argument(help="a text file")],
    output: Annotated[Path, typer.Option("--output", "-o", help="where to write the capture")],
    model: Annotated[
        str, typer.Option(help="smollm2, or a local folder of transformers")
    ] = "smollm2",
    layers: Annotated[str, typer.Option(help="layers, separated by commas")] = "2,9,14,24",
    tokens: Annotated[int, typer.Option(help="length of the window")] = 4096,
    queries: Annotated[int, typer.Option(help="last positions whose queries are kept")] = 256,
) -> None:
    """Run a model on a text and write queries, keys and values of some layers as safetensors."""
    from encore.lm.smollm2 import load_smollm2
    from encore.papers.louver.capture import capture_qkv

    loaded, tokenizer = load_smollm2(path=None if model == "smollm2" else model)
    ids = torch.tensor(tokenizer.encode(text.read_text(encoding="utf-8")))[:tokens]
    found = capture_qkv(loaded, ids, [int(n) for n in layers.split(",")], min(queries, len(ids)))
    found.write(output)
    print(f"{output}: layers {layers}, {len(ids)} tokens")


@app.command()
def verify(file: CaptureFile) -> None:
    """Count keys that the index misses against float64 brute force; exit status 1 if there is one."""
    from encore.papers.louver.qkv import QKVCapture
    from encore.papers.louver.studies import exactness

    found, missed, pairs = QKVCapture.read(file), 0, 0
    for layer in found.layers:
        steps = {"int8": 32, "subspace": 4}
        rows = [*exactness(found.keys[layer], found.queries[layer], steps)]
        rows = [row for row in rows if row["policy"] != "codes_only"]
        wrong, tested = (sum(row[name] for row in rows) for name in ("misses", "pairs"))
        print(f"layer {layer}: {wrong} misses in {tested:,} pairs of query and key")
        missed, pairs = missed + wrong, pairs + tested
    print(f"all layers: {missed} misses in {pairs:,} pairs")
    raise typer.Exit(1 if missed else 0)


@app.command()
def bench(
    file: CaptureFile,
    keys: Annotated[int, typer.Option(help="length of the cache; windows are repeated")] = 32768,
    fraction: Annotated[float, typer.Option(help="budget, as a share of the keys")] = 0.05,
    repeats: Annotated[int, typer.Option(help="rounds; every method runs once in each")] = 9,
) -> None:
    """CPU time of a decode step of one layer: dense forms and the index, in float32 and bfloat16."""
    from encore.papers.louver.latency import Bench, interleaved, long_cache
    from encore.papers.louver.qkv import QKVCapture
    from encore.papers.louver.studies import DTYPES

    found = QKVCapture.read(file)
    caches = [long_cache([found], layer, keys, seed=0) for layer in found.layers[-3:]]
    for name, dtype in DTYPES.items():
        timed = Bench(caches, dtype, fraction)
        methods = ("louver", "sdpa_gqa", "sdpa_packed", "eager")
        seconds = interleaved({m: getattr(timed, m) for m in methods}, repeats)
        ours = np.median(seconds["louver"])
        for method in methods:
            middle = np.median(seconds[method])
            print(f"{name} {method:<12} {middle * 1e3:8.3f} ms   {middle / ours:5.2f} x louver")
