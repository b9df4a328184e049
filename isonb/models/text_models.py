"""What transformers says of a model's folder without its weights: configuration, tokenizer, longest input.

No code from a model's repository is ever run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.models.catalogue import INDEX, WHOLE
from isonb.models.module_list import read_json
from isonb.runtime.machine import memory

UNLIMITED = 1_000_000  # tokenizers without a limit report about 1e30
SIZES = ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size", "max_position_embeddings")
MOST_LAYERS = 1000
USUAL = 512  # where neither the tokenizer nor the model has a limit

# Architectures whose positions are counted from the padding index + 1: so many rows of their table go unused.
OFFSET = frozenset(
    (
        *("camembert", "data2vec-text", "ibert", "lilt", "longformer", "luke", "markuplm", "mpnet", "roberta"),
        *("roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod"),
    )
)


def read_config(folder: Path) -> Any:
    """The configuration of a text encoder or decoder. ValueError says what else it is."""
    config = read_any_config(folder)
    kind = config.model_type
    if config.is_encoder_decoder:
        raise ValueError(f"{kind} is an encoder-decoder; use an encoder or a decoder")
    size = [getattr(config, name, None) for name in ("num_hidden_layers", "hidden_size")]
    if not all(isinstance(number, int) for number in size) or not reads_text(config):
        raise ValueError(f"{kind} is no encoder or decoder of text")
    return config


def read_any_config(folder: Path) -> Any:
    """The configuration of an architecture that transformers knows itself.

    ValueError for one that needs code, that names weights of another file, or that the machine can't hold.
    """
    from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig

    with quiet():
        saved, _ = PreTrainedConfig.get_config_dict(folder, local_files_only=True)
        if "auto_map" in saved and saved.get("model_type") not in CONFIG_MAPPING:
            reason = f"its architecture {saved.get('model_type')!r} needs code from the model's repository"
            raise ValueError(f"{reason}, which is never run")
        check_attention(saved)
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if getattr(config, "transformers_weights", None) not in (None, WHOLE, INDEX):
        raise ValueError(f"its configuration names other weights, {config.transformers_weights!r}")
    check_size(config)
    return config


def check_attention(saved: Any) -> None:
    """ValueError for a configuration that asks for a kernel of the hub, ``organisation/name``: that is code."""
    if not isinstance(saved, dict):
        return
    for key, value in saved.items():
        if key.strip("_").removesuffix("_internal") in ("attn_implementation", "experts_implementation"):
            for kernel in value.values() if isinstance(value, dict) else [value]:
                if "/" in str(kernel):
                    raise ValueError(f"its configuration asks for the kernel {kernel!r} of the hub, which is never run")
        check_attention(value)


def check_size(config: Any) -> None:
    """ValueError for a model that the machine can't hold in float32, by the sizes in its configuration."""
    saved = [getattr(config, name, None) for name in SIZES]
    layers, width, inner, vocabulary, positions = (size if isinstance(size, int) else 0 for size in saved)
    if layers > MOST_LAYERS:
        raise ValueError(f"its configuration has {layers} layers, where {MOST_LAYERS} are the most")
    rows = vocabulary + (0 if getattr(config, "rope_parameters", None) else positions)
    need = 4 * width * (rows + layers * (4 * width + 2 * inner))
    if need > memory():
        raise ValueError(
            f"its configuration takes {need / 2**30:,.0f} GiB, and the machine has {memory() / 2**30:,.0f}"
        )


def reads_text(config: Any) -> bool:
    """Whether the model of a configuration takes token ids.

    Names tell it of most architectures. Of the rest the model's class does, whose import takes seconds.
    """
    from transformers import MODEL_MAPPING
    from transformers.models.auto import modeling_auto as names

    kind = config.model_type
    if kind in names.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES:
        return kind not in names.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES  # perceiver takes both
    return type(config) in MODEL_MAPPING and MODEL_MAPPING[type(config)].main_input_name == "input_ids"


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder. Padding stands on the right; off the mask, so any token serves where there is none."""
    from transformers import AutoTokenizer

    check_tokenizer(folder)
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(
            folder, padding_side="right", local_files_only=True, trust_remote_code=False
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise ValueError("its tokenizer has neither a padding token nor an end token; add one of them")
    return tokenizer


def check_tokenizer(folder: Path) -> None:
    """ValueError for a tokenizer that needs code: transformers would take another one in its place."""
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    saved = read_json(folder / "tokenizer_config.json")
    named = saved.get("tokenizer_class")
    if "auto_map" in saved and (not isinstance(named, str) or tokenizer_class_from_name(named) is None):
        raise ValueError(f"its tokenizer {named!r} needs code from the model's repository, which is never run")


def input_limit(config: Any, tokenizer: Any) -> int:
    """The longest input in tokens: the tokenizer's limit or the model's position table, whichever is shorter."""
    table = getattr(config, "max_position_embeddings", None)
    positions = table if isinstance(table, int) and table > 0 else UNLIMITED
    if config.model_type in OFFSET:
        positions -= (config.pad_token_id or 0) + 1
    limit = min(int(tokenizer.model_max_length), positions)
    return limit if limit < UNLIMITED - USUAL else USUAL


def check_room(tokenizer: Any, limit: int) -> None:
    """Raise :class:`~isonb.errors.InputError` where special tokens alone fill an input of ``limit`` tokens."""
    count = getattr(tokenizer, "num_special_tokens_to_add", int)()
    if limit <= count:
        want = f"max_length must leave room for a word beside {count} special tokens"
        fail(InputError, want, limit, f"Take {count + 1} or more.")


def is_decoder(config: Any) -> bool:
    """Whether a model of this configuration reads from left to right, so that its last token has seen the others."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    return bool(getattr(config, "is_decoder", False)) or (
        type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and type(config) not in MODEL_FOR_MASKED_LM_MAPPING
    )


def with_dropout(config: Any, dropout: float) -> Any:
    """``config`` with every dropout probability replaced, whatever the architecture calls it."""
    for key in config.to_dict():
        if "dropout" in key or key.endswith("_pdrop"):
            setattr(config, key, dropout)
    return config


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold back transformers' load report and bars inside the block, and put its settings back after it."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
