"""Windows of text as token ids, and what the attention of some layers sees of them."""

from pathlib import Path

import torch

from encore.core.job import job, write_tensors
from encore.papers.louver.capture import capture_qkv
from encore.papers.louver.data import load_model, texts, window

with job(snakemake) as (input, output, params):
    torch.set_num_threads(1)
    model, tokenizer = load_model(
        params.model, Path(input.model[0]).parent if input.model else None
    )
    folder, tensors = Path(input.raw[0]).parent, {}
    for part, file in params.parts[snakemake.wildcards.dataset].items():
        documents = texts(folder / file, part)
        for seed in params.seeds:
            ids = window(documents, tokenizer, params.tokens, seed)
            capture = capture_qkv(model, ids, params.layers, params.queries)
            tensors |= {f"{part}.{seed}.ids": ids} | capture.tensors(f"{part}.{seed}.")
            print(part, seed, len(documents), "documents")
    write_tensors(output[0], tensors)
