"""Text as training rows for masked language modelling: tokenizer, token stream, full rows, hidden tokens.

Every row is full (no padding) and begins at a sentence. Some are pairs, ``[CLS] first [SEP] second [SEP]``, so that the
second segment and the separator are trained too; how they are cut is told in :mod:`isonb.lab.pretraining.segments`. All
randomness comes from a generator that the caller seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.lab.pretraining.segments import Segments, cut_pairs, first_and_rest
from isonb.lab.pretraining.text import TextError, sentences_of

__all__ = ["SPECIAL", "Masked", "Stream", "masked_rows", "stream", "train_tokenizer", "wrap_tokenizer"]

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CLS, SEP, MASK = 2, 3, 4
SHARE = 0.15  # of the tokens are predicted: 80% of these hidden, 10% replaced by another token, 10% left as they are
LETTERS = 100  # a rarer character makes its word [UNK]
CHUNK = 4096


@dataclass(frozen=True)
class Stream:
    """A text as one line of token ids (N,), and the offsets (S,) of its sentences from which a full row can start.

    ``ends`` (S,) are the offsets at which the paragraphs of these sentences end.
    """

    ids: Tensor
    starts: Tensor
    ends: Tensor


@dataclass(frozen=True)
class Masked:
    """Rows with hidden tokens: ids and segments (B, T); ``positions`` (B*K,) into the flat rows, and what was there.

    ``elsewhere`` (B,) says of a pair whether its second segment follows the first in the text (0) or not (1);
    :data:`~isonb.lab.pretraining.segments.NO_PAIR` where there is nothing to say.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    positions: Tensor
    labels: Tensor
    elsewhere: Tensor

    def to(self, device: str | torch.device) -> Masked:
        """The same rows on another device."""
        moved = (t.to(device, non_blocking=True) for t in vars(self).values())
        return Masked(*moved)


def train_tokenizer(paragraphs: Sequence[str], vocabulary: int) -> Any:
    """A lower-casing WordPiece tokenizer (``tokenizers.Tokenizer``) with at most ``vocabulary`` entries.

    The same text always gives the same one. Left to itself the trainer numbers the pieces inside words in the order of
    a hash table, which differs between processes; here every piece of one character has its number before it starts.
    """
    from tokenizers import trainers

    tokenizer = _wordpiece({})
    letters = Counter(c for text in paragraphs for c in tokenizer.normalizer.normalize_str(text) if not c.isspace())
    alphabet = sorted(sorted(letters), key=letters.__getitem__, reverse=True)[:LETTERS]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=[*SPECIAL, *("##" + letter for letter in alphabet)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(paragraphs, trainer)
    return _wordpiece(tokenizer.get_vocab())


def _wordpiece(vocabulary: dict[str, int]) -> Any:
    """BERT's way from text to ids with the given vocabulary; only :data:`SPECIAL` are special."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if vocabulary:
        tokenizer.add_special_tokens(list(SPECIAL))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
        )
    return tokenizer


def wrap_tokenizer(tokenizer: Any, folder: Path, max_length: int) -> None:
    """Save the tokenizer in the Hugging Face layout (tokenizer.json, tokenizer_config.json)."""
    from transformers import PreTrainedTokenizerFast

    names = {f"{name.strip('[]').lower()}_token": name for name in SPECIAL}
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **names,
    )
    wrapped.save_pretrained(folder)


def stream(tokenizer: Any, paragraphs: Iterable[str], longest: int) -> Stream:
    """Tokenise sentence by sentence. ``longest`` is the longest row that a sentence must have room for.

    Raises :class:`TextError` when the text is shorter than one row.
    """
    cut = [sentences_of(paragraph) for paragraph in paragraphs]
    pieces: list[Tensor] = []
    for chunk in _chunks(sentence for sentences in cut for sentence in sentences):
        coded = tokenizer.encode_batch_fast(chunk, add_special_tokens=False)
        pieces += [torch.tensor(c.ids, dtype=torch.int32) for c in coded]
    lengths = torch.tensor([len(p) for p in pieces], dtype=torch.int64)
    ids = torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.int32)
    starts = lengths.cumsum(0) - lengths
    paragraph = torch.repeat_interleave(torch.tensor([len(sentences) for sentences in cut], dtype=torch.int64))
    sizes = torch.zeros(len(cut), dtype=torch.int64).index_add_(0, paragraph, lengths)
    keep = (lengths > 0) & (starts <= len(ids) - longest)
    if not keep.any():
        raise TextError(f"the text must fill at least one row of {longest} tokens; got {len(ids)}. Add text.")
    return Stream(ids, starts[keep], sizes.cumsum(0)[paragraph][keep])


def masked_rows(
    text: Stream, which: Tensor, length: int, vocabulary: int, generator: torch.Generator, follow: bool = False
) -> Masked:
    """Rows of ``length`` tokens that begin at the sentences ``which`` (B,), with 15% of their tokens hidden.

    With ``follow`` the pairs are cut for next sentence prediction: half of the second segments are from elsewhere.
    """
    parts = (cut_pairs if follow else first_and_rest)(text.starts, text.ends, which, length, generator)
    ids, segments, special = _rows(text.ids, parts, length)
    count = max(1, round(SHARE * (length - 2)))
    score = torch.rand(ids.shape, generator=generator).masked_fill_(special, -1.0)
    columns = score.topk(count, dim=-1).indices.sort(-1).values
    labels = ids.gather(-1, columns)
    fate = torch.rand(columns.shape, generator=generator)
    other = torch.randint(len(SPECIAL), vocabulary, columns.shape, generator=generator)
    shown = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, other, labels))
    positions = columns + length * torch.arange(len(which)).unsqueeze(-1)
    return Masked(ids.scatter(-1, columns, shown), segments, positions.flatten(), labels.flatten(), parts.elsewhere)


def _rows(text: Tensor, parts: Segments, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, segments and special positions (B, T) of rows written as one segment or as a pair."""
    size = parts.size.unsqueeze(-1)
    place = torch.arange(length)
    second = place > size + 1
    column = torch.where(
        second, parts.second.unsqueeze(-1) + place - size - 2, parts.first.unsqueeze(-1) + (place - 1).clamp(min=0)
    )
    is_sep = (place == size + 1) | (place == length - 1)
    ids = text[torch.where(is_sep, 0, column)].long()
    ids = torch.where(place == 0, CLS, torch.where(is_sep, SEP, ids))
    return ids, second.long(), is_sep | (place == 0)


def _chunks(sentences: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for sentence in sentences:
        chunk.append(sentence)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
