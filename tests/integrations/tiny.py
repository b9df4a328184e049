"""Models of a few thousand weights and batches of unequal sentences, for the tests of the training loops."""

from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel, Trainer

from isonb.integrations.hidden_states import Pooling
from isonb.integrations.trainer import IsotropyTrainerMixin

SIZE = {
    "vocab_size": 40,
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "num_labels": 2,
    "pad_token_id": 0,
}
KINDS = ("albert", "bert", "distilbert", "gpt2", "roberta")


class IsotropyTrainer(IsotropyTrainerMixin, Trainer):
    """As a user writes it."""


def model(kind: str = "bert", dropout: float = 0.0, seed: int = 0) -> PreTrainedModel:
    """A float64 sequence classifier with random weights and two layers."""
    torch.manual_seed(seed)
    off = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    more: dict[str, dict[str, Any]] = {
        "albert": {"embedding_size": 8, "classifier_dropout_prob": 0.0},
        "distilbert": dict.fromkeys(("dropout", "attention_dropout", "seq_classif_dropout"), dropout)
        | {"hidden_dim": 16},
        "gpt2": dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), dropout)
        | {"bos_token_id": 1, "eos_token_id": 1},
    }
    config = AutoConfig.for_model(kind, **SIZE, **more.get(kind, {}), **dict.fromkeys(off, dropout))
    return AutoModelForSequenceClassification.from_config(config).double()


def sentences(count: int = 16, longest: int = 6, seed: int = 1) -> list[dict[str, Tensor]]:
    """Random token ids of two to ``longest`` tokens with two labels in turn, each padded to ``longest``."""
    draw = torch.Generator().manual_seed(seed)
    results = []
    for number in range(count):
        length = int(torch.randint(2, longest + 1, (1,), generator=draw))
        ids = torch.zeros(longest, dtype=torch.long)
        ids[:length] = torch.randint(2, 40, (length,), generator=draw)
        results.append({"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": torch.tensor(number % 2)})
    return results


def batch(rows: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Several sentences as one batch."""
    return {key: torch.stack([row[key] for row in rows]) for key in rows[0]}


def points(pooling: Pooling, network: torch.nn.Module, inputs: dict[str, Tensor], **labels: Tensor) -> Any:
    """The points that a pooling takes from one pass of a model, and their labels."""
    with pooling.watch(network) as states:
        network(**inputs)
    return pooling.points(states, inputs | labels)


def arguments(folder: Any, **changes: Any) -> dict[str, Any]:
    """Training arguments: plain SGD without clipping or schedule, so that an update is minus the gradient."""
    return {
        "output_dir": str(folder),
        "use_cpu": True,
        "optim": "sgd",
        "learning_rate": 0.5,
        "max_grad_norm": 0.0,
        "lr_scheduler_type": "constant",
        "max_steps": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "seed": 0,
    } | changes


def weights(trained: torch.nn.Module) -> Tensor:
    """Every parameter in one vector."""
    return torch.cat([weight.detach().flatten() for weight in trained.parameters()])


def hooks(network: torch.nn.Module) -> int:
    """How many forward hooks hang on a model."""
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in network.modules())
