"""From a transformer at work to the cloud a penalty acts on: which layers, which tokens, how pooled.

The hidden states come from forward hooks on the model's own layers, not from ``output_hidden_states=True``: nothing is
added to the model's output, so an evaluation loop gathers what it always did.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, get_args

from torch import Tensor, nn

from isonb.errors import CloudWarning, InputError, ShapeError, fail
from isonb.points import Layers, Mode, chosen_layers, pool

WRAPPERS = ("module", "_orig_mod")  # DistributedDataParallel and torch.compile keep the model under these names


def unwrapped(model: nn.Module) -> nn.Module:
    """The model below DistributedDataParallel and torch.compile."""
    for name in WRAPPERS:
        while isinstance(getattr(model, name, None), nn.Module):
            model = getattr(model, name)
    return model


def only_module(model: nn.Module, wanted: Callable[[nn.Module], bool]) -> nn.Module | None:
    """The nearest module at or below ``model`` that is ``wanted``; of several as near, the one that is trained.

    None: there is none. Raises :class:`~isonb.errors.InputError` where several are trained, such as two towers.
    """
    level: dict[str, nn.Module] = {"": unwrapped(model)}
    while level:
        here = {id(one): (name, one) for name, one in level.items() if wanted(one)}
        trained = [one for one in here.values() if any(weight.requires_grad for weight in one[1].parameters())]
        kept = trained or list(here.values())
        if len(kept) > 1:
            got = ", ".join(name for name, _ in kept)
            fail(InputError, "the model must hold one encoder", got, f"Name it: module={kept[0][0]!r}.")
        if kept:
            return kept[0][1]
        level = {f"{name}.{key}".strip("."): sub for name, one in level.items() for key, sub in one.named_children()}
    return None


def named_module(model: nn.Module, name: str) -> nn.Module:
    """The submodule of that name. Raises :class:`~isonb.errors.InputError` where there is none."""
    inner = unwrapped(model)
    modules: dict[str, nn.Module] = dict(inner.named_modules())
    if name not in modules:
        near = difflib.get_close_matches(name, modules, 4, 0) or [""]
        invariant = f"module must name a submodule of {type(inner).__name__}"
        fail(InputError, invariant, repr(name), f"Try {', '.join(map(repr, near))}; named_modules() lists all.")
    return modules[name]


def _is_transformer(module: nn.Module) -> bool:
    return hasattr(module, "get_base_model") or hasattr(module, "base_model_prefix")  # of PEFT; of transformers


def encoder_of(model: nn.Module, module: str | None = None) -> Any:
    """The transformer inside ``model``: below wrappers, adapters, the task head and the module of another library.

    Of an encoder-decoder it is the encoder. ``module`` names the submodule to look at, which may be any
    :class:`torch.nn.Module` then. Raises :class:`~isonb.errors.InputError` for a model without a transformer, and for
    one of several towers, such as CLIP, without a name.
    """
    if module is not None and not _is_transformer(named := named_module(model, module)):
        return named
    inside: Any = only_module(model, _is_transformer) if module is None else named
    if inside is None:
        fix = "Pass its encoder, or name the submodule that gives the vectors: module="
        fail(InputError, "the model must hold a transformers encoder or decoder", type(unwrapped(model)).__name__, fix)
    inside = inside.get_base_model() if hasattr(inside, "get_base_model") else inside
    encoder = inside.base_model
    if getattr(encoder.config, "is_encoder_decoder", False) and hasattr(encoder, "get_decoder"):
        encoder = encoder.get_encoder()
    if module is None and not _depth(encoder):
        got = f"{type(encoder).__name__}, which says nothing of layers"
        fail(InputError, "the model must be one transformer", got, "Name the submodule that gives the vectors: module=")
    return encoder


def _layer_modules(encoder: Any) -> list[nn.Module]:
    """The modules whose calls are layers 1..L, shared ones once."""
    known: Any = (getattr(encoder, "_can_record_outputs", None) or {}).get("hidden_states")
    known = known[0] if isinstance(known, list) else known
    kind: Any = getattr(known, "target_class", known)
    modules: list[nn.Module] = list(encoder.modules())
    if isinstance(kind, type):
        return [module for module in modules if isinstance(module, kind)]
    depth = _depth(encoder)
    stacks = [module for module in modules if isinstance(module, nn.ModuleList) and len(module) == depth]
    if not stacks:
        fix = "Pass a transformers model, or call the penalty yourself."
        fail(InputError, f"the model must have a list of {depth} layers", type(encoder).__name__, fix)
    return list(stacks[0])


def _depth(encoder: Any) -> int:
    """Layers L of a transformer; 0 for any other module, which gives its output alone."""
    layers = getattr(encoder.config, "num_hidden_layers", 0) if _is_transformer(encoder) else 0
    return layers if isinstance(layers, int) else 0


def reads_forwards(encoder: nn.Module) -> bool:
    """Whether each token sees those before it alone, as in GPT-2, Llama and other decoders."""
    known = [module.is_causal for module in encoder.modules() if isinstance(getattr(module, "is_causal", None), bool)]
    return all(known) if known else bool(getattr(getattr(encoder, "config", None), "is_decoder", False))


def _first(output: Any) -> Tensor:
    """The hidden states in what a layer or a model returns: a tensor, a tuple, a dict or an output object."""
    state = getattr(output, "last_hidden_state", None)
    if state is None and isinstance(output, Mapping):
        state = next((one for one in output.values() if isinstance(one, Tensor) and one.is_floating_point()), None)
    elif state is None:
        state = output[0] if isinstance(output, tuple | list) and output else output
    if not isinstance(state, Tensor):
        got = type(output).__name__
        fail(
            InputError, "the module must give a tensor, or a tuple that begins with one", got, "Name another submodule."
        )
    return state


def _sequence(state: Tensor) -> Tensor:
    """Vectors by place (B, T, d): of vectors (B, d) there is one a row; the places of a map (B, C, H, W) are H * W."""
    if state.ndim == 2:
        return state.unsqueeze(1)
    return state.flatten(2).mT if state.ndim > 3 else state


class HiddenStates(AbstractContextManager["HiddenStates"]):
    """Keeps the hidden states of the forward passes run inside the block, with their graphs.

    ``layers`` names the ones wanted: 0 is the embedding output, 1..L the layers, "all" means 1..L, negative numbers
    count from the end. Layer L is what the model returns as its last hidden state, after a final norm if it has one. A
    layer that is shared, as in ALBERT, counts once for each time it is called. ``module`` names a submodule, as
    in :func:`encoder_of`; of one that is no transformer there is the output alone.

    >>> import torch
    >>> from transformers import BertConfig, BertModel
    >>> size = {"vocab_size": 10, "hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 4}
    >>> model = BertModel(BertConfig(num_hidden_layers=3, **size))
    >>> with HiddenStates(model, layers="all") as states:
    ...     _ = model(input_ids=torch.tensor([[1, 2]]))
    >>> [tuple(state.shape) for state in states.take()]
    [(1, 2, 4), (1, 2, 4), (1, 2, 4)]
    """

    def __init__(self, model: nn.Module, layers: Layers = -1, module: str | None = None) -> None:
        self.encoder = encoder_of(model, module)
        self.layers = layers
        chosen_layers(layers, _depth(self.encoder) + 1)
        inner = layers not in (-1, [-1], (-1,)) and _depth(self.encoder)
        self._modules = _layer_modules(self.encoder) if inner else []
        self._states: list[Any] = []  # as the layers give them: hooks never raise
        self._last: Any = None
        self._mask: Any = None  # what the encoder was called with
        self._beside_encoder = False
        self._handles: list[Any] = []

    def __enter__(self) -> HiddenStates:
        if self._modules:
            self._handles.append(self.encoder.register_forward_pre_hook(lambda *call: self._states.clear()))
        for module in self._modules:
            self._handles.append(module.register_forward_hook(self._on_layer, with_kwargs=True))
        self._handles.append(self.encoder.register_forward_hook(self._on_model, with_kwargs=True))
        return self

    def __exit__(self, *exception: object) -> None:
        # Removed before the backward pass: gradient checkpointing runs the layers again there.
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _on_layer(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if not self._states:
            self._states.append(args[0] if args else kwargs.get("hidden_states"))
        self._states.append(output)

    def _on_model(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        self._last, self._mask = output, kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
        self._beside_encoder = kwargs.get("encoder_hidden_states") is not None

    def mask(self, state: Tensor, inputs: Mapping[str, Any]) -> Tensor | None:
        """The mask of the places (B, T) of a hidden state: what the transformer was called with, or of the ``inputs``.

        Those of a whole model may tell of other places than its transformer sees: a prompt is put before them, and what
        a decoder reads beside an encoder has a mask of its own, or none. A model of sound has fewer than samples.
        """
        own = self._mask if isinstance(self._mask, Tensor) and self._mask.ndim == 2 else None
        mask = None if self._beside_encoder else inputs.get("attention_mask")
        if own is not None and (mask is None or _depth(self.encoder)):
            mask = own
        if mask is None or mask.shape == state.shape[:2]:
            return mask
        if not _depth(self.encoder):
            return None
        if hasattr(self.encoder, "_get_feature_vector_attention_mask"):
            places: Tensor = self.encoder._get_feature_vector_attention_mask(state.shape[1], mask)
            return places
        got = f"{tuple(mask.shape)} beside states {tuple(state.shape)}"
        return fail(ShapeError, "attention_mask must mark the places of the hidden states", got, "Leave it out.")

    def take(self) -> list[Tensor]:
        """The wanted hidden states (B, T, d), in the order asked for, and forget them."""
        states, last, self._states, self._last = self._states, self._last, [], None
        if last is None:
            fix = "Run the model inside the block; compile it after hooking, or not at all."
            fail(InputError, "the model must run once inside the block", "no call seen by the hooks", fix)
        states = [*states[:-1], last]
        return [_sequence(_first(states[layer])) for layer in chosen_layers(self.layers, len(states))]


@dataclass(frozen=True)
class Pooling:
    """Which points of a forward pass a penalty sees: pooling, layers, whether padding counts, of which submodule.

    ``module``: the name of the submodule that gives the vectors, where it isn't its one transformer.
    """

    mode: Mode = "cls"
    layers: Layers = -1
    include_pads: bool = False
    module: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            names = ", ".join(map(repr, get_args(Mode)))
            fail(InputError, f"points must be one of {names}", repr(self.mode), "I-STAR takes 'tokens'.")

    def watch(self, model: nn.Module) -> HiddenStates:
        """The hooks for one forward pass of ``model``, to be used in a with statement."""
        return HiddenStates(model, self.layers, self.module)

    def check(self, model: nn.Module) -> None:
        """Raise :class:`~isonb.errors.InputError` for a model whose points can't be seen; nothing is changed.

        Warns by a :class:`~isonb.errors.CloudWarning` where the first token is asked for and sees itself alone.
        """
        encoder = self.watch(model).encoder
        if self.mode == "cls" and reads_forwards(encoder):
            what = f'{type(unwrapped(model)).__name__} reads from left to right: points="cls" takes its first token,'
            fix = 'Take points="last", "mean" or "tokens"'
            warnings.warn(f"{what} which has seen nothing of the text. {fix}.", CloudWarning, stacklevel=3)

    def check_rows(self, state: Tensor, inputs: Mapping[str, Any]) -> None:
        """Raise :class:`~isonb.errors.InputError` where the one row of a hidden state holds several texts, packed.

        Their tokens are points all the same; a point for each text would need one row for each.
        """
        starts, places = inputs.get("cu_seq_lens_q"), inputs.get("position_ids")
        if self.mode == "tokens" or len(state) > 1:
            return
        packed = isinstance(starts, Tensor) and len(starts) > 2
        if isinstance(places, Tensor) and places.ndim == 2 and inputs.get("attention_mask") is None:
            packed = packed or bool((places.diff() <= 0).any())
        if packed:
            fix = 'Pad the batch, as DataCollatorWithPadding does, or take points="tokens".'
            fail(InputError, f"with points={self.mode!r} a row must hold one text", "one row of several, packed", fix)

    def points(
        self, seen: HiddenStates, inputs: Mapping[str, Any], rows: int | Callable[[int], int] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Points (n, d) of the pass just seen and, where there is one integer label per sentence, labels (n,).

        ``rows`` keeps the first so many sentences, or says of the batch's size how many. Raises
        :class:`~isonb.errors.InputError` for packed texts, as :meth:`check_rows` says.
        """
        states = seen.take()
        self.check_rows(states[0], inputs)
        size = rows(len(states[0])) if callable(rows) else rows
        labels = inputs.get("labels")
        mask = None if self.include_pads else seen.mask(states[0], inputs)
        cloud = pool([state[:size] for state in states], None if mask is None else mask[:size], self.mode)
        if self.mode == "tokens" or not isinstance(labels, Tensor) or labels.ndim != 1 or labels.is_floating_point():
            return cloud, None
        return cloud, labels[:size].repeat(len(states))
