"""Windows of text as token ids, and the model that reads them."""

import zipfile
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaForCausalLM, PreTrainedModel

from encore.core.job import read_parquet
from encore.lm.smollm2 import load_smollm2
from encore.lm.tinylm import tiny_config


class ByteTokenizer:
    """Ids are the bytes of the text: what the random model of the smoke scale reads."""

    def encode(self, text: str) -> list[int]:
        """UTF-8 bytes."""
        return list(text.encode())


def load_model(name: str, path: str | Path | None = None) -> tuple[PreTrainedModel, object]:
    """``smollm2`` from its file, or ``random``: a tiny Llama with random weights that reads bytes.

    Raises:
        ValueError: another name.
    """
    if name == "smollm2":
        return load_smollm2(path=path)
    if name == "random":
        torch.manual_seed(0)
        return LlamaForCausalLM(tiny_config(256)).eval(), ByteTokenizer()
    raise ValueError(f"name={name!r}; expected 'smollm2' or 'random'")


def texts(path: str | Path, part: str) -> list[str]:
    """Documents of one kind: the files of the archive ``path``, or the rows of a table of that domain.

    Raises:
        ValueError: there are none.
    """
    path = Path(path)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
            found = [archive.read(name).decode("utf-8", errors="replace") for name in names]
    else:
        rows = read_parquet(path)
        found = list(rows["text"][rows["domain"] == part])
    found = [text for text in found if text.strip()]
    if not found:
        raise ValueError(f"{path.name} has no text of part {part!r}")
    return found


def window(documents: list[str], tokenizer, length: int, seed: int) -> torch.Tensor:
    """The first ``length`` token ids (int64) of the documents in an order drawn from ``seed``.

    Raises:
        ValueError: the documents are too short.
    """
    ids: list[int] = []
    for i in np.random.default_rng(seed).permutation(len(documents)):
        ids += tokenizer.encode(documents[i] + "\n\n")
        if len(ids) >= length:
            return torch.tensor(ids[:length])
    raise ValueError(f"the documents have {len(ids)} tokens; expected {length}")
