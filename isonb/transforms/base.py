"""What fitted transforms share: state in named tensors, saving and loading, checks, folding into a linear layer."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from isonb.checks import check_overflow, check_points, flatten_points, lasting_tensors, validated
from isonb.errors import FitWarning, InputError, ShapeError, fail, needs, not_fitted
from isonb.numerics.distances import PIECE
from isonb.numerics.rows import mean_row
from isonb.numerics.scale import points_precise, precise
from isonb.options import Options, build, describe, in_words
from isonb.streaming.moments import Moments

CONFIG, WEIGHTS = "config.json", "weights.safetensors"  # all of a fitted transform: nothing in the folder is code

ROWS = 5  # points a dimension, below which a fitted covariance is said to be rough

RENAMED = {"MeanShift": "MeanTranslation", "Standardise": "Standardize"}  # in the next release gone
_KNOWN: dict[str, type[Transform]] = {}


@dataclass(eq=False, repr=False)
class Transform(Options, ABC):
    """What every fitted transform shares: state in named tensors, saving, loading, checks of what comes in.

    >>> import isonb, torch
    >>> fitted = isonb.ZeroMean().fit(torch.tensor([[0.0, 2.0], [2.0, 4.0]]))
    >>> isinstance(fitted, isonb.Transform), fitted.transform(torch.tensor([[1.0, 3.0]])).tolist()
    (True, [[0.0, 0.0]])
    """

    CENTRE: ClassVar[str] = "mean"  # the tensor whose last axis is the dimension
    state: dict[str, Tensor] = field(init=False, default_factory=dict)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _KNOWN[cls.__name__] = cls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({in_words(describe(self))})"

    @abstractmethod
    def fit(self, x: Tensor, mask: Tensor | None = None) -> Self:
        """Learn from points (..., d), all leading axes one cloud; mask (...) marks the real ones. Returns self."""

    @abstractmethod
    def _apply(self, x: Tensor) -> Tensor:
        """Transform checked rows (n, d)."""

    @validated
    def transform(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (..., n, d) to (..., n, k), in float32 or float64; masked rows become zero."""
        d = self.dims
        x, mask = check_points(x, mask, points=0, look=False)
        if x.shape[-1] != d:
            fix = "Fit and apply the transform on the same kind of vector."
            fail(ShapeError, f"x must have the {d} dimensions {type(self).__name__} was fitted on", x.shape[-1], fix)
        rows = check_overflow(self._apply(x.reshape(-1, d)), "image", x)
        out = rows.reshape(*x.shape[:-1], rows.shape[-1])
        return out if mask is None else torch.where(mask.unsqueeze(-1), out, 0.0)

    @validated
    def fit_transform(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """:meth:`fit`, then :meth:`transform` of the same points."""
        return self.fit(x, mask).transform(x, mask)

    @property
    def dims(self) -> int:
        """The dimension the transform was fitted on."""
        return self._learned(self.CENTRE).shape[-1]

    def _learned(self, name: str) -> Tensor:
        if name not in self.state:
            not_fitted(type(self).__name__)
        return self.state[name]

    def save(self, folder: str | Path) -> None:
        """Write ``config.json`` and ``weights.safetensors`` (needs safetensors) to ``folder``."""
        config = {"class": type(self).__name__, "dims": self.dims, "options": describe(self)}
        write_folder(folder, config, self.state)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read what :meth:`save` of this class wrote."""
        loaded = load_transform(folder)
        if not isinstance(loaded, cls):
            fail(InputError, f"{folder} must hold a {cls.__name__}", type(loaded).__name__, "Use load_transform.")
        return loaded


def load_transform(folder: str | Path) -> Any:
    """The fitted transform that ``save`` wrote to ``folder``, of whichever class.

    Raises :class:`~isonb.errors.InputError` for a folder that holds no such transform, or one of an unknown class.

    >>> import isonb, tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     isonb.ZeroMean().fit(torch.eye(2)).save(folder)
    ...     isonb.load_transform(folder).transform(torch.ones(1, 2)).tolist()
    [[0.5, 0.5]]
    """
    config, tensors = read_folder(folder)
    name, options = RENAMED.get(config["class"], config["class"]), config.get("options", {})
    if name not in _KNOWN:
        fix = "Use GlowFlow.load." if name == "GlowFlow" else "Import its class first."
        fail(InputError, f"{folder} must hold one of {', '.join(sorted(_KNOWN))}", repr(name), fix)
    made = build(_KNOWN[name], options, name)
    made.state = tensors
    if made.dims != config.get("dims"):
        got = f"{config.get('dims')} in the configuration"
        fail(InputError, f"the tensors in {folder} have {made.dims} dimensions", got, "Save it again.")
    return made


def folded(affine: Callable[[Tensor], Tensor], centre: Tensor, dtype: torch.dtype) -> nn.Linear:
    """An affine map of rows (..., d) as a frozen linear layer on the CPU; ``centre`` (d) has its type and device."""
    bias = affine(torch.zeros_like(centre).unsqueeze(0))
    matrix = affine(torch.eye(len(centre), dtype=centre.dtype, device=centre.device)) - bias
    layer = nn.Linear(matrix.shape[0], matrix.shape[1], device="cpu", dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(matrix.mT)
        layer.bias.copy_(bias[0])
    return layer.requires_grad_(False)


def few_points(n: int, d: int) -> list[str]:
    r"""What to say of a covariance of ``d`` dimensions fitted on ``n`` points: nothing from 5 d points on.

    The variance of such a sample along some direction is between :math:`(1 \mp \sqrt{d/n})^2` times the true one, for
    Gaussian points of any covariance (Marchenko and Pastur 1967).

    >>> few_points(1000, 100), few_points(100, 100)[0][:70]
    ([], '100 points are few for 100 dimensions: a fitted variance is between 0 ')
    """
    if n >= ROWS * d:
        return []
    low, high = max(0.0, 1 - (d / n) ** 0.5) ** 2, (1 + (d / n) ** 0.5) ** 2
    size = f"a fitted variance is between {low:.2g} and {high:.2g} times the true one, depending on the direction"
    return [f"{n} points are few for {d} dimensions: {size}. Fit on {ROWS * d} or more."]


class AffineTransform(Transform):
    """Learns from mean and covariance alone, so it also fits by streaming; subclasses say what and how."""

    ROUGH: ClassVar[bool] = True  # whether the fit is worse the fewer the points
    NEEDS: ClassVar[Literal["mean", "variance", "covariance"]] = "covariance"  # all that it learns from

    @validated
    def fit(self, x: Tensor, mask: Tensor | None = None) -> Self:
        """Learn from points (..., d), at least two (one for a mean). Returns self.

        Products are taken in float64, so that directions without variance are told from rounding; where the points
        don't fit in memory twice, stream them to a :class:`~isonb.streaming.moments.Moments` and use
        :meth:`fit_moments`. Fewer than 5 d points give a :class:`~isonb.errors.FitWarning` with the size of the error.
        """
        if self.NEEDS == "covariance":
            return self.fit_moments(Moments().update(points_precise(x), mask))
        rows, real = flatten_points(x, mask, points=1 if self.NEEDS == "mean" else 2)
        rows = rows.detach() if real is None else rows.detach()[real]
        if self.NEEDS == "mean":
            return self._fitted(precise(mean := check_overflow(mean_row(rows), "spread")), mean, len(rows))
        return self._fitted(*variances(rows), len(rows))

    def fit_moments(self, moments: Moments) -> Self:
        """Learn from :class:`isonb.Moments`, whose points may have come in batches. Returns self.

        Moments take products in the dtype of the points: feed them float64 where directions may lack variance.
        """
        cov = moments.cov  # checks that there are points enough
        return self._fitted(moments.mean, cov if self.NEEDS == "covariance" else cov.diagonal(), int(moments.n))

    def _fitted(self, mean: Tensor, cov: Tensor, n: int) -> Self:
        with lasting_tensors():
            learned = {"mean": mean.clone(), **self._learn(mean, cov, n)}
            self.state = {name: part.contiguous() for name, part in learned.items()}
        if remarks := self._remarks(n, len(cov)):
            warnings.warn(" ".join([f"{type(self).__name__}:", *remarks]), FitWarning, stacklevel=5)
        return self

    def _remarks(self, n: int, d: int) -> list[str]:
        """What the user has to know of this fit on n points, in sentences."""
        return few_points(n, d) if self.ROUGH else []

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        """The tensors to keep beside the mean; ``cov`` is (d, d), or (d) where the variances are enough."""
        return {}

    def _centred(self, x: Tensor) -> Tensor:
        return x - self.state["mean"].to(x)

    def to_dense(self, dtype: torch.dtype = torch.float32) -> nn.Linear:
        """The same map as a frozen linear layer with bias, on the CPU."""
        return folded(self._apply, self._learned("mean"), dtype)


def variances(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance (d) of rows (n, d) in float64, about the first of them, a piece at a time."""
    n, first = len(x), precise(x[0])
    total, square = torch.zeros_like(first), torch.zeros_like(first)
    for piece in torch.split(x, max(1, PIECE // x.shape[1])):  # new memory costs more than the sums
        gap = precise(piece) - first
        total += gap.sum(0)
        square += gap.square_().sum(0)
    variance = (square - total.square() / n).clamp_min(0) / max(n - 1, 1)
    return first + total / n, check_overflow(variance)


def write_folder(folder: str | Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write ``config`` and ``tensors`` to ``folder``, made if missing."""
    with needs("a folder of fitted state", "hf"):
        from safetensors.torch import save_file
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(kept, path / WEIGHTS)
    (path / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_folder(folder: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read what :func:`write_folder` wrote; :class:`~isonb.errors.InputError` where a file is missing or broken."""
    with needs("a folder of fitted state", "hf"):
        from safetensors.torch import load_file
    path = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (path / name).is_file():
            fail(InputError, f"{path} must hold {CONFIG} and {WEIGHTS}", f"no {name}", "Pass the folder given to save.")
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
        tensors: dict[str, Tensor] = load_file(path / WEIGHTS)
    except Exception as broken:
        fail(InputError, f"{path} must hold what save wrote", f"{type(broken).__name__}: {broken}", "Save it again.")
    if not isinstance(config, dict) or "class" not in config:
        fail(InputError, f"{CONFIG} must name its class", config, "Save it again.")
    return config, tensors
