"""Encoders of a few thousand random weights in the hub's layout: config, safetensors weights and a tokenizer.

The tokenizers know :mod:`isonb_lab.data.corpus`: WordPiece for BERT and its kin, byte-level for RoBERTa and GPT-2. The
trainer of WordPiece breaks ties in an order of its own in every process, so its vocabulary is counted here.
"""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from isonb.models.text_models import quiet
from isonb_lab.data import corpus

KINDS = ("albert", "bert", "distilbert", "gpt2", "roberta")
LENGTH = 130  # tokens an input may have


def save(kind: str, folder: Path, seed: int = 0) -> Path:
    """Write a random encoder of ``kind`` with two layers of width 16 into ``folder``, which is made, and return it."""
    tokenizer = _byte_level(kind) if kind in ("gpt2", "roberta") else _word_pieces()
    torch.manual_seed(seed)
    model = _model(kind, len(tokenizer), tokenizer)
    with quiet():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _model(kind: str, text: int, tokenizer: Any) -> Any:
    size = {"vocab_size": text, "pad_token_id": tokenizer.pad_token_id, "max_position_embeddings": LENGTH}
    size |= {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    settings: dict[str, dict[str, Any]] = {
        "albert": {"embedding_size": 8},
        "distilbert": {"hidden_dim": 32},
        "gpt2": dict.fromkeys(("bos_token_id", "eos_token_id"), tokenizer.eos_token_id),
        "roberta": {"max_position_embeddings": LENGTH + 2},  # positions are counted from pad_token_id + 1
    }
    return AutoModel.from_config(AutoConfig.for_model(kind, **size | settings.get(kind, {})))


def _texts() -> list[str]:
    return [sentence.text for sentence in corpus.sentences()]


@functools.cache
def _word_pieces() -> Any:
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    normalize, split = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = Counter(word for text in _texts() for word, _ in split.pre_tokenize_str(normalize.normalize_str(text)))
    letters = sorted(set("".join(words)))
    common = sorted(words, key=lambda word: (-words[word], word))
    pieces = dict.fromkeys([*names.values(), *letters, *(f"##{letter}" for letter in letters), *common])
    vocabulary = {piece: number for number, piece in enumerate(list(pieces)[:500])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalize, split
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(list(names.values()))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return _fast(tokenizer, names)


@functools.cache
def _bytes(special: tuple[str, ...]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=list(special), initial_alphabet=alphabet)
    tokenizer.train_from_iterator(_texts(), trainer)
    return tokenizer


def _byte_level(kind: str) -> Any:
    if kind == "gpt2":
        return _fast(_bytes(("<|endoftext|>",)), dict.fromkeys(("bos", "eos", "unk"), "<|endoftext|>"))
    tokenizer = _bytes(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    return _fast(tokenizer, names)


def _fast(tokenizer: Tokenizer, names: dict[str, str]) -> Any:
    special = {f"{name}_token": token for name, token in names.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
