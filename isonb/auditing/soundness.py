"""Is the instrument sound? A text must give one vector, alone as in a batch; texts must not be empty or repeat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.defects import Finding
from isonb.auditing.embedders import Embedder, TokenEmbedder
from isonb.auditing.rows import NAMED
from isonb.errors import InputError, fail
from isonb.measures.first_token import first_token
from isonb.numerics.rows import unit_rows
from isonb.runtime.told import clipped, counted

WORDS = 4  # of an opening or ending that texts may share
HALF = re.compile("[\ud800-\udfff]")  # of a character in UTF-16, which no tokenizer takes
SHARE, LEAST = 0.05, 10  # of the texts, and how many, that share it before it is boilerplate
PROBES = 8  # texts that are tried
BATCH = 64  # texts that tell whether the first token is loud
# What to do where a check fails, and the same as Python, in the order in which to try it.
FIXES = {
    "finite numbers": (
        "Look for half precision that overflows, and for broken weights.",
        "model.float()  # half precision may overflow; if it stays, look for broken weights",
    ),
    "the same text twice": (
        "Call model.eval(): dropout or another source of chance is on.",
        "model.eval()  # no dropout",
    ),
    "alone and in a batch": (
        "Pass the attention mask, and pool over real tokens only.",
        "out = model(input_ids=ids, attention_mask=mask)  # and a mean over mask alone",
    ),
    "the empty text": ("Leave empty texts out.", ""),
}


@dataclass(frozen=True)
class Check:
    """Whether a model measures the same thing twice. ``state``: "ok", "fault" or "skipped"."""

    name: str
    state: str
    text: str


def probes_of(texts: Sequence[str]) -> list[str]:
    """Texts of all lengths, shortest first."""
    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    places = torch.linspace(0, len(ordered) - 1, min(PROBES, len(ordered))).long().tolist()
    return [ordered[place] for place in places]


def check_model(embedder: Embedder, texts: Sequence[str]) -> tuple[tuple[Check, ...], list[Finding]]:
    """The checks in their order, and a fault for each that failed. ``texts``: some that aren't empty."""
    probes = probes_of(texts)
    checks = tuple(_checks(embedder, probes))
    failed = [check for check in checks if check.state == "fault"]
    message = {item.name: f"{item.name[0].upper()}{item.name[1:]}: {item.text}." for item in failed}
    return checks, [Finding(name, "fault", text, FIXES[name][0]) for name, text in message.items()]


def repairs(faults: Sequence[Finding]) -> tuple[str, ...]:
    """Lines of Python for a model that failed these checks."""
    failed = {item.name for item in faults}
    again = "print(isonb.audit(encoder, texts).checks)  # all must say ok before anything else counts"
    return (*(line for name, (_, line) in FIXES.items() if line and name in failed), again)


def _checks(embedder: Embedder, probes: Sequence[str]) -> Iterator[Check]:
    first, second = (embedder.encode(probes, [])[0] for _ in range(2))
    finite = first.isfinite().all(-1)
    bad = int((~finite).sum())
    message = f"NaN or infinity in {bad} of {len(probes)} texts" if bad else f"all of {len(probes)} texts"
    yield Check("finite numbers", "fault" if bad else "ok", message)
    if bad == len(probes):
        skipped = ("the same text twice", "alone and in a batch", "the empty text")
        yield from (Check(name, "skipped", "no vector is finite") for name in skipped)
        return
    first, second, probes = first[finite], second[finite], [probes[i] for i in finite.nonzero().flatten().tolist()]
    again = _moved(first, second)
    steady = again <= embedder.rounding
    mode = " (the model is in training mode)" if embedder.training else ""
    words = "no difference" if again == 0 else f"moved by {again:.2g} of its length"
    yield Check("the same text twice", "ok" if steady else "fault", words + ("" if steady else mode))
    yield _padding(embedder, probes) if steady else Check("alone and in a batch", "skipped", "chance hides it")
    yield _empty(embedder, first)


def _moved(x: Tensor, y: Tensor) -> float:
    """The largest distance of two rows, in lengths of the first; infinite for what is not finite."""
    length = torch.linalg.vector_norm(x, dim=-1).clamp_min(1e-12)
    distance = torch.linalg.vector_norm(x - y, dim=-1) / length
    return float(torch.nan_to_num(distance, nan=torch.inf).max())


def _padding(embedder: Embedder, probes: Sequence[str]) -> Check:
    """A text alone, and in a batch with one that is longer than any."""
    if embedder.batch_size < 2:
        return Check("alone and in a batch", "skipped", "texts pass one by one")
    longest = max(probes, key=len)
    companion = " ".join([longest] * 3)
    alone = torch.cat([embedder.together([text]) for text in probes])
    steps = range(0, len(probes), embedder.batch_size - 1)
    parts = (probes[start : start + embedder.batch_size - 1] for start in steps)
    batched = torch.cat([embedder.together([*part, companion])[:-1] for part in parts])
    moved = _moved(alone, batched)
    cosine = float((unit_rows(alone) * unit_rows(batched)).sum(-1).min())
    good = moved <= embedder.rounding
    message = f"moved by {moved:.2g} of its length at most"
    return Check(
        "alone and in a batch", "ok" if good else "fault", message if good else f"{message}, cosine {cosine:.3f}"
    )


def _empty(embedder: Embedder, known: Tensor) -> Check:
    name = "the empty text"
    try:
        vector = embedder.together([""])
    except InputError:
        return Check(name, "ok", "gives no token; such texts are left out")
    except Exception as error:  # a function is anybody's
        return Check(name, "ok", f"is refused ({type(error).__name__}); such texts are left out")
    if not bool(vector.isfinite().all()):
        return Check(name, "fault", "gives NaN or infinity")
    alike = float((unit_rows(vector) * unit_rows(known)).sum(-1).mean())
    return Check(name, "ok", f"gives a vector like any other, mean cosine with texts {alike:.2f}; it is left out")


@torch.no_grad()
def first_token_findings(embedder: Embedder, texts: Sequence[str]) -> Iterator[Finding]:
    """A warning where a mean over the last layer has it, else a note; nothing of models that are read by [CLS]."""
    if not isinstance(embedder, TokenEmbedder) or embedder.pool == "cls":
        return
    from isonb.models.loading import forward

    sentences = embedder.read(texts[:BATCH])
    count = max(2, embedder.fitting(sentences, BATCH))
    device = next(embedder.encoder.model.parameters()).device
    states = forward(embedder.encoder.model, sentences.batch(range(min(count, len(sentences))), device))
    try:
        effects = [first_token(state, states.mask) for state in states.hidden[1:]]
    except InputError:  # texts of one token, states that aren't finite
        return
    last = effects[-1]
    loudest = max(range(len(effects)), key=lambda layer: effects[layer].ratio)
    advice = "A mean over few tokens is mostly the first one's: leave it out of the mean."
    if last.loud and embedder.pool == "mean":
        yield Finding("first token", "warning", f"In the last layer {last}.", advice)
    elif effects[loudest].loud:
        text = f"In layer {loudest + 1} {effects[loudest]}."
        yield Finding("first token", "note", text, "It counts where means over the tokens of that layer are used.")


def check_texts(texts: Any, name: str = "texts") -> list[str]:
    """The texts as a list of strings. InputError for one string, for none, and for what is no string."""
    if texts is None or isinstance(texts, str | bytes) or not hasattr(texts, "__iter__"):
        got = "nothing" if texts is None else f"one {type(texts).__name__}"
        fail(InputError, f"{name} must be a list of strings", got, "Pass the texts that the model is used on.")
    every = list(texts)
    wrong = next((i for i, text in enumerate(every) if not isinstance(text, str)), None)
    if wrong is not None:
        got = f"{type(every[wrong]).__name__} at {wrong}"
        fail(InputError, f"{name} must be a list of strings", got, "Leave out what is missing.")
    half = next((i for i, text in enumerate(every) if HALF.search(text)), None)
    if half is not None:
        fix = "Read the text anew, or take text.encode(errors='replace').decode()."
        fail(InputError, f"{name} must be of Unicode characters", f"half of one (a surrogate) at {half}", fix)
    return every


def distinct_rows(texts: Sequence[str]) -> list[int]:
    """The numbers of the texts that aren't empty, each text once."""
    first = {text: i for i, text in reversed([*enumerate(texts)]) if text.strip()}
    return sorted(first.values())


def text_findings(texts: Sequence[str], distinct: Sequence[int]) -> Iterator[Finding]:
    """Empty texts, repeats and boilerplate."""
    empty = [i for i, text in enumerate(texts) if not text.strip()]
    if empty:
        text = f"Empty: {counted(len(empty), 'text')} of {len(texts):,}."
        advice = "Left out here. A model gives them a vector all the same, and they match each other."
        yield Finding("empty texts", "fault", text, advice, rows=tuple(empty))
    repeats = len(texts) - len(empty) - len(distinct)
    if repeats:
        often = [(text, count) for text, count in Counter(texts).most_common(NAMED + 1) if count > 1 and text.strip()]
        severity = "warning" if repeats > len(texts) / 100 else "note"
        message = f"Repeats of an earlier text: {counted(repeats, 'text')} ({repeats / len(texts):.1%})."
        examples = tuple(f"{clipped(text)}, {count:,} times" for text, count in often[:NAMED])
        first = set(distinct)
        rows = tuple(i for i, text in enumerate(texts) if i not in first and text.strip())
        yield Finding("duplicate texts", severity, message, "Left out here. Drop them.", rows=rows, examples=examples)
    yield from _boilerplate([texts[i] for i in distinct])


def _boilerplate(texts: Sequence[str]) -> Iterator[Finding]:
    for side, cut in (("open", slice(None, WORDS)), ("end", slice(-WORDS, None))):
        parts = (text.split() for text in texts)
        common = Counter(" ".join(words[cut]) for words in parts if len(words) > WORDS).most_common(3)
        often = [(part, count) for part, count in common if count >= max(LEAST, SHARE * len(texts))]
        if often:
            share = often[0][1] / len(texts)
            message = f"Boilerplate: {share:.0%} of the texts {side} with the same {WORDS} words."
            advice = "Cut it off before you encode: it makes texts alike that aren't."
            examples = tuple(f"{clipped(part)}, {count:,} texts" for part, count in often)
            yield Finding("boilerplate", "warning", message, advice, examples=examples)
