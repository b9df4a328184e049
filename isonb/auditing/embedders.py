"""From texts to vectors, whatever gives them: token by token, a model of sentence-transformers, or a function."""

from __future__ import annotations

import contextlib
import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

from isonb.auditing.reading import matrix
from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.rows import rows_of
from isonb.auditing.sides import Side, two_sided, ways
from isonb.errors import InputError, ShapeError, fail
from isonb.models.text_models import UNLIMITED, check_room
from isonb.points import pool

if TYPE_CHECKING:
    from isonb.models.loading import TokenizedSentences

ROUNDING = 1e-3  # of a vector's length, that sums in another order may move it by
HALF_STEPS = 8  # times the eps of half precision, which the rounding of many layers adds up to
LETTERS = 1000  # of a token at most: what follows so many times the longest input can't be read
TOKENS = 16_384  # tokens of a batch, padding included
STATES = 2**28  # bytes of hidden states that a batch may take


class Counts(NamedTuple):
    """How many texts were cut at the longest input, and of their tokens how many the model doesn't know."""

    cut: int = 0
    unknown: int = 0
    tokens: int = 0


def rounding_of(model: torch.nn.Module) -> float:
    """What rounding may move a vector by, in its lengths, by the coarsest type of the weights.

    >>> rounding_of(torch.nn.Linear(2, 2)), rounding_of(torch.nn.Linear(2, 2).bfloat16())
    (0.001, 0.0625)
    """
    halves = {weight.dtype for weight in model.parameters()} & {torch.float16, torch.bfloat16}
    return max([ROUNDING, *(HALF_STEPS * torch.finfo(dtype).eps for dtype in halves)])


class Embedder(ABC):
    """What gives the vectors of texts: ``name`` and ``description`` (how it pools) as the report says them.

    ``training``: whether dropout is on. ``max_length``: tokens at which texts are cut; 0 where that isn't known.
    ``rounding``: of a vector's length that sums in another order may move it.
    ``batch_size``: texts at a time. ``revision``: of what it was loaded from by its name; "" where it was passed.
    ``longer``: what to do where texts are cut.
    """

    name: str
    description: str
    batch_size: int
    training = False
    max_length = 0
    rounding = ROUNDING
    tokenizer: Any = None
    revision = ""
    longer = "raise max_length if the model allows it"

    def of_queries(self) -> Embedder:
        """What encodes queries, which some models do in a way of their own."""
        return self

    @abstractmethod
    def together(self, texts: Sequence[str]) -> Tensor:
        """The vectors (B, d) of some texts in one batch. InputError for a text that gives no token."""

    def encode(self, texts: Sequence[str], layered: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """The vectors (n, d) of texts, and of those numbered ``layered`` every layer (L+1, s, d), where it has some."""
        steps = range(0, len(texts), self.batch_size)
        return torch.cat([self.together(texts[start : start + self.batch_size]) for start in steps]), None

    def readable(self, texts: Sequence[str]) -> list[str]:
        """The texts as far as the model can read them: a tokenizer needs seconds for a megabyte."""
        return [text[: LETTERS * self.max_length] for text in texts] if self.max_length else list(texts)

    def counts(self, texts: Sequence[str]) -> Counts:
        """The texts that fill the input, the tokens that the model doesn't know, and all tokens."""
        if self.tokenizer is None or not self.max_length:
            return Counts()
        ids = self.tokenizer(self.readable(texts), truncation=True, max_length=self.max_length)["input_ids"]
        unknown = self.tokenizer.unk_token_id
        strange = 0 if unknown is None else sum(row.count(unknown) for row in ids)
        return Counts(sum(len(row) >= self.max_length for row in ids), strange, sum(map(len, ids)))

    def fingerprint(self) -> str:
        """All that makes the vectors. InputError for what was passed: it can't be told from another of its name."""
        if not self.revision:
            fix = "Leave work out, or name the model."
            fail(InputError, "vectors kept in work must be those of a model's name or folder", self.name, fix)
        return json.dumps([self.name, self.description, self.revision, self.max_length])


class FunctionEmbedder(Embedder):
    """A function from a list of strings to one vector each, an array, a tensor or a list: a service, one's own code."""

    description = "as the function gives them"

    def __init__(self, function: Callable[[list[str]], Any], batch_size: int) -> None:
        self.function, self.batch_size = function, batch_size
        self.name = f"the function {getattr(function, '__qualname__', type(function).__name__)}"

    def together(self, texts: Sequence[str]) -> Tensor:
        vectors = self.function(list(texts))
        if isinstance(vectors, list | tuple):  # a whole number among fractions is no id here
            vectors = [as_numpy(row) if isinstance(row, list | tuple) else row for row in vectors]
        source = matrix(vectors, "the vectors of the function", ids=False)
        if source.shape[0] != len(texts):
            got = f"{source.shape[0]} of {len(texts)} texts"
            fail(ShapeError, "the function must give one vector a text", got, "Return them in the order of the texts.")
        return rows_of(source, torch.arange(len(texts))).float()


class TokenEmbedder(Embedder):
    """An encoder of the lab with its pooling: "mean" over all tokens, "cls" the first one, or "last" the last real one.

    ``from_name``: the encoder was loaded from its name, so that its revision stands for all that it is.
    """

    def __init__(
        self, encoder: Any, pooling: str, max_length: int, batch_size: int = 32, from_name: bool = False
    ) -> None:
        self.encoder, self.pool, self.max_length, self.batch_size = encoder, pooling, max_length, batch_size
        self.tokenizer, self.training = encoder.tokenizer, bool(encoder.model.training)
        self.rounding = rounding_of(encoder.model)
        self.name, self.description = str(encoder.name), f"{pooling} pooling"
        self.revision = encoder.revision if from_name else ""
        check_room(self.tokenizer, self.max_length)

    def read(self, texts: Sequence[str]) -> TokenizedSentences:
        """The token numbers of each text, cut at the longest input. InputError for a text that gives no token."""
        from isonb.models.loading import TokenizedSentences

        read = TokenizedSentences.read(self.encoder, self.readable(texts), self.max_length)
        return replace(read, pad=read.pad or 0)  # off the mask any token serves

    def together(self, texts: Sequence[str]) -> Tensor:
        return self._pooled(texts, len(texts), slice(-1, None))[:, 0]

    def encode(self, texts: Sequence[str], layered: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """At most ``batch_size`` texts at a time, and no more tokens than memory allows."""
        states = self._pooled(texts, self.batch_size, slice(0 if layered else -1, None))
        return states[:, -1], states[list(layered)].transpose(0, 1) if layered else None

    def fitting(self, sentences: TokenizedSentences, size: int) -> int:
        """How many sentences, ``size`` at most, may pass together: as many as memory allows."""
        most: int = min(TOKENS, STATES // (4 * self.encoder.dim * (self.encoder.layers + 1)))
        return max(1, min(size, most // max(map(len, sentences.ids))))

    def _pooled(self, texts: Sequence[str], size: int, layers: slice) -> Tensor:
        """Some layers of all texts (n, layers, d)."""
        sentences, mode = self.read(texts), cast(Any, self.pool)
        order, pooled = [], []
        with torch.no_grad():
            for rows, states in sentences.passes(self.encoder, self.fitting(sentences, size), "", progress=False):
                order += rows
                points = [pool([state], states.mask, mode) for state in states.hidden[layers]]
                pooled.append(torch.stack(points, 1).float().cpu())
        return torch.cat(pooled)[torch.tensor(order).argsort()]


class SentenceEmbedder(Embedder):
    """What ``model.encode`` of a ``SentenceTransformer`` gives: default prompt, every module, truncation.

    A model with two sides gives documents by ``encode_document``; :meth:`of_queries` encodes by ``encode_query``. The
    model is left as it was. ``max_length``: fewer tokens than the model's own longest input; None: the model's own.
    ``prompt``: the name of the model's prompt to take, "" for none; None: what its sides take.
    """

    longer = "set max_seq_length in the model if it allows more"

    def __init__(
        self,
        model: Any,
        name: str,
        max_length: int | None,
        batch_size: int,
        revision: str = "",
        prompt: str | None = None,
    ) -> None:
        self.model, self.name, self.batch_size, self.revision = model, name, batch_size, revision
        self.prompt, self.ways, self.rounding = prompt, ways(model, prompt), rounding_of(model)
        self.two_sided = two_sided(model) or prompt is not None
        self._take("document")
        model_limit = getattr(model, "max_seq_length", None)
        if model_limit is not None and model_limit >= UNLIMITED:  # StaticEmbedding says infinity
            model_limit = None
        self.max_length = min((limit for limit in (model_limit, max_length) if limit is not None), default=0)
        self.shorter = max_length is not None and self.max_length != model_limit
        tokenizer = getattr(model, "tokenizer", None)
        self.tokenizer = tokenizer if hasattr(tokenizer, "unk_token_id") else None  # others have words of their own
        if self.shorter and self.tokenizer is not None:
            check_room(self.tokenizer, self.max_length)

    def of_queries(self) -> SentenceEmbedder:
        asking = copy.copy(self)
        asking._take("query")
        return asking

    def _take(self, side: Side) -> None:
        self.side = side
        default = f", {self.ways[side]}" if self.ways[side].text else ""
        both = f"as its encode_{side} does, {self.ways[side]}"
        self.description = both if self.two_sided else f"as sentence-transformers encodes{default}"

    def together(self, texts: Sequence[str]) -> Tensor:
        return self._encoded(texts, len(texts))

    def encode(self, texts: Sequence[str], layered: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """The vectors as ``encode`` gives them; the layers of some texts in a pass of their own."""
        steps = (layered[start : start + self.batch_size] for start in range(0, len(layered), self.batch_size))
        layers = [self._layers([texts[row] for row in rows]) for rows in steps]
        known = [item for item in layers if item is not None]
        return self._encoded(texts, self.batch_size), torch.cat(known, 1) if known else None

    def counts(self, texts: Sequence[str]) -> Counts:
        return super().counts([(self._prompt() or "") + text for text in texts])

    def _prompt(self) -> str | None:
        if self.two_sided:
            return self.ways[self.side].text
        name = self.model.default_prompt_name
        return None if name is None else str(self.model.prompts[name])

    def _encoded(self, texts: Sequence[str], size: int) -> Tensor:
        with self._configured():
            read = self.readable(texts)
            encode, how = self.model.encode, {}
            if self.two_sided:
                encode, how = getattr(self.model, f"encode_{self.side}"), {"prompt": self._prompt()}
            vectors = encode(read, batch_size=size, convert_to_tensor=True, show_progress_bar=False, **how)
        return torch.as_tensor(vectors).float().cpu()

    def _layers(self, texts: Sequence[str]) -> Tensor | None:
        """Every layer of the first module (L+1, B, d), pooled as the model pools; None where it has none."""
        from sentence_transformers.sentence_transformer.modules import Pooling
        from sentence_transformers.util import batch_to_device

        modules = list(self.model.children())
        inner = getattr(modules[0], "auto_model", None)
        pooling = next((module for module in modules if isinstance(module, Pooling)), None)
        if inner is None or pooling is None or not hasattr(inner, "config"):
            return None
        with self._configured(), torch.no_grad(), _set(inner.config, "output_hidden_states", True):
            features = batch_to_device(self.model.preprocess(list(texts), prompt=self._prompt()), self.model.device)
            output = modules[0](features)
            states = output.get("all_layer_embeddings")
            if states is None:
                return None
            states = [*states[:-1], output["token_embeddings"]]
            pooled = [pooling({**output, "token_embeddings": state})["sentence_embedding"] for state in states]
        return torch.stack(pooled).float().cpu()

    @contextlib.contextmanager
    def _configured(self) -> Iterator[None]:
        """In evaluation mode and at the longest input asked for, inside the block."""
        with contextlib.ExitStack() as stack:
            if self.shorter:
                stack.enter_context(_set(self.model, "max_seq_length", self.max_length))
            for module in self.model.modules():
                stack.enter_context(_set(module, "training", False))
            yield


@contextlib.contextmanager
def _set(thing: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(thing, name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        setattr(thing, name, before)
