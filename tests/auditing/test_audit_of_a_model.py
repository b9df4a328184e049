"""An audit of a model finds broken masks, dropout, empty and repeated texts; it goes on after a stop."""

import dataclasses
import json
import re

import pytest
import torch

from isonb.auditing import embedders, models
from isonb.auditing.asking import audit
from isonb.auditing.embedders import TokenEmbedder
from isonb.auditing.fixing import next_steps
from isonb.auditing.rows import rows_of
from isonb.auditing.soundness import first_token_findings
from isonb.errors import InputError, ShapeError
from isonb.models.loading import load, load_for_training
from isonb_lab.data import corpus
from tests.lab import random_models

TEXTS = [sentence.text for sentence in corpus.sentences()][:120]


@pytest.fixture(scope="module")
def encoder(bert):
    return load(bert)


@pytest.fixture(scope="module")
def result(encoder):
    return audit(encoder, TEXTS)


class Blind(torch.nn.Module):
    """A model that never sees the mask."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, input_ids, attention_mask, **more):
        return self.model(input_ids=input_ids, attention_mask=torch.ones_like(attention_mask), **more)


class Sick(Blind):
    """A model that gives NaN for long texts."""

    def forward(self, input_ids, attention_mask, **more):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, **more)
        out.last_hidden_state[attention_mask.sum(-1) > 18] = torch.nan
        return out


def with_model(encoder, kind):
    return dataclasses.replace(encoder, model=kind(encoder.model))


def states(result):
    return {check.name: check.state for check in result.checks}


def test_a_sound_model_passes(result):
    assert set(states(result).values()) == {"ok"}
    assert result.sound
    assert not [item for item in result.findings if item.severity == "fault"]
    assert result.n == 120
    assert [layer.number for layer in result.layers] == [0, 1, 2]
    assert result.source.startswith("120 texts through ")
    assert result.source.endswith(f", mean pooling, {result.d} dimensions")


def test_a_broken_mask_is_a_fault_and_comes_first(encoder):
    broken = audit(with_model(encoder, Blind), TEXTS)
    assert states(broken)["alone and in a batch"] == "fault"
    assert states(broken)["the same text twice"] == "ok"
    assert broken.findings[0].name == "alone and in a batch"
    assert "attention mask" in broken.findings[0].advice
    assert not broken.sound
    assert "attention_mask=mask" in broken.next_steps[0]


def test_rounding_of_half_precision_is_no_fault_and_a_broken_mask_is_one_there_too():
    half = with_model(load("minilm"), lambda model: model.bfloat16())
    sound, moved, _ = audit(half, TEXTS[:30]).checks[1:]
    assert (sound.state, moved.state) == ("ok", "ok")
    assert float(re.search(r"moved by (\S+)", moved.text)[1]) > 1e-3
    assert states(audit(with_model(half, Blind), TEXTS[:30]))["alone and in a batch"] == "fault"


def test_the_checks_pass_no_more_texts_at_a_time_than_asked():
    sizes = []

    def function(texts):
        sizes.append(len(texts))
        return [[len(text), text.count("e"), 1.5] for text in texts]

    report = audit(function, TEXTS, batch_size=4, progress=False)
    assert (max(sizes), report.sound, states(report)["alone and in a batch"]) == (4, True, "ok")
    sizes.clear()
    report = audit(function, TEXTS, batch_size=1, progress=False)
    assert (max(sizes), report.sound, states(report)["alone and in a batch"]) == (1, True, "skipped")


def test_the_look_at_the_first_token_takes_no_more_memory_than_a_batch(encoder, monkeypatch):
    shapes = []
    hook = encoder.model.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(kwargs["input_ids"].shape), with_kwargs=True
    )
    most = 200  # tokens
    monkeypatch.setattr(embedders, "STATES", most * 4 * encoder.dim * (encoder.layers + 1))
    list(first_token_findings(TokenEmbedder(encoder, "mean", 64), TEXTS))
    hook.remove()
    assert len(shapes) == 1
    assert 2 < shapes[0][0] <= most // shapes[0][1]


def test_a_model_that_gives_every_text_one_vector_is_broken():
    report = audit(lambda texts: [[1.0, 2.0, 3.0]] * len(texts), TEXTS, progress=False)
    assert report.headline.startswith("Broken: Repeats of an earlier row: 119 rows (99.2%).")


def test_dropout_is_a_fault_and_hides_the_mask(bert):
    broken = audit(load_for_training(bert, dropout=0.3), TEXTS)
    assert states(broken)["the same text twice"] == "fault"
    assert states(broken)["alone and in a batch"] == "skipped"
    assert "training mode" in broken.findings[0].text


def test_nan_is_a_fault(encoder):
    broken = audit(with_model(encoder, Sick), TEXTS)
    assert states(broken)["finite numbers"] == "fault"
    assert states(broken)["the same text twice"] == "ok"
    assert not any("eval()" in line for line in broken.next_steps)
    rows = next(item.rows for item in broken.findings if item.name == "not finite")
    lengths = [len(ids) for ids in encoder.tokenizer(TEXTS)["input_ids"]]
    assert rows == tuple(i for i, length in enumerate(lengths) if length > 18)


@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
def test_decoders_and_other_encoders(kind, tmp_path):
    report = audit(random_models.save(kind, tmp_path / kind), [*TEXTS, ""])
    assert report.sound
    assert ("last pooling" in report.source) == (kind == "gpt2")
    phrase = next(check.text for check in report.checks if check.name == "the empty text")
    assert ("no token" in phrase) == (kind == "gpt2")


def test_empty_and_repeated_texts_and_boilerplate_are_named(encoder):
    texts = [*TEXTS[:60], "  ", *TEXTS[:3], *[f"Dear sir or madam, {text}" for text in TEXTS[60:90]]]
    report = {item.name: item for item in audit(encoder, texts).findings}
    assert report["empty texts"].severity == "fault"
    assert report["empty texts"].rows == (60,)
    assert report["duplicate texts"].rows == (61, 62, 63)
    assert '"Dear sir or madam,", 30 texts' in report["boilerplate"].examples
    assert "open" in report["boilerplate"].text


def test_planted_twins_are_listed_by_text(encoder):
    report = audit(encoder, [*TEXTS, TEXTS[0].upper()])  # the tokenizer lowers case
    (twins,) = [item for item in report.findings if item.name == "near duplicates"]
    assert {0, 120} <= set(twins.rows)
    assert any(TEXTS[0] in example and TEXTS[0].upper() in example for example in twins.examples)


def test_cut_texts_and_unknown_words(encoder):
    report = {item.name: item for item in audit(encoder, TEXTS, max_length=8).findings}
    lengths = [len(ids) for ids in encoder.tokenizer(TEXTS)["input_ids"]]
    assert f"{sum(length >= 8 for length in lengths)} of 120" in report["cut texts"].text
    strange = audit(encoder, [f"\u4f60\u597d \u4e16 {text}" for text in TEXTS])
    assert "unknown tokens" in {entry.name for entry in strange.findings}


def test_the_vectors_are_those_of_one_text_at_a_time(encoder, tmp_path):
    result = TokenEmbedder(encoder, "mean", 64, batch_size=7)
    vectors, layers, _ = models.Store(tmp_path, result).embed(TEXTS[:30], "texts", [3, 11])
    for row in (0, 3, 29):
        assert torch.allclose(rows_of(vectors, torch.tensor([row]))[0], result.together([TEXTS[row]])[0], atol=1e-5)
    assert torch.allclose(torch.tensor(layers[1]), result.encode([TEXTS[11]], [0])[1][:, 0], atol=1e-5)


def test_an_audit_that_was_stopped_goes_on(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "PIECE", 16)
    monkeypatch.setattr(models, "check_model", lambda *inputs: ((), []))  # which encodes, too
    whole = audit(bert, TEXTS, work=tmp_path / "whole")
    encode, requests = TokenEmbedder.encode, []

    def counted(self, texts, layered):
        requests.extend(texts)
        if len(requests) == 64:
            raise KeyboardInterrupt
        return encode(self, texts, layered)

    monkeypatch.setattr(TokenEmbedder, "encode", counted)
    with pytest.raises(KeyboardInterrupt):
        audit(bert, TEXTS, work=tmp_path / "cut")
    assert len(list((tmp_path / "cut").glob("texts-*/*.npy"))) == 3
    requests.append("one more")  # never 64 again
    assert audit(bert, TEXTS, work=tmp_path / "cut") == whole
    assert requests[65:] == TEXTS[48:]
    assert audit(bert, [*TEXTS[:-1], "Another text."], work=tmp_path / "cut") != whole
    assert len(requests) == 65 + 72 + 120, "other texts are never mixed with those before"


def test_the_page_escapes_the_texts_of_users(encoder):
    evil = "<script>alert('x')</script><img src=x onerror=alert(1)> & so on"
    page = audit(encoder, [*TEXTS, evil, evil.upper(), evil]).html()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "<img" not in page


def test_reports_of_a_model(result):
    data = json.loads(result.to_json())
    assert [check["state"] for check in data["checks"]] == ["ok"] * 4
    assert result.values()["layer 2 IsoScore"] == pytest.approx(result.values()["IsoScore"], abs=1e-4)
    assert len(repr(result).splitlines()) < 60
    spec = result.plot().to_dict()
    assert "facet" in spec
    assert result.next_steps == next_steps("encoder, texts", (), fix=False)
    for line in result.next_steps:
        compile(line, "next", "exec")


@pytest.mark.parametrize(
    ("texts", "more", "kind", "says"),
    [
        (None, {}, InputError, "texts must be a list"),
        ("one text", {}, InputError, "texts must be a list"),
        ([*TEXTS, None], {}, InputError, "NoneType at 120"),
        ([*TEXTS, "half a \ud83d"], {}, InputError, "a surrogate) at 120"),
        (TEXTS[:5] * 9, {}, ShapeError, "20 different texts"),
        (TEXTS, {"pool": "max"}, InputError, "pool"),
        (TEXTS, {"work": __file__}, InputError, "kept in work must be those of a model's name"),
        (TEXTS, {"pairs": (TEXTS, TEXTS, [1] * 120)}, InputError, "different labels"),
        (TEXTS, {"pairs": (TEXTS, ["", *TEXTS[1:]], [0, 1] * 60)}, InputError, "not be empty"),
    ],
)
def test_bad_questions(encoder, texts, more, kind, says):
    with pytest.raises(kind, match=r"^audit: .*; got .*\.$") as error:
        audit(encoder, texts, **more)
    assert says in str(error.value)
