"""A model cut to its first layers, of which the last few are trained: the states below come from the disk.

The layers that are trained begin with the states of the layer below them. These don't change in training, so they are
computed once, in float32 and without dropout, rounded to float16 and read by all runs of the same texts
(:mod:`isonb_lab.encoders.state_files`). To those runs the model has as many layers as are trained, and its layer 0 is
the layer below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isonb.errors import OptionError, fail
from isonb.models.loading import Encoder, load
from isonb_lab.encoders import state_files

AT_ONCE = 2048  # tokens of a pass through the lower layers
LARGEST = float(np.finfo(np.float16).max)
Row = tuple[list[int], list[int]]  # token numbers and types


def first_layers(encoder: Encoder, count: int) -> Encoder:
    """The encoder with its first ``count`` layers alone; a norm behind the last layer stays. The model is changed.

    Raises :class:`~isonb.errors.OptionError` for more layers than there are, and for a model whose layers can't be
    told apart, such as one that shares them.

    >>> from isonb.models.loading import load
    >>> first_layers(load("tiny"), 2).layers
    2
    """
    if count > encoder.layers:
        fail(OptionError, f"layers must be at most the {encoder.layers} of {encoder.name}", count, "Lower it.")
    _keep(encoder.model, 0, count)
    return encoder


def trained_above(encoder: Encoder, count: int) -> tuple[Encoder, LowerStates]:
    """The encoder with its last ``count`` layers alone, and what gives them the states below. The model is changed.

    These layers alone are trained: what lies before and behind them, such as a last norm, is frozen. Raises as
    :func:`first_layers`.
    """
    if count > encoder.layers:
        fail(OptionError, f"train_layers must be at most the {encoder.layers} layers", count, "Lower it.")
    total, below = encoder.layers, encoder.layers - count
    _keep(encoder.model, below, total)
    encoder.model.requires_grad_(False)
    layer_list(encoder.model).requires_grad_(True)
    table = encoder.model.get_input_embeddings()
    encoder.model.set_input_embeddings(_NoTable(table.weight.shape[-1]))
    return encoder, LowerStates(encoder, below)


class _NoTable(nn.Module):
    """Stands where a model has its table of words, which no layer that is left reads: it would fill checkpoints."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, ids: Tensor) -> Tensor:
        return torch.zeros(*ids.shape, self.width, device=ids.device)


def layer_list(model: Any) -> nn.ModuleList:
    """The list of a transformer's layers. Raises :class:`~isonb.errors.OptionError` where it names none."""
    return _place(model)[2]


def _place(model: Any) -> tuple[nn.Module, str, nn.ModuleList]:
    """The module that has the list of layers, the list's name there, and the list."""
    depth = model.config.num_hidden_layers
    for parent in model.modules():
        for name, child in parent.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == depth:
                return parent, name, child
    must = f"a model must name its {depth} layers one by one to be cut"
    return fail(OptionError, must, type(model).__name__, "Leave layers and train_layers out.")


def _keep(model: Any, first: int, last: int) -> None:
    """Keep the layers ``first`` to ``last``, the latter excluded."""
    parent, name, layers = _place(model)
    setattr(parent, name, layers[first:last])
    model.config.num_hidden_layers = last - first
    model.config.use_cache = False  # of a decoder's keys and values, by the layers' numbers
    if isinstance(kinds := getattr(model.config, "layer_types", None), list):
        model.config.layer_types = kinds[first:last]


class LowerStates:
    """Puts the states below the trained layers in the place of the embedding output, in every pass of the model.

    States of texts that :meth:`read` hasn't seen are computed when they are asked for. The hooks of an instance belong
    to one model.
    """

    def __init__(self, encoder: Encoder, below: int) -> None:
        self.encoder, self.below = encoder, below
        self._places: dict[bytes, tuple[np.ndarray[Any, Any], int, int]] = {}
        self._lower: Encoder | None = None
        self._state: Tensor | None = None
        model: Any = encoder.model
        model.register_forward_pre_hook(self._on_inputs, with_kwargs=True)
        layer_list(model)[0].register_forward_pre_hook(self._on_first_layer, with_kwargs=True)
        model.register_forward_hook(self._on_output)

    def __deepcopy__(self, memo: dict[int, Any]) -> LowerStates:
        return self  # a copy of the model reads the same states

    def read(self, rows: Sequence[dict[str, Any]], progress: bool = True) -> None:
        """Have the states of tokenised texts at hand: from the disk, where another run has left them."""
        tokens = [_row(row["input_ids"], row.get("token_type_ids")) for row in rows]
        keys = [_key(row) for row in tokens]
        first = {key: row for key, row in zip(keys, tokens, strict=True) if key not in self._places}
        if not first:
            return
        lengths = [len(row[0]) for row in first.values()]
        name = state_files.digest(self.encoder.revision, self.below, first)
        compute = lambda: self._computed(list(first.values()), progress)  # noqa: E731
        cached = state_files.states(name, lengths, self.encoder.dim, compute)
        self._lower = None  # the second copy of the model has no place in memory while the upper layers are trained
        ends = np.cumsum(lengths)
        self._places |= {
            key: (cached, int(end - length), int(end)) for key, end, length in zip(first, ends, lengths, strict=True)
        }

    def _computed(self, rows: Sequence[Row], progress: bool) -> Iterator[state_files.Batch]:
        from tqdm import tqdm

        order = sorted(range(len(rows)), key=lambda row: -len(rows[row][0]))
        off = None if progress else True
        with tqdm(total=len(rows), desc=f"{self.encoder.name}, {self.below} layers", leave=False, disable=off) as bar:
            start = 0
            while start < len(order):
                some = order[start : start + max(1, AT_ONCE // len(rows[order[start]][0]))]
                yield some, np.concatenate(self._pass([rows[row] for row in some]))
                start += len(some)
                bar.update(len(some))

    @torch.no_grad()
    def _pass(self, rows: Sequence[Row]) -> list[np.ndarray[Any, Any]]:
        """The states of some texts, in float16, from a second copy of the model that has the lower layers."""
        device = next(self.encoder.model.parameters()).device
        if self._lower is None:
            self._lower = first_layers(load(self.encoder.name, device=device), max(self.below, 1))
        model: Any = self._lower.model
        width = max(len(ids) for ids, _ in rows)
        padded = [(ids + [0] * (width - len(ids)), types + [0] * (width - len(ids))) for ids, types in rows]
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows], device=device)
        inputs = {"input_ids": torch.tensor([ids for ids, _ in padded], device=device), "attention_mask": mask}
        if any(any(types) for _, types in rows):
            inputs["token_type_ids"] = torch.tensor([types for _, types in padded], device=device)
        caught: list[Any] = []
        layers = layer_list(model)
        if self.below:
            hook = layers[-1].register_forward_hook(lambda module, args, output: caught.append(output))
        else:
            hook = layers[0].register_forward_pre_hook(lambda module, args: caught.append(args))
        with hook, torch.autocast(device.type, enabled=False):
            model(**inputs)
        state = caught[0][0] if isinstance(caught[0], tuple) else caught[0]
        largest = float(state[mask.bool()].abs().max())
        if not largest <= LARGEST:
            must = f"states must lie in the range of float16, up to {LARGEST:g}, to be kept"
            fail(OptionError, must, f"{largest:g} in {self.encoder.name}", "Cut at another layer.")
        halves = state.half().cpu().numpy()
        return [half[: len(ids)] for half, (ids, _) in zip(halves, rows, strict=True)]

    def _on_inputs(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        mask, types = kwargs.get("attention_mask"), kwargs.get("token_type_ids")
        real = torch.ones_like(ids) if mask is None else mask
        numbers, kinds = ids.tolist(), [[0] * ids.shape[1]] * len(ids) if types is None else types.tolist()
        rows = []
        for row, (length, line, kind) in enumerate(zip(real.sum(-1).tolist(), numbers, kinds, strict=True)):
            if not bool(real[row, :length].all()):
                fail(OptionError, "padding must stand on the right of a text", f"row {row}", "Pad on the right.")
            rows.append((line[:length], kind[:length]))
        missing = [row for row in rows if _key(row) not in self._places]
        new = dict(zip(map(_key, missing), self._pass(missing), strict=True)) if missing else {}
        states = np.zeros((*ids.shape, self.encoder.dim), dtype=np.float32)
        for place, sentence in enumerate(rows):
            key = _key(sentence)
            cached, start, end = self._places[key] if key in self._places else (new[key], 0, len(new[key]))
            states[place, : end - start] = cached[start:end]
        self._state = torch.from_numpy(states).to(ids.device)

    def _on_first_layer(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        assert self._state is not None
        if args:
            return (self._state.to(args[0].dtype), *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": self._state.to(kwargs["hidden_states"].dtype)}

    def _on_output(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """Layer 0 of the hidden states is the layer below, whatever the model has collected there."""
        states, self._state = self._state, None
        if getattr(output, "hidden_states", None):
            output["hidden_states"] = (states, *output.hidden_states[1:])
        return output


def _row(ids: Sequence[int], types: Sequence[int] | None) -> Row:
    return list(ids), [0] * len(ids) if types is None else list(types)


def _key(row: Row) -> bytes:
    ids, types = (np.asarray(numbers, dtype=np.int32) for numbers in row)
    return ids.tobytes() + (types.tobytes() if types.any() else b"")
