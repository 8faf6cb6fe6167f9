"""Documents, and the one stream of tokens that they become, cut into a training and a validation part."""

import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

Split = Literal["train", "validation"]


@dataclass(frozen=True)
class TextCorpus:
    """Documents in a fixed order.

    Raises:
        ValueError: no document, or an empty one (its position is named).
    """

    documents: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.documents:
            raise ValueError("documents is empty: a corpus needs at least one text")
        for i, text in enumerate(self.documents):
            if not text:
                raise ValueError(f"document {i} is empty")

    @classmethod
    def from_zip(cls, paths: Iterable[str | Path], *, seed: int = 0) -> "TextCorpus":
        """Every file of the archives that is text (not README), UTF-8, in an order drawn from ``seed``."""
        texts = []
        for path in paths:
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    if not name.endswith("/") and "README" not in name:
                        texts.append(archive.read(name).decode("utf-8", errors="replace"))
        return cls._shuffled([text for text in texts if text], seed)

    @classmethod
    def from_folder(cls, folder: str | Path, *, seed: int = 0) -> "TextCorpus":
        """Every ``.txt`` file below a folder, in an order drawn from ``seed``."""
        paths = sorted(Path(folder).rglob("*.txt"))
        return cls._shuffled([path.read_text(encoding="utf-8") for path in paths], seed)

    @classmethod
    def _shuffled(cls, texts: list[str], seed: int) -> "TextCorpus":
        order = np.random.default_rng(seed).permutation(len(texts))
        return cls(tuple(texts[i] for i in order))

    def encode(
        self, tokenizer: PreTrainedTokenizerFast, *, validation: int = 200_000
    ) -> "TokenStream":
        """Tokens of all documents, each behind the tokenizer's first token.

        Args:
            tokenizer: of fewer than 65,536 entries.
            validation: how many tokens at the end are kept for validation.

        Raises:
            ValueError: the vocabulary does not fit 16 bits, or nothing is left to train on.
        """
        if len(tokenizer) > 1 << 16:
            raise ValueError(f"tokenizer has {len(tokenizer)} entries, at most 65536 fit 16 bits")
        encoded = tokenizer(list(self.documents), add_special_tokens=False)["input_ids"]
        rows = [np.array([tokenizer.bos_token_id, *ids], dtype=np.uint16) for ids in encoded]
        offsets = np.cumsum([0, *(len(row) for row in rows[:-1])])
        return TokenStream(np.concatenate(rows), offsets, validation, len(tokenizer))


@dataclass(frozen=True)
class TokenStream:
    """Token ids uint16 ``(N,)``, where each document begins int64 ``(D,)``, and where training ends.

    Raises:
        ValueError: an id outside the vocabulary, or a validation part that leaves nothing to train on.
    """

    ids: np.ndarray
    offsets: np.ndarray
    validation: int
    vocab_size: int

    def __post_init__(self) -> None:
        if len(self.ids) and int(self.ids.max()) >= self.vocab_size:
            raise ValueError(
                f"token id {int(self.ids.max())} is outside the vocabulary of {self.vocab_size}"
            )
        if not 0 <= self.validation < len(self.ids):
            raise ValueError(
                f"validation must lie in [0, {len(self.ids)}), the number of tokens, "
                f"got {self.validation}"
            )

    def part(self, split: Split) -> np.ndarray:
        """The ids of ``"train"`` or ``"validation"``."""
        if split not in ("train", "validation"):
            raise ValueError(f"split must be 'train' or 'validation', got {split!r}")
        border = len(self.ids) - self.validation
        return self.ids[:border] if split == "train" else self.ids[border:]

    def batches(
        self, batch: int, length: int, rng: np.random.Generator, split: Split = "train"
    ) -> torch.Tensor:
        """Random windows of one split: int64 ``(batch, length)``; any window is equally likely.

        Raises:
            ValueError: ``length`` is larger than the split.
        """
        ids = self._fits(length, split)
        starts = rng.integers(0, len(ids) - length + 1, size=batch)
        return torch.from_numpy(ids[starts[:, None] + np.arange(length)].astype(np.int64))

    def windows(
        self, batch: int, length: int, split: Split = "validation"
    ) -> Iterator[torch.Tensor]:
        """Windows one after the other, int64 ``(<= batch, length)``; a shorter rest is left out."""
        ids = self._fits(length, split)
        count = len(ids) // length
        rows = torch.from_numpy(ids[: count * length].astype(np.int64)).reshape(count, length)
        yield from rows.split(batch)

    def _fits(self, length: int, split: Split) -> np.ndarray:
        ids = self.part(split)
        if not 1 <= length <= len(ids):
            raise ValueError(f"length must lie in [1, {len(ids)}], the {split} split, got {length}")
        return ids
