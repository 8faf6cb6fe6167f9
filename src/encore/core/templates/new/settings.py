"""Settings of PAPER_SLUG."""

from pydantic import Field

from encore.core.config import Strict


class Settings(Strict):
    """One scale of ``config/papers/PAPER_SLUG.yaml``."""

    datasets: list[str] = Field(min_length=1)
    seeds: list[int] = Field(min_length=1)
    train_share: float = Field(gt=0, lt=1, description="share of the samples that are trained on")
