"""Settings of louver."""

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from encore.core.config import Strict


class Exact(Strict):
    """Brute-force checks of the index."""

    steps: dict[str, PositiveInt] = Field(description="queries asked of each kind of index")
    adversarial_keys: PositiveInt
    adversarial_dim: PositiveInt


class Recall(Strict):
    """Recall of the best k keys, and what each structure must look at."""

    ks: list[PositiveInt]
    steps: PositiveInt = Field(description="queries asked of every method")
    pruning_steps: dict[str, PositiveInt] = Field(description="queries asked of each structure")


class Accuracy(Strict):
    """Teacher-forced decoding, and greedy generation."""

    context: PositiveInt = Field(description="tokens of the dense prefill")
    tokens: PositiveInt = Field(description="tokens that are predicted")
    block: PositiveInt = Field(description="tokens averaged to one observation")
    budgets: dict[str, float] = Field(description="shares of the context's keys, by label")
    dense_layers: list[NonNegativeInt] = Field(description="layers left dense by every method")
    prompt: PositiveInt
    padding: PositiveInt = Field(description="padded places of the first prompt")
    generated: PositiveInt


class Latency(Strict):
    """CPU time of a decode step."""

    sizes: dict[Literal["small", "medium", "large"], PositiveInt] = Field(description="keys")
    repeats: PositiveInt
    appended: PositiveInt = Field(description="tokens appended one by one")


class Settings(Strict):
    """One scale of ``config/papers/louver.yaml``."""

    datasets: list[str] = Field(min_length=1)
    seeds: list[int] = Field(min_length=1, description="each draws an order of the documents")
    model: Literal["smollm2", "random"]
    parts: dict[str, dict[str, str]] = Field(description="kinds of text of a data set: their file")
    layers: list[NonNegativeInt] = Field(min_length=1, description="layers that are captured")
    tokens: PositiveInt = Field(description="length of a window")
    queries: PositiveInt = Field(description="last positions whose queries are kept")
    fraction: float = Field(gt=0, lt=1, description="the budget, as a share of the keys")
    exact: Exact
    recall: Recall
    accuracy: Accuracy
    latency: Latency
