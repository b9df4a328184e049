"""sentence-transformers: a loss with a penalty, SoftDecay as a module, whitening that loads anywhere.

Affine post-processing (whitening, all-but-the-top, zero mean) becomes the library's own ``Dense``, so the saved model
needs nothing of isonb. SoftDecay isn't affine: a model with it needs isonb installed and, since the library refuses
modules of others by default, ``SentenceTransformer(folder, trust_remote_code=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail, in_one_line, needs
from isonb.integrations.hidden_states import unwrapped
from isonb.integrations.union import trainable, value_of, warn_of_half_weights, warn_of_no_shrinkage
from isonb.layers import SoftDecay

with needs("isonb.integrations.sentence_transformers", "hf"):
    from sentence_transformers.base.losses import uses_gradient_cache
    from sentence_transformers.base.modules import Dense, Module
    from sentence_transformers.sentence_transformer.losses.adaptive_layer import ForwardDecorator as AdaptiveLayer
    from sentence_transformers.sentence_transformer.losses.matryoshka import ForwardDecorator as Matryoshka
    from sentence_transformers.sentence_transformer.modules import Normalize
    from sentence_transformers.util.tensor import repad_flattened_features


def dense(transform: Any) -> Dense:
    """A fitted affine transform, or a linear layer, as the library's ``Dense`` without activation; frozen.

    Raises :class:`~isonb.errors.InputError` for a transform no linear layer can hold, such as cluster-based removal.
    """
    if not isinstance(transform, nn.Linear) and not hasattr(transform, "to_dense"):
        fix = "Whitening, AllButTheTop and ZeroMean are affine."
        fail(InputError, "the transform must be affine (have to_dense)", type(transform).__name__, fix)
    linear = transform if isinstance(transform, nn.Linear) else transform.to_dense()
    bias = torch.zeros(linear.out_features) if linear.bias is None else linear.bias
    layer = Dense(
        linear.in_features,
        linear.out_features,
        activation_function=None,
        init_weight=linear.weight.detach().clone(),
        init_bias=bias.detach().clone(),
    )
    return layer.requires_grad_(False)


def append_transform(model: Any, transform: Any, *, normalize: bool = False) -> Any:
    """Put a transform fitted on ``model.encode(...)`` behind the model, in place; ``normalize`` adds unit length.

    Returns the model, which saves and loads as any other and needs no isonb. The layer has the dtype of the model's
    vectors. A transform fitted on vectors that ``truncate_dim`` cuts takes the first dimensions of the whole ones, so
    that encoding gives the same. Raises :class:`~isonb.errors.InputError`, and leaves the model as it was, where the
    vectors of queries or of documents have another width than the transform was fitted on, or another dtype than each
    other, and where the layer's weights don't fit that dtype.
    """
    layer = dense(transform)
    states = {side: _vectors(model, side) for side in ("query", "document")}
    widths = {side: vectors.shape[-1] for side, vectors in states.items()}
    dtypes = {side: vectors.dtype for side, vectors in states.items()}
    if len(set(dtypes.values())) > 1:
        got = ", ".join(f"{side} {dtype}" for side, dtype in dtypes.items())
        fail(InputError, "the vectors of both sides must have one dtype", got, "Convert the model: model.float().")
    if layer.in_features == model.truncate_dim and set(widths.values()) == {max(widths.values())}:
        layer = _of_the_first(layer, max(widths.values()))
    if set(widths.values()) != {layer.in_features}:
        got = ", ".join(f"{side} {width}" for side, width in widths.items())
        invariant = f"the model's vectors must have the {layer.in_features} dimensions that the transform was fitted on"
        fail(InputError, invariant, got, "Fit it on model.encode(texts) of this model.")
    layer = layer.to(device=model.device, dtype=dtypes["query"])
    if not all(bool(weights.isfinite().all()) for weights in layer.parameters()):
        fix = "Convert the model, model.float(), or keep fewer directions."
        fail(InputError, f"the weights of the transform must fit {dtypes['query']}", "numbers beyond it", fix)
    model.append(layer)
    if normalize:
        model.append(Normalize())
    return model


def _of_the_first(layer: Dense, width: int) -> Dense:
    """The same layer for vectors of a greater width, of which it looks at the first dimensions."""
    wide = nn.Linear(width, layer.out_features)
    with torch.no_grad():
        wide.weight.zero_()[:, : layer.in_features] = layer.linear.weight
        wide.bias.copy_(layer.linear.bias)
    return dense(wide)


def _vectors(model: Any, side: str) -> Tensor:
    """What the last module gives for a text of a side, before it is cut; the model is left as it was."""
    states: list[Tensor] = []
    modes = [(module, module.training) for module in model.modules()]
    hook = list(model.children())[-1].register_forward_hook(lambda *call: states.append(call[-1]["sentence_embedding"]))
    try:
        getattr(model, f"encode_{side}")(["a"], show_progress_bar=False)
    except Exception as error:
        got = f"{type(error).__name__}: {in_one_line(error)}"
        fail(InputError, f"the model must encode a text as encode_{side} does", got, "Look at its modules.")
    finally:
        hook.remove()
        for module, training in modes:
            module.training = training
    return states[0]


class TokenSoftDecay(Module):  # type: ignore[misc]
    """:class:`isonb.SoftDecay` on the token vectors of each sentence; goes between Transformer and Pooling.

    Put it in with ``model.insert(1, TokenSoftDecay())``. alpha is trained with the model (give it a learning rate of
    its own) and saved.
    """

    config_keys = ["alpha", "mode", "trainable"]  # noqa: RUF012 - the library's form

    def __init__(self, alpha: float = -0.2, mode: Literal["code", "safe"] = "code", trainable: bool = True) -> None:
        super().__init__()
        self.mode, self.trainable = mode, trainable
        self.layer = SoftDecay(alpha, trainable, mode)

    @property
    def alpha(self) -> float:
        """The current alpha."""
        return float(self.layer.alpha.detach())

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace the token vectors; padding, or the next of packed sentences, stays out of the matrix of each."""
        if "cu_seq_lens_q" in features:
            features = repad_flattened_features(features)
        features["token_embeddings"] = self.layer(features["token_embeddings"], features.get("attention_mask"))
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Configuration and alpha."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> TokenSoftDecay:
        """Inverse of :meth:`save`, from a folder or the hub."""
        place = {key: kwargs[key] for key in ("subfolder", "token", "cache_folder", "revision") if key in kwargs}
        config = cls.load_config(model_name_or_path, **place)
        config.pop("alpha", None)  # it comes with the weights, and training may have led it out of the range of a start
        module = cls(**config)
        cls.load_torch_weights(model_name_or_path, model=module, **place)
        return module


class IsotropyLoss(nn.Module):
    """A loss of the library plus ``weight`` times the mean of ``penalty`` over the columns of the batch.

    The penalty acts within a column (anchors, positives, ...), as the library's
    ``GlobalOrthogonalRegularizationLoss`` does: the two sentences of a pair are to be alike, so they are no pair to
    spread. For example ``IsotropyLoss(model, MultipleNegativesRankingLoss(model), CosRegLoss())``.

    Returns a dict, so the Trainer logs ``isonb_penalty`` apart (inside another loss the sum); in evaluation the penalty
    is left out. The vectors are those that ``loss`` itself computes: no second pass. The batch is that of one step on
    all processes; gradient accumulation averages, as it does for ``loss``: raise ``per_device_train_batch_size``.
    An ``IStarLoss`` gets no covariance here, and a :class:`~isonb.errors.FitWarning` says so. Raises
    :class:`~isonb.errors.InputError` for the ``Cached...`` losses, which build the graph after the penalty is taken.

    Args:
        model: the ``SentenceTransformer`` that is trained.
        loss: a loss of the library. Around ``MatryoshkaLoss`` or ``AdaptiveLayerLoss`` the penalty sees the full
            vectors of the last layer; inside one of them it sees what they make, at each width and layer.
        penalty: a loss of :mod:`isonb.losses`, or a callable of points (n, d). If it has a parameter ``labels``, it
            gets those of a batch of one column with one integer label per vector.
        weight: of the penalty.
    """

    def __init__(self, model: Any, loss: nn.Module, penalty: Callable[..., Tensor], weight: float = 1.0) -> None:
        super().__init__()
        late = [part for part in loss.modules() if uses_gradient_cache(part)]
        if late:
            name = type(late[-1]).__name__  # the innermost: a loss around it says what it says
            plain = name.removeprefix("Cached")
            got = f"{name}, which builds it in the backward pass"
            fix = f"Take {plain}" if plain != name else f"Pass use_mini_batched_version=False to {name}"
            fix += "; the penalty needs the whole batch."
            fail(InputError, "the loss must build the graph of the vectors", got, fix)
        self.model, self.loss, self.penalty, self.weight = model, loss, penalty, weight
        warn_of_half_weights(model)
        warn_of_no_shrinkage(penalty)

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Any:
        """What the library calls: features of each column, and labels."""
        columns, model = list(sentence_features), unwrapped(self.model)
        inside = isinstance(model.forward, Matryoshka | AdaptiveLayer)
        states: list[Tensor] = []
        source = model if inside else list(model.children())[-1]
        hook = source.register_forward_hook(lambda *call: states.append(call[-1]["sentence_embedding"]))
        try:
            value = self.loss(columns, labels)
        finally:
            hook.remove()
        parts = dict(value) if isinstance(value, dict) else {"task": value}
        if self.model.training:
            parts["isonb_penalty"] = self.weight * self._penalty(states, columns, labels)
        return sum(parts.values()) if inside else parts

    def _penalty(self, states: list[Tensor], columns: list[dict[str, Any]], labels: Tensor | None) -> Tensor:
        """The mean over the columns. They pass in their order, alone or together; later passes are of cut vectors."""
        size = _rows(columns[0])
        points = trainable(torch.cat([part for part in states if part.shape[-1] == states[0].shape[-1]]))
        clouds = torch.split(points[: size * len(columns)], size)
        each = isinstance(labels, Tensor) and labels.shape == (size,) and not labels.is_floating_point()
        labels = labels if each and len(clouds) == 1 else None
        return torch.stack([value_of(self.penalty, cloud, labels=labels) for cloud in clouds]).mean()

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says of this loss."""
        penalty = type(self.penalty).__name__ if isinstance(self.penalty, nn.Module) else str(self.penalty)
        return {"loss": type(self.loss).__name__, "penalty": penalty, "weight": self.weight}


def _rows(features: dict[str, Any]) -> int:
    """Texts of a column: its features are padded, packed (with the starts of each text), or bags (with offsets)."""
    if "cu_seq_lens_q" in features:
        return len(features["cu_seq_lens_q"]) - 1
    inputs = [features[key] for key in ("offsets", "input_ids", "attention_mask") if key in features]
    return len(inputs[0] if inputs else next(value for value in features.values() if isinstance(value, Tensor)))
