"""A folder of text as rows to train on: full, begun at a sentence, most of them pairs of segments.

Next sentence prediction (Devlin et al. 2019, BERT, section 3.1) asks whether the second segment follows the first in
the text or comes from elsewhere. It is only worth asking if nothing but what the segments say gives it away. So every
segment begins at a sentence, lies in its paragraph to the last token, and is cut after a number of tokens drawn without
a look at the text; and those from elsewhere are what follows other rows: neither length nor cut tells the two apart.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import DataCollatorForLanguageModeling

from isonb.errors import InputError

HELD_OUT = ("validation", "valid", "dev")  # file names that begin so are never trained on
SKIPPED = ("test", "readme", "licence", "license")
EVERY = 50  # without a held-out file, each paragraph of this rank is held out
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = 100  # a rarer character makes its word [UNK]
CHUNK = 4096  # sentences
NOT_ASKED = -100  # the label that cross-entropy skips


class TextError(InputError):
    """A text folder that is missing, holds no readable text, or too little of it."""


@dataclass(frozen=True)
class Texts:
    """Paragraphs to train on and to measure on, in the order of the files; ``fingerprint`` is their sha256."""

    train: list[str]
    validation: list[str]
    fingerprint: str


def read_folder(folder: str | Path) -> Texts:
    """All paragraphs of a folder: the rows of column ``text`` of *.parquet, the lines of *.txt.

    Files named validation*, valid* or dev* are held out; without one, every 50th paragraph is. Files named test* are
    left alone. Raises :class:`TextError` for a missing folder, a file that can't be read as text, and for no text.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise TextError(f"the text must be a folder; got {str(folder)!r}, which is none. Check the path.")
    files = sorted(path for path in folder.iterdir() if path.suffix in (".parquet", ".txt"))
    files = [path for path in files if not path.stem.lower().startswith(SKIPPED)]
    held_out = [path for path in files if path.stem.lower().startswith(HELD_OUT)]
    train = [text for path in files if path not in held_out for text in _paragraphs(path)]
    validation = [text for path in held_out for text in _paragraphs(path)]
    if not held_out:
        train, validation = [p for i, p in enumerate(train, 1) if i % EVERY], train[EVERY - 1 :: EVERY] or train[-1:]
    if not train or not validation:
        lacking, names = "validation" if train else "train", ", ".join(path.name for path in files)
        got = f"none in {folder} ({names or 'no *.parquet or *.txt files'})"
        raise TextError(f"the {lacking} text must hold at least one paragraph; got {got}. Add text.")
    digest = hashlib.sha256("".join(f"{paragraph}\n" for paragraph in (*train, "\0", *validation)).encode())
    return Texts(train, validation, digest.hexdigest())


def _paragraphs(file: Path) -> list[str]:
    from pyarrow import parquet

    try:
        if file.suffix == ".txt":
            lines = file.read_text(encoding="utf-8").splitlines()
        else:
            lines = [text or "" for text in parquet.read_table(file, columns=["text"])["text"].to_pylist()]
        return [text.strip() for text in lines if text.strip()]
    except (OSError, ValueError, KeyError, AttributeError) as error:  # the last: values that aren't strings
        targets = "UTF-8 lines" if file.suffix == ".txt" else "a parquet file with a column 'text' of strings"
        raise TextError(f"{file.name} must be {targets}; got {error}. Convert it.") from error


def sentences_of(paragraph: str) -> list[str]:
    """Cut a paragraph after ``.``, ``!`` or ``?`` where a capital, a digit or an opening quote follows.

    Roughly (it cuts after "Dr."), good enough to choose where a training row begins.

    >>> sentences_of("It rained. Did it stop? No, e.g. not today.")
    ['It rained.', 'Did it stop?', 'No, e.g. not today.']
    """
    return [s for s in SENTENCE_END.split(paragraph.strip()) if s]


def train_tokenizer(paragraphs: Sequence[str], vocabulary: int, max_length: int) -> Any:
    """A lower-casing ``BertTokenizer`` with at most ``vocabulary`` pieces.

    The same text always gives the same one. Left to itself the trainer numbers the pieces inside words in the order of
    a hash table, which differs between processes; here every piece of one character has its number before it starts.
    """
    from tokenizers import trainers
    from transformers import BertTokenizer

    bare = BertTokenizer(do_lower_case=True).backend_tokenizer
    letters = Counter(c for text in paragraphs for c in bare.normalizer.normalize_str(text) if not c.isspace())
    alphabet = sorted(sorted(letters), key=letters.__getitem__, reverse=True)[:LETTERS]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=[*SPECIAL, *("##" + letter for letter in alphabet)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    bare.train_from_iterator(paragraphs, trainer)
    return BertTokenizer(vocab=bare.get_vocab(), do_lower_case=True, model_max_length=max_length)


class Rows(Dataset[dict[str, Tensor]]):
    """One row of ``length`` tokens for each sentence of a text; the rows of a batch are cut together.

    The text is one line of ``ids`` (N,); ``starts`` (S,) are the offsets of the sentences from which a full row can
    start, ``ends`` (S,) those at which their paragraphs end. What is drawn follows from the sentences asked for alone,
    so a resumed run sees the rows of an undisturbed one. With ``doubled`` a batch in four has half as many rows of
    twice the length, so that every position is trained. Half of the pairs get the second segment of another, and
    next_sentence_label says which (1).
    """

    def __init__(self, tokenizer: Any, paragraphs: Sequence[str], length: int, *, doubled: bool = False) -> None:
        self.length, self.doubled = length, doubled
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        cut = [sentences_of(paragraph) for paragraph in paragraphs]
        sentences, encode = list(chain.from_iterable(cut)), tokenizer.backend_tokenizer.encode_batch_fast
        coded = (encode(sentences[at : at + CHUNK], add_special_tokens=False) for at in range(0, len(sentences), CHUNK))
        pieces = [torch.tensor(part.ids, dtype=torch.int32) for chunk in coded for part in chunk]
        lengths, self.ids = torch.tensor([len(piece) for piece in pieces]), torch.cat(pieces)
        starts = lengths.cumsum(0) - lengths
        paragraph = torch.repeat_interleave(torch.tensor([len(part) for part in cut]))
        ends = torch.zeros(len(cut), dtype=torch.int64).index_add_(0, paragraph, lengths).cumsum(0)[paragraph]
        room = (lengths > 0) & (starts <= len(self.ids) - 2 * length)
        if not room.any():
            got = f"at least one row of {2 * length} tokens; got {len(self.ids)}"
            raise TextError(f"the text to train on and the held-out one must each fill {got}. Add text.")
        self.starts, self.ends = starts[room], ends[room]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitems__(self, which: Sequence[int]) -> list[dict[str, Tensor]]:
        rows, length = torch.as_tensor(which), self.length
        draw = _drawn_from(rows)
        if self.doubled and int(torch.randint(4, (), generator=draw)) == 0:
            rows, length = rows[: (len(rows) + 1) // 2], 2 * length
        batch = self._written(*self._cut(rows, length, draw), length)
        return [dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)]

    def _cut(self, rows: Tensor, length: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Where first and second segments (B,) begin, how many tokens the first has, and the labels.

        Every row whose paragraph has room for it becomes a pair: its second segment begins at the first sentence after
        the first one's cut. All rows share one cut, so that a second segment fits any of them.
        """
        first, ends, room = self.starts[rows], self.ends[rows], length - 3
        least = max(1, room // 4)
        size = torch.randint(least, room - least + 1, (), generator=draw).expand_as(first)
        after = torch.searchsorted(self.starts, first + size)  # the first sentence that begins there or later
        second = self.starts[after.clamp(max=len(self) - 1)]
        pair = (after < len(self)) & (second + room - size <= ends)
        label = torch.full_like(first, NOT_ASKED)
        mine = pair.nonzero().squeeze(-1)
        donors = mine.roll(len(mine) // 2)
        other = (torch.rand(len(mine), generator=draw) < 0.5).long()
        label[mine] = torch.where(ends[donors] != ends[mine], other, NOT_ASKED)  # none of its own paragraph
        second[mine] = torch.where(label[mine] == 1, second[donors], second[mine])
        return first, second, torch.where(pair, size, length - 2), label

    def _written(self, first: Tensor, second: Tensor, size: Tensor, label: Tensor, length: int) -> dict[str, Tensor]:
        """Rows written out as [CLS] first [SEP] second [SEP], or as one segment where that fills the row."""
        place, size = torch.arange(length), size.unsqueeze(-1)
        kinds = place > size + 1
        column = torch.where(kinds, second.unsqueeze(-1) + place - size - 2, first.unsqueeze(-1) + place - 1)
        is_sep = (place == size + 1) | (place == length - 1)
        special = is_sep | (place == 0)
        ids = self.ids[column.masked_fill(special, 0)].long()
        ids = torch.where(is_sep, self.sep, torch.where(place == 0, self.cls, ids))
        names = ("input_ids", "token_type_ids", "special_tokens_mask", "next_sentence_label")
        return dict(zip(names, (ids, kinds.long(), special.long(), label), strict=True))


class Hiding(DataCollatorForLanguageModeling):  # type: ignore[misc]
    """Hides 15% of the tokens (80% masked, 10% replaced, 10% left); which ones follows from the rows alone."""

    def torch_call(self, examples: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """A batch of rows with labels. Rows are full, so there is nothing to pad and no attention mask."""
        batch = {name: torch.stack([example[name] for example in examples]) for name in examples[0]}
        self.generator = _drawn_from(batch["input_ids"])
        special = batch.pop("special_tokens_mask")
        batch["input_ids"], batch["labels"] = self.torch_mask_tokens(batch["input_ids"], special)
        return batch


def _drawn_from(numbers: Tensor) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(numbers.numpy().tobytes()))
