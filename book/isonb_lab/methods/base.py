"""What a method is to the lab: a frozen set of options with a few hooks. The base class does nothing: method "none".

A run has up to four stages, and a method takes part in those it cares about:

1. ``contrast``: tune the encoder on sentences alone (SimCSE, contrastive tension) or on labelled pairs of sentences
   (Sentence-BERT, supervised SimCSE), before anything else;
2. training on the task, or, for a similarity task, on the contrastive loss when the method needs a loss to act on:
   ``penalty`` on ``points`` joins the loss, ``layer`` is put into the model at ``site``;
3. ``second``: what happens to the features of the frozen encoder (the Isotropy Layer; a transform, with a new head);
4. similarity only: ``pool`` makes sentence vectors from hidden states, ``transform`` changes both sides of all pairs.

The engines know these hooks and no method by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import isonb
from isonb.errors import InputError, fail
from isonb.options import Options, option

if TYPE_CHECKING:  # settings are read without torch
    from torch import Tensor, nn

    from isonb.integrations.hidden_states import Pooling

Site = Literal["tokens", "vector", "pooled"]
Place = Literal["cls", "tokens", "features", "second"]


class MethodError(InputError):
    """A method that doesn't exist, can't be read from its file, or isn't given by name and options."""


@dataclass(frozen=True)
class Contrast(Options):
    """Stage 1: tune the encoder on sentences alone, or on labelled pairs.

    ``objective``: a sentence is closest to itself under another dropout mask; two copies of the encoder tell it from
    others; a classifier tells the label of a pair from both vectors; or a sentence is closest to the one it entails.
    """

    objective: Literal["simcse", "tension", "sbert", "supervised_simcse"] = option("simcse", "what is learned")
    steps: int = option(100, "updates", low=1)
    batch_size: int = option(64, "sentences or pairs an update; of tension a multiple of negatives + 1", low=2)
    learning_rate: float = option(3e-5, "learning rate", low=0, high=1)
    temperature: float = option(0.05, "of the cosines", low=1e-4, high=100)
    negatives: int = option(7, "pairs of different sentences to one of the same (K)", low=1, high=1000)
    max_length: int = option(32, "tokens a sentence", low=4, high=8192)
    pairs: str = option("english_entailment", "task whose labelled training pairs are learned from")

    @property
    def pairs_task(self) -> str | None:
        """The task whose pairs are learned from; None where sentences alone are."""
        return self.pairs if self.objective in ("sbert", "supervised_simcse") else None


@dataclass(frozen=True)
class SecondPhase:
    """Stage 3: ``module`` maps features (..., d) to (..., k); the head then reads those.

    ``head``: "frozen" keeps the fine-tuned head, "tuned" trains on from it, "new" starts a new one (needed when k is
    not d). ``penalty`` (points (n, k) -> scalar) joins the task loss: balanced by ``joint`` if that is given, summed
    otherwise. Parameters of ``module`` that require gradients are trained with AdamW.
    """

    module: nn.Module
    head: Literal["frozen", "tuned", "new"] = "frozen"
    penalty: nn.Module | None = None
    joint: nn.Module | None = None
    learning_rate: float = 1e-3
    batch_size: int = 512
    epochs: int = 50
    patience: int | None = 5

    @classmethod
    def cut_short(cls, scores: Sequence[float], epochs: int | None = None, patience: int | None = 5) -> bool:
        """Whether training ended at its last epoch while ``scores``, one an epoch, still rose.

        The best then is one of the last ``patience``, or of few epochs one of their second half; with no patience it
        is the last. ``epochs``: the most that were allowed; None: the default.

        >>> SecondPhase.cut_short([0.5, 0.6, 0.7, 0.8], 4), SecondPhase.cut_short([0.5, 0.8, 0.7, 0.6], 4)
        (True, False)
        >>> SecondPhase.cut_short([0.5, 0.6, 0.7], 4)  # it ended earlier, by its patience
        False
        """
        most = cls.epochs if epochs is None else epochs
        late = min(patience or 1, most // 2)
        return len(scores) >= most and bool(late) and max(scores[-late:]) > max(scores[:-late])


@dataclass(frozen=True)
class Method(Options):
    """Does nothing: plain fine-tuning, plain vectors."""

    name: ClassVar[str] = "none"
    source: ClassVar[str] = ""  # where it comes from, for tables
    # Of a user's own method: files beside it that it reads; what else it is made of; the digest of it all.
    files: ClassVar[tuple[str, ...]] = ()
    folder: ClassVar[Path | None] = None
    parts: ClassVar[tuple[tuple[str, Path], ...]] = ()
    sha256: ClassVar[str] = ""
    # Where it acts, by the name of that cloud in a run's record: the [CLS] vectors, the tokens, the features that the
    # classifier reads, or the output of the second stage. Its isotropy is measured there.
    acts_on: ClassVar[Place] = "cls"
    # What the classifier reads, by the same names: "features" (tanh(pooler([CLS])) with the pooler, [CLS] with the
    # linear head, behind a layer its output) or the output of the second stage. A score speaks of the isotropy there.
    read_by: ClassVar[Place] = "features"
    keeps_head: ClassVar[bool] = False  # the second stage goes on to the tuned head, pooler included
    site: ClassVar[Site] = "vector"  # of the layer: token vectors, the sentence's vector, or that after the pooler
    two_phases: ClassVar[bool] = False
    token_fit: ClassVar[bool] = False
    post_hoc: ClassVar[bool] = False  # in similarity only stage 4 takes place: neither tuning nor stage 3
    # Options that do nothing in an experiment, or on tasks of a kind, by its name: they are refused there.
    idle: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # What it is about, such as a loss or a layer, and the options that this declares.
    subject: ClassVar[Callable[..., Any] | None] = None
    taken: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:

        def __getattr__(self, option: str) -> Any: ...

    @classmethod
    def title(cls) -> str:
        """As in "weight of method istar"."""
        return f"method {cls.name}"

    def build(self, *args: Any) -> Any:
        """The subject, with the options that it declares."""
        assert self.subject is not None
        return self.subject(*args, **{name: getattr(self, name) for name in self.taken})

    def file(self, name: str) -> Path:
        """One of the ``files`` of a user's own method, to be opened; a run's fingerprint holds their content."""
        if name not in self.files or self.folder is None:
            fix = f"Write in its class: files: ClassVar = ({name!r},)"
            fail(MethodError, f"{self.name} must list each file that it reads", repr(name), fix)
        return self.folder / name

    def contrast(self) -> Contrast | None:
        """How to tune the encoder on sentences before the task; None: not at all."""
        return None

    @property
    def pairs_task(self) -> str | None:
        """The task from whose labelled pairs the encoder learns before anything else."""
        contrast = self.contrast()
        return None if contrast is None else contrast.pairs_task

    def penalty(self) -> nn.Module | None:
        """What is added to the training loss: a loss of :mod:`isonb.losses`, weight and sign included; or None."""
        return None

    def penalty_delay_epochs(self) -> int:
        """Epochs of training before the penalty joins."""
        return 0

    def points(self) -> Pooling:
        """The points of a batch that the penalty sees. "cls" is read as "last" for decoders."""
        from isonb.integrations.hidden_states import Pooling

        return Pooling()

    def layer(self, dim: int) -> nn.Module | None:
        """A module to put at ``site``: called as module(x, mask) on tokens (B, T, d), as module(x) on vectors."""
        return None

    def learning_rates(self) -> Mapping[str, float]:
        """Learning rates of parameters of the layer, by their name inside it ("raw"); the others have the run's."""
        return {}

    def features(self, states: Tensor, mask: Tensor) -> Tensor | None:
        """Sentence vectors (B, d) for stage 3 from hidden states (L+1, B, T, d); None: what the head sees."""
        return None

    def second(self, features: Tensor, seed: int) -> SecondPhase:
        """Stage 3 (only asked when ``two_phases``), from the training features (n, d) of the frozen encoder."""
        raise NotImplementedError

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        """Sentence vectors (B, d) from hidden states (L+1, B, T, d): masked mean of the mean of ``layers``."""
        return isonb.mean_pool(isonb.layer_average(states, layers), mask)

    def fit_tokens(self, tokens: Tensor, seed: int) -> object:
        """With ``token_fit``: learns from token vectors (n, d) what ``.transform(x)``s them before pooling."""
        raise NotImplementedError

    def transform(self, first: Tensor, second: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Both sides of all pairs, (n, d) and (n, d), to what is compared by cosine."""
        return first, second
