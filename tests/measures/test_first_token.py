"""The first token's effect is named where it is, with its size, and nowhere else."""

import pytest
import torch

from isonb.auditing.embedders import TokenEmbedder
from isonb.auditing.soundness import first_token_findings
from isonb.errors import ShapeError
from isonb.measures.first_token import first_token


@pytest.fixture
def states():
    result = torch.randn(6, 5, 16, generator=torch.Generator().manual_seed(2))
    result[:, 0] += 40 * torch.ones(16)
    return result


def test_the_ratio_and_both_means_are_those_of_plain_torch(states):
    mask = torch.ones(6, 5, dtype=torch.bool)
    mask[0, 3:] = False
    effect = first_token(states, mask)
    others = torch.cat([row[1:n] for row, n in zip(states, mask.sum(1), strict=True)])
    assert effect.ratio == pytest.approx(float(states[:, 0].norm(dim=1).mean() / others.norm(dim=1).mean()), rel=1e-5)
    pooled = torch.stack([row[1:n].mean(0) for row, n in zip(states, mask.sum(1), strict=True)])
    cosine = torch.nn.functional.cosine_similarity(pooled[:, None], pooled[None], dim=-1)
    assert effect.without_it == pytest.approx(float((cosine.sum() - 6) / 30), abs=1e-5)
    assert effect.with_it > 0.9 > effect.without_it
    assert effect.loud


def test_padding_on_the_left_is_not_the_first_token(states):
    padded = torch.cat([1000 * torch.ones(6, 2, 16), states], dim=1)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1]] * 6)
    first, other = first_token(padded, mask), first_token(states, torch.ones(6, 5))
    assert (first.ratio, first.with_it) == pytest.approx((other.ratio, other.with_it), rel=1e-4)
    assert first.without_it == pytest.approx(other.without_it, abs=1e-4)


def test_texts_of_one_token_are_refused(states):
    with pytest.raises(ShapeError, match="two tokens or more; got 0"):
        first_token(states, torch.tensor([[1, 0, 0, 0, 0]] * 6))


def made_louder(output):
    """What a layer gives, its first token thirty times as long."""
    state = (output[0] if isinstance(output, tuple) else output).clone()
    state[:, 0] *= 30
    return (state, *output[1:]) if isinstance(output, tuple) else state


def texts():
    return [f"{number} birds of {number} kinds sing in the trees." for number in range(20)]


def test_an_audit_names_a_loud_first_token_and_no_other():
    from isonb.models.loading import load

    encoder = load("tiny")
    plain = list(first_token_findings(TokenEmbedder(encoder, "mean", 64), texts()))
    assert not plain
    layer = encoder.model.encoder.layer[-1]
    hook = layer.register_forward_hook(lambda module, inputs, output: made_louder(output))
    (result,) = first_token_findings(TokenEmbedder(encoder, "mean", 64), texts())
    assert not list(first_token_findings(TokenEmbedder(encoder, "cls", 64), texts()))
    hook.remove()
    assert (result.name, result.severity) == ("first token", "warning")
    assert "the first token's norm is" in result.text
    assert "times the others'; pool without it: mean cosine" in result.text


def test_a_monitor_of_means_names_it_once(caplog):
    from isonb.integrations.hidden_states import Pooling
    from isonb.integrations.monitor import IsotropyMonitor
    from isonb.models.loading import load_for_training

    encoder = load_for_training("tiny")
    model = encoder.model
    model.encoder.layer[-1].register_forward_hook(lambda module, inputs, output: made_louder(output))
    batch = encoder.tokenizer(texts()[:8], padding=True, return_tensors="pt")
    for mode, times in (("cls", 0), ("mean", 1)):
        monitor = IsotropyMonitor(every=1, pooling=Pooling(mode))
        for step in (1, 2):
            monitor._begin(model)
            model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            monitor._end(step)
        assert caplog.text.count("the first token's norm is") == times
