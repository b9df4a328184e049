"""How ``tiny`` was made: a small BERT trained on any folder of text, on the Trainer of transformers.

The tasks are masked language modelling, which trains the tokens, and next sentence prediction, which trains [CLS].
The learning rate rises in a line and falls in one to zero. The same seed gives the same weights on the same machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from isonb.options import Options, option


@dataclass(frozen=True)
class PretrainSettings(Options):
    """What to train and for how long."""

    steps: int = option(10_000, "updates", low=1, high=10**9)
    seed: int = option(0, "of weights, rows and hidden tokens", low=0, high=10**6)
    batch: int = option(64, "rows an update", low=1, high=65536)
    length: int = option(64, "tokens a row; one batch in four has rows of twice that", low=8, high=4096)
    learning_rate: float = option(1.5e-3, "the peak", low=1e-8, high=1.0)
    warmup: float = option(0.03, "share of the updates in which the learning rate rises", low=0, high=0.9)
    weight_decay: float = option(0.01, "of matrices, not of biases and norms", low=0.0, high=1.0)
    bfloat16: bool = option(True, "passes in bfloat16 where the device does it itself")
    start: str = option("", "model to go on from, whose vocabulary and shape are kept; random weights without one")
    layers: int = option(4, "layers of fresh weights", low=1, high=64)
    width: int = option(128, "hidden size of fresh weights, an even multiple of heads", low=8, high=4096)
    heads: int = option(2, "attention heads of fresh weights", low=1, high=64)
    vocabulary: int = option(8192, "pieces of a new tokenizer, at most", low=64, high=10**6)
    about: str = option("", "the text's source and licence, for the model card")
