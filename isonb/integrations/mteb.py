"""MTEB: an encoder with a fitted transform behind it, as ``mteb.evaluate`` takes one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from isonb.errors import ShapeError, fail


class TransformedEncoder:
    """Texts to vectors by ``encode``, then by ``transform``; two texts are compared by the cosine.

    MTEB keeps results by name and revision. The revision here follows from the vector of one sentence, so that another
    transform, or another encoder, under the same name is another model to it.

    Args:
        encode: texts to vectors (n, d), such as the ``encode`` of a ``SentenceTransformer``.
        transform: fitted, of :mod:`isonb.transforms`; None: the vectors as they are.
        name: of the results, as ``organisation/model``.

    >>> encoder = TransformedEncoder(lambda texts: [[float(len(text)), 1.0] for text in texts])
    >>> encoder.similarity_pairwise(torch.eye(2), torch.ones(2, 2)).round(decimals=3).tolist()
    [0.707, 0.707]
    """

    def __init__(self, encode: Callable[..., Any], transform: Any = None, name: str = "isonb/encoder") -> None:
        self.texts_to_vectors, self.transform, self.name = encode, transform, name
        probe = self._vectors(["How wide is this cone?"]).round(decimals=4)
        self.revision = hashlib.sha256(str(probe.tolist()).encode()).hexdigest()[:16]

    def _vectors(self, texts: list[str]) -> Tensor:
        vectors = torch.as_tensor(self.texts_to_vectors(texts)).float()
        if vectors.ndim != 2 or len(vectors) != len(texts):
            got = f"shape {tuple(vectors.shape)} of {len(texts)} texts"
            fail(ShapeError, "encode must return one vector a text", got, "Return an array (n, d).")
        changed: Tensor = vectors if self.transform is None else self.transform.transform(vectors)
        return changed.cpu()

    def encode(self, inputs: Iterable[Mapping[str, list[str]]], **about: Any) -> Tensor:
        """Vectors (n, k) of all texts, from MTEB's batches of them; what it says of task and split isn't used."""
        return self._vectors([text for batch in inputs for text in batch["text"]])

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Cosines (n, m) of each with each."""
        return _unit(embeddings1) @ _unit(embeddings2).mT

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Cosines (n,) of each with its partner."""
        return (_unit(embeddings1) * _unit(embeddings2)).sum(-1)

    @property
    def mteb_model_meta(self) -> Any:
        """Name and revision, as MTEB keeps them."""
        from mteb.models.model_meta import ModelMeta

        return ModelMeta.create_empty({"name": self.name, "revision": self.revision})


def _unit(vectors: Any) -> Tensor:
    return F.normalize(torch.as_tensor(vectors).float(), dim=-1)
