"""What a training pays: losses and layers against the published forms, their share of a step, and a run of the lab."""

import copy
import dataclasses
import math
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

import isonb
from isonb.barcodes.trees import spanning_tree
from isonb.numerics.distances import edge_length_grad, lengths_between
from isonb.numerics.products import gram
from isonb_lab.engines.finetune import prepare
from isonb_lab.engines.stages import EVALUATED
from isonb_lab.engines.trainer import train
from tests.benchmarks.harness import Comparison, Peer, Piece, gaussian, gradient_of, relative_error, size_of
from tests.benchmarks.measures import shrinkage_matrix
from tests.benchmarks.peers import soft_decay_by_svd, there

Penalty = Callable[[Sequence[Tensor]], Tensor | float]
Transform = Callable[[Tensor], Tensor]


def entropy(bars):
    shares = bars / bars.sum()
    return -(shares * shares.log()).sum()


def published_selection(bars):
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


def gudhi_lengths(x):
    """H0 bar lengths by gudhi's generators, recomputed from the points so that gradients flow."""
    import gudhi

    tree = gudhi.RipsComplex(points=x.detach().numpy()).create_simplex_tree(max_dimension=1)
    tree.compute_persistence()
    generators = torch.from_numpy(tree.flag_persistence_generators()[0].copy()).long()
    return (x[generators[:, 1]] - x[generators[:, 2]]).norm(dim=-1)


def topological_lengths(x):
    from torch_topological.nn import VietorisRipsComplex

    return VietorisRipsComplex(dim=0)(x)[0].diagram[:, 1]


LENGTHS = {
    "gudhi + recursion": ("gudhi", gudhi_lengths, {True: 15.0, False: None}),
    "torch_topological": ("torch_topological", topological_lengths, {True: 15.0, False: 1.0}),
}
"""Name of a peer: the module it needs, bar lengths by it, and the goals for selected and for all bars."""


def entropy_loss(small):
    """Persistent entropy of 64 [CLS]-sized vectors, forward and backward."""
    x = gaussian(*((12, 8) if small else (64, 768)))

    def pieces():
        edges = spanning_tree(x)[0]
        lengths = lengths_between(x, edges)
        return [
            Piece("tree and its lengths", lambda: lengths_between(x, spanning_tree(x)[0]), True),
            Piece("gradient by the points", lambda: edge_length_grad(x, edges, lengths, lengths), True),
        ]

    for bars, select in (("selected", True), ("all", False)):
        ours = gradient_of(isonb.PersistentEntropyLoss(select=select), x)
        kept = published_selection if select else (lambda bars: bars)
        others = [
            Peer(name, theirs, relative_error(ours(), theirs()), goals[select])
            for name, (module, lengths, goals) in LENGTHS.items()
            if there(module)
            for theirs in [gradient_of(lambda z, lengths=lengths, kept=kept: -entropy(kept(lengths(z))), x)]
        ]
        what = f"entropy loss forward+backward, {bars} bars"
        yield Comparison(what, size_of(x), ours, others, 1e-3, pieces=pieces)


def soft_decay_pieces(x):
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


def soft_decay(small, device="cpu"):
    for shape, goal in (((2, 6, 12), 1.0),) if small else (((32, 64, 768), 2.0), ((8, 128, 768), 3.0)):
        x, weight = gaussian(*shape, device=device), gaussian(*shape, seed=1, device=device)

        def weighted(function, weight=weight):
            return lambda z: (function(z, -0.2) * weight.to(z.dtype)).sum()

        ours, theirs = (gradient_of(weighted(function), x) for function in (isonb.soft_decay, soft_decay_by_svd))
        error = relative_error(ours(), gradient_of(weighted(soft_decay_by_svd), x.double())())
        peer = Peer("torch SVD", theirs, error, 10.0 if device == "cuda" else goal)
        pieces = lambda x=x: soft_decay_pieces(x)  # noqa: E731
        yield Comparison("SoftDecay forward+backward", size_of(x), ours, [peer], 1e-3, 5, pieces)


# Layers, width, heads, batch and tokens of a model, and the share of a step that a term may take.
TRIAL = (1, 16, 4, 8, 6, 1.10)
ON_CPU = (4, 256, 4, 32, 64, 1.10)
ON_CARD = (12, 768, 12, 32, 128, 1.05)  # as BERT base, whose steps run under autocast to bfloat16


def step_overhead(small, device="cpu"):
    """The share of each regulariser in one training step: of a small encoder on the CPU, of a BERT base on a card."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    layers, width, heads, batch, tokens, goal = TRIAL if small else ON_CARD if device == "cuda" else ON_CPU
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "intermediate_size": 4 * width}
    config = BertConfig(num_attention_heads=heads, **sizes)
    model = BertModel(config, add_pooling_layer=False).to(device).train()
    head = torch.nn.Linear(width, 2, device=device)
    optimiser = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-5)
    ids = torch.randint(1000, 20_000, (batch, tokens), generator=torch.Generator().manual_seed(1)).to(device)
    labels = (torch.arange(batch) % 2).to(device)
    mask = torch.ones_like(ids)

    def states():
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            return model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states

    def step(penalty, transform):
        optimiser.zero_grad(set_to_none=True)
        found = states()
        loss = torch.nn.functional.cross_entropy(head(transform(found[-1])[:, 0].float()), labels)
        (loss + penalty(found)).backward()
        optimiser.step()

    kept = [state.detach().requires_grad_() for state in states()]

    def alone(penalty, transform):
        (transform(kept[-1]).sum() + penalty(kept)).backward()

    cases = step_cases(width, labels, mask)
    without = cases.pop("nothing")
    plain = Peer("plain step", lambda: step(*without), 0.0, goal, floor=True)
    size = f"{batch} x {tokens} tokens, width {width}"
    for name, case in cases.items():
        ours = lambda case=case: step(*case)  # noqa: E731
        term = Piece("the term alone, both directions", lambda case=case: alone(*case))
        pieces = lambda term=term: [term]  # noqa: E731
        yield Comparison(f"training step with {name}", size, ours, [plain], 0.0, pieces=pieces)


def step_cases(width, labels, mask):
    """Each regulariser as a penalty on the hidden states and a transform of the last."""
    nothing, same = (lambda states: 0.0), (lambda tokens: tokens)
    shrinkage = shrinkage_matrix(width).to(labels.device)
    entropy_loss, istar, cosreg = isonb.PersistentEntropyLoss(), isonb.IStarLoss(weight=1.0), isonb.CosRegLoss()
    decay, isobn = isonb.SoftDecay().to(labels.device), isonb.IsoBN(width).to(labels.device)

    def every_token(states):
        return torch.cat([state.flatten(0, 1) for state in states[1:]])

    return {
        "nothing": (nothing, same),
        "persistent entropy, [CLS] by label": (lambda states: entropy_loss(states[-1][:, 0], labels), same),
        "I-STAR, every token, all layers": (lambda states: istar(every_token(states), shrinkage), same),
        "CosReg, last layer": (lambda states: cosreg(states[-1].flatten(0, 1)), same),
        "IsoBN on [CLS]": (nothing, lambda tokens: isobn(tokens[:, 0]).unsqueeze(1)),
        "SoftDecay, last layer": (nothing, lambda tokens: decay(tokens, mask)),
    }


def by_the_engine(run_, folder):
    """Train a fresh copy of the model, validate, predict; the number of predictions."""
    fresh = dataclasses.replace(run_, model=copy.deepcopy(run_.model))
    return len(train(fresh, Path(folder), resumable=False, progress=False)[0])


def by_the_trainer(run_, folder, monitor=False, epochs=1, **penalty):
    """The same updates, validation and predictions by transformers alone; or with a penalty, or a monitor."""
    from transformers import DataCollatorWithPadding, PrinterCallback, Trainer, TrainingArguments

    from isonb.integrations.monitor import IsotropyMonitor
    from isonb.integrations.trainer import IsotropyTrainerMixin

    settings, splits = run_.settings, run_.splits
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=epochs * (len(splits["train"].tokens) // settings.batch_size),
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=EVALUATED,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup,
        optim="adamw_torch_fused",
        bf16=False,
        use_cpu=run_.device.type == "cpu",
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=10,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        disable_tqdm=True,
    )
    kind = type("Penalised", (IsotropyTrainerMixin, Trainer), {}) if penalty else Trainer
    trainer = kind(
        **penalty,
        model=copy.deepcopy(run_.model),
        args=arguments,
        data_collator=DataCollatorWithPadding(run_.encoder.tokenizer),
        train_dataset=splits["train"].tokens,
        eval_dataset=splits["validation"].tokens,
    )
    trainer.remove_callback(PrinterCallback)
    if monitor:
        IsotropyMonitor(every=10).attach(trainer)
    trainer.train()
    return len(trainer.predict(splits["validation"].tokens).predictions[0])


PLAIN = {"group_by_length": False, "track_every": 0, "cloud_examples": 0, "validations": 1, "epochs": 1}


def fine_tuning(small):
    """What the lab's engine adds when nothing is measured, over the generated reviews with ``tiny``, float32."""
    size = {"train_examples": 320, "eval_examples": 160}
    if small:
        size = {"train_examples": 16, "eval_examples": 16, "batch_size": 8}
    given = {"task": "english_sentiment", "model": "tiny", "method": "none", "protocol": "embedded"}
    run_ = prepare(given | PLAIN | size | {"precision": "float32"}, None)
    limit = "the callbacks of the lab, and the sentence vectors that a validation collects"
    what, rows = "a fine-tuning run in which nothing is measured", f"{len(run_.splits['train'].tokens)} rows"
    with tempfile.TemporaryDirectory() as folder:
        missing = abs(by_the_engine(run_, folder) - by_the_trainer(run_, folder))
        peer = Peer("plain Trainer", lambda: by_the_trainer(run_, folder), float(missing), 1.05, floor=True)
        ours = lambda: by_the_engine(run_, folder)  # noqa: E731
        yield Comparison(what, rows, ours, [peer], 0.0, 3, limit=limit, least=0.0)
        istar = {"penalty": isonb.IStarLoss(), "points": "tokens", "layers": "all"}
        cases = {
            "I-STAR": istar | {"shrinkage_rows": 10_000},
            "I-STAR, three epochs": istar | {"epochs": 3},
            "I-STAR and a running covariance, three epochs": istar | {"epochs": 3, "running_shrinkage": True},
            "persistent entropy": {"penalty": isonb.PersistentEntropyLoss()},
            "CosReg": {"penalty": isonb.CosRegLoss(), "points": "tokens"},
            "the monitor, every 10 steps": {"monitor": True},
        }
        if small:  # one with a penalty, and the monitor
            cases = dict(list(cases.items())[2::3])
        for name, case in cases.items():
            ours = partial(by_the_trainer, run_, folder, **case)
            theirs = partial(by_the_trainer, run_, folder, epochs=case.get("epochs", 1))
            peer = Peer("plain Trainer", theirs, float(abs(ours() - theirs())), 1.1, floor=True)
            yield Comparison(f"Trainer with {name}", rows, ours, [peer], 0.0, 2, least=0.0)


SUITES = {"entropy_loss": entropy_loss, "soft_decay": soft_decay, "step_overhead": step_overhead}
SUITES |= {"fine_tuning": fine_tuning}
