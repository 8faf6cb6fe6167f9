"""What every workflow script does first, and how artifacts are written whole and read with a check."""

import hashlib
import json
import os
import random
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

TAIL = 20  # lines of a failed job's log that are shown


class DamagedArtifact(RuntimeError):
    """A file of the workflow cannot be read as what it should be."""


@contextmanager
def job(snakemake: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Log what a rule's script prints, seed it, and show why it failed.

    Args:
        snakemake: the object that Snakemake puts into a script.

    Yields:
        The rule's input, output and params.
    """
    path = Path(snakemake.log[0])
    terminal = sys.stderr
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", buffering=1, encoding="utf-8") as log:
        random.seed(0)
        np.random.seed(0)
        with redirect_stdout(log), redirect_stderr(log):
            try:
                yield snakemake.input, snakemake.output, snakemake.params
            except Exception as error:  # noqa: BLE001 (whatever a script raises is shown)
                traceback.print_exc()
                if isinstance(error, OSError):
                    print(_cause(error))
                _show_tail(path, terminal)
                raise SystemExit(1) from None


def _cause(error: OSError) -> str:
    where = f" ({error.filename})" if error.filename else ""
    return f"The system said: {error.strerror or error}{where}. Free space, or give write permission, and run again."


def _show_tail(path: Path, terminal: Any) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = "\n".join(f"  | {line}" for line in lines[-TAIL:])
    print(f"\nThe job failed. Last lines of {path}:\n{shown}\n", file=terminal, flush=True)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a path beside ``path`` and rename it on success, so that no half-written file is left."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _reading(path: str | Path) -> Iterator[Path]:
    """Turn whatever a damaged file raises into one line that says what to do."""
    path = Path(path)
    try:
        yield path
    except FileNotFoundError:
        raise
    except DamagedArtifact:
        raise
    except Exception as error:
        raise DamagedArtifact(
            f"{path} is truncated or damaged ({type(error).__name__}: {error}); delete it and run again"
        ) from error


def write_json(path: str | Path, value: Any, digits: int | None = None) -> None:
    """Write JSON with sorted keys; ``digits`` rounds floats to that many significant digits."""
    if digits is not None:
        value = rounded(value, digits)
    with replacing(path) as part:
        text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
        part.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read JSON; a damaged file raises ``DamagedArtifact``."""
    with _reading(path) as file:
        return json.loads(file.read_text(encoding="utf-8"))


def rounded(value: Any, digits: int) -> Any:
    """The same nested value with floats rounded to ``digits`` significant digits."""
    if isinstance(value, Mapping):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    return value


def write_npz(path: str | Path, **arrays: Any) -> None:
    """Write arrays as compressed npz; the bytes depend on the arrays only."""
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """Read an npz file into a dict of arrays; the zip's checksums are verified, pickles refused."""
    with _reading(path) as file, np.load(file, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def write_parquet(path: str | Path, frame: Any) -> None:
    """Write a pandas DataFrame (or pyarrow Table) as parquet with page checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = (
        frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    )
    table = table.replace_schema_metadata(None)
    with replacing(path) as part:
        pq.write_table(table, part, compression="zstd", write_page_checksum=True)


def read_parquet(path: str | Path, columns: list[str] | None = None) -> Any:
    """Read parquet into a pandas DataFrame, verifying page checksums."""
    import pyarrow.parquet as pq

    with _reading(path) as file:
        return pq.read_table(file, columns=columns, page_checksum_verification=True).to_pandas()


def write_tensors(
    path: str | Path, tensors: dict[str, Any], metadata: dict[str, str] | None = None
) -> None:
    """Write torch tensors as safetensors, with a checksum of their content in the metadata."""
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as part:
        part.write_bytes(save(tensors, metadata={**(metadata or {}), "sha256": _digest(tensors)}))


def read_tensors(path: str | Path) -> dict[str, Any]:
    """Read safetensors into a dict of tensors; the checksum in the metadata is verified if there is one."""
    from safetensors import safe_open

    with _reading(path) as file, safe_open(file, framework="pt") as archive:
        tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 (not a dict)
        expected = (archive.metadata() or {}).get("sha256")
    if expected not in (None, _digest(tensors)):
        raise DamagedArtifact(f"{path} does not match its own checksum; delete it and run again")
    return tensors


def _digest(tensors: dict[str, Any]) -> str:
    total = hashlib.sha256()
    for name in sorted(tensors):
        total.update(name.encode())
        total.update(tensors[name].numpy().tobytes())
    return total.hexdigest()
