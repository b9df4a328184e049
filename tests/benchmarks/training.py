"""What a training step pays: the losses and layers against the published forms, and their share of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

import isonb
from isonb.barcodes.trees import spanning_tree
from isonb.numerics.distances import lengths_between, pulled
from isonb.numerics.products import gram
from tests.benchmarks.harness import Row, compare, relative_error, taken
from tests.benchmarks.measures import gaussian, shrinkage_matrix
from tests.benchmarks.peers import there
from tests.benchmarks.pieces import Part, Piece

Penalty = Callable[[Sequence[Tensor]], Tensor | float]
Transform = Callable[[Tensor], Tensor]


def entropy(bars: Tensor) -> Tensor:
    """Shannon entropy of normalised bar lengths."""
    shares = bars / bars.sum()
    return -(shares * shares.log()).sum()


def published_selection(bars: Tensor) -> Tensor:
    """The feature selection of Atienza et al. as published, one bar at a time, pass after pass: the kept bars."""
    ordered = bars.sort(descending=True).values
    longest, shortest, middle = ordered[0], ordered[-1], ordered[1:-1]
    alpha = float(shortest / longest)
    while True:
        working = torch.cat([middle, shortest[None], longest[None]])
        n = len(working)
        bound = math.ceil(n * alpha * (alpha - 1 - math.log(alpha)) / (1 - alpha) ** 2)
        before, stop = working.sum(), max(1, n - 3)
        for i in range(1, n - 2):
            tail = working[i:]
            total = tail.sum() + i * tail.sum() / entropy(tail).exp()
            if before / total < 1:
                stop = i
                break
            before = total
        middle = middle[:stop]
        if bound >= stop:
            return torch.cat([longest[None], middle])


def gudhi_lengths(x: Tensor) -> Tensor:
    """H0 bar lengths by gudhi's generators, recomputed from the points so that gradients flow."""
    import gudhi

    tree = gudhi.RipsComplex(points=x.detach().numpy()).create_simplex_tree(max_dimension=1)
    tree.compute_persistence()
    generators = torch.from_numpy(tree.flag_persistence_generators()[0].copy()).long()
    return (x[generators[:, 1]] - x[generators[:, 2]]).norm(dim=-1)


def topological_lengths(x: Tensor) -> Tensor:
    """H0 bar lengths by torch_topological."""
    from torch_topological.nn import VietorisRipsComplex

    return VietorisRipsComplex(dim=0)(x)[0].diagram[:, 1]


LENGTHS = {
    "gudhi + recursion": ("gudhi", gudhi_lengths, (15.0, None)),
    "torch_topological": ("torch_topological", topological_lengths, (15.0, 1.0)),
}
"""Name of a peer: the module it needs, bar lengths by it, and the goals for selected and for all bars."""


def entropy_pieces(x: Tensor) -> list[Piece]:
    """Of the entropy loss of one cloud: its tree, the lengths of its edges, and the gradient by them."""
    edges = spanning_tree(x)
    lengths = lengths_between(x, edges)
    return [
        Piece("tree", lambda: spanning_tree(x), True),
        Piece("exact lengths", lambda: lengths_between(x, edges), True),
        Piece("gradient by the points", lambda: pulled(x, edges, lengths, lengths), True),
    ]


def entropy_loss(small: bool = False) -> list[Row]:
    """Persistent entropy of 64 [CLS]-sized vectors, forward and backward."""
    n, d = (12, 8) if small else (64, 768)
    x = gaussian(n, d).requires_grad_()

    def gradient(value: Tensor) -> Tensor:
        return torch.autograd.grad(value, x)[0]

    def ours(select: bool) -> Tensor:
        return gradient(isonb.PersistentEntropyLoss(select=select)(x))

    def theirs(lengths, select: bool) -> Tensor:
        bars = lengths(x)
        return gradient(-entropy(published_selection(bars) if select else bars))

    rows = []
    for k, select in enumerate((True, False)):
        what = f"entropy loss forward+backward, {'selected' if select else 'all'} bars"
        peers = [
            (
                name,
                (lambda lengths=lengths, select=select: theirs(lengths, select)),
                relative_error(ours(select), theirs(lengths, select)),
                goals[k],
            )
            for name, (module, lengths, goals) in LENGTHS.items()
            if there(module)
        ]
        call = lambda select=select: ours(select)  # noqa: E731
        rounds = 1 if small else 7
        rows += compare(what, f"{n} x {d}", call, peers, allowed=1e-3, rounds=rounds, pieces=entropy_pieces(x.detach()))
    return rows


def soft_decay_by_svd(x: Tensor, alpha: float) -> Tensor:
    """SoftDecay through torch's SVD and its gradient."""
    u, s, vt = torch.linalg.svd(x, full_matrices=False)
    f = -torch.log(1 - alpha * (s + alpha) + 1e-7) / alpha
    scaled = f * s[..., :1] / f.amax(-1, keepdim=True)
    return (u * scaled.unsqueeze(-2)) @ vt


def soft_decay_pieces(x: Tensor) -> list[Piece]:
    """Of both directions: the Gram and its eigenvectors in float64, and four products of the size of the Gram.

    The four are the result, the slope in the eigenvectors, and two that bring it back. In float32 the Gram would lose
    the small singular values.
    """
    fine = x.double()
    squares = gram(fine)
    basis = squares.float()
    return [
        Piece("eigenvectors in float64", lambda: torch.linalg.eigh(squares), True),
        Piece("Gram in float64", lambda: gram(fine), True),
        Piece("four products", lambda: [basis @ x for _ in range(3)] + [x @ x.mT], True),
    ]


def soft_decay(small: bool = False) -> list[Row]:
    """SoftDecay of a batch of token matrices, forward and backward."""
    rows = []
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = (((2, 6, 12), 1.0),) if small else (((32, 64, 768), 2.0), ((8, 128, 768), 3.0))
    for shape, goal in sizes:
        x = gaussian(*shape).to(device).requires_grad_()
        weight = gaussian(*shape, seed=1).to(device)

        def ours(x: Tensor = x, weight: Tensor = weight) -> Tensor:
            return torch.autograd.grad((isonb.soft_decay(x, -0.2) * weight).sum(), x)[0]

        def theirs(x: Tensor = x, weight: Tensor = weight) -> Tensor:
            return torch.autograd.grad((soft_decay_by_svd(x, -0.2) * weight).sum(), x)[0]

        exact = x.detach().double().requires_grad_()
        reference = torch.autograd.grad((soft_decay_by_svd(exact, -0.2) * weight.double()).sum(), exact)[0]
        size = " x ".join(map(str, shape))
        peer = ("torch SVD", theirs, relative_error(ours(), reference), 10.0 if device == "cuda" else goal)
        what, rounds, pieces = "SoftDecay forward+backward", 1 if small else 5, soft_decay_pieces(x.detach())
        rows += compare(what, size, ours, [peer], allowed=1e-3, rounds=rounds, pieces=pieces)
    return rows


class Setting(NamedTuple):
    """A model and a batch, and the share of a step that a term may take."""

    layers: int
    width: int
    heads: int
    batch: int
    tokens: int
    goal: float


TRIAL = Setting(1, 16, 4, 8, 6, 1.10)
ON_CPU = Setting(4, 256, 4, 32, 64, 1.10)
ON_CARD = Setting(12, 768, 12, 32, 128, 1.05)  # as BERT base, whose steps run under autocast to bfloat16


def step_overhead(small: bool = False) -> list[Row]:
    """The share of each regulariser in one training step: of a small encoder on the CPU, of a BERT base on a card."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    setting = TRIAL if small else ON_CARD if device == "cuda" else ON_CPU
    layers, width, heads, batch, tokens, goal = setting
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width}
    config = BertConfig(num_attention_heads=heads, **sizes)
    model = BertModel(config, add_pooling_layer=False).to(device).train()
    head = torch.nn.Linear(width, 2, device=device)
    optimiser = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)
    ids = torch.randint(1000, 20_000, (batch, tokens), generator=torch.Generator().manual_seed(1)).to(device)
    labels = (torch.arange(batch) % 2).to(device)
    mask = torch.ones_like(ids)

    def states() -> Sequence[Tensor]:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            return model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states

    def step(penalty: Penalty, transform: Transform) -> None:
        optimiser.zero_grad(set_to_none=True)
        found = states()
        loss = torch.nn.functional.cross_entropy(head(transform(found[-1])[:, 0].float()), labels)
        (loss + penalty(found)).backward()
        optimiser.step()

    kept = [state.detach().requires_grad_() for state in states()]

    def alone(penalty: Penalty, transform: Transform) -> None:
        (transform(kept[-1]).sum() + penalty(kept)).backward()

    cases = step_cases(width, labels, mask)
    calls = [lambda case=case: step(*case) for case in cases.values()]
    bare = [lambda case=case: alone(*case) for case in cases.values()]
    plain, *others = taken(lambda: step(nothing, same), *calls, *bare, rounds=1 if small else 7)
    steps, terms = others[: len(cases)], others[len(cases) :]
    size = f"{batch} x {tokens} tokens, width {width}"
    rows = []
    for name, times, term in zip(cases, steps, terms, strict=True):
        parts = (Part("the term alone, both directions", min(term), False),)
        what = f"training step with {name}"
        rows.append(Row(what, size, "plain step", times, plain, goal, 0.0, 0.0, yardstick=True, parts=parts))
    return rows


def nothing(_: Sequence[Tensor]) -> float:
    """No penalty."""
    return 0.0


def same(tokens: Tensor) -> Tensor:
    """No transform."""
    return tokens


def every_token(states: Sequence[Tensor]) -> Tensor:
    """The tokens of all layers as one cloud."""
    return torch.cat([state.flatten(0, 1) for state in states[1:]])


def step_cases(width: int, labels: Tensor, mask: Tensor) -> dict[str, tuple[Penalty, Transform]]:
    """Each regulariser as a penalty on the hidden states and a transform of the last."""
    device = labels.device
    shrinkage = shrinkage_matrix(width).to(device)
    entropy_loss, istar, cosreg = isonb.PersistentEntropyLoss(), isonb.IStarLoss(weight=1.0), isonb.CosRegLoss()
    decay, isobn = isonb.SoftDecay().to(device), isonb.IsoBN(width).to(device)
    return {
        "persistent entropy, [CLS] by label": (lambda states: entropy_loss(states[-1][:, 0], labels), same),
        "I-STAR, every token, all layers": (lambda states: istar(every_token(states), shrinkage), same),
        "CosReg, last layer": (lambda states: cosreg(states[-1].flatten(0, 1)), same),
        "IsoBN on [CLS]": (nothing, lambda tokens: isobn(tokens[:, 0]).unsqueeze(1)),
        "SoftDecay, last layer": (nothing, lambda tokens: decay(tokens, mask)),
    }


SUITES = {"entropy_loss": entropy_loss, "soft_decay": soft_decay, "step_overhead": step_overhead}
