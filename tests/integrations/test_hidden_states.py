"""The hooks give what output_hidden_states gives, for encoders, decoders, shared layers and inside wrappers."""

import pytest
import tiny
import torch
from transformers import DataCollatorWithFlattening, T5Config, T5ForConditionalGeneration

from isonb.errors import InputError, ShapeError
from isonb.integrations.hidden_states import HiddenStates, Pooling, encoder_of
from isonb.points import pool

BATCH = tiny.batch(tiny.sentences(4))
INPUTS = {key: BATCH[key] for key in ("input_ids", "attention_mask")}


@pytest.mark.parametrize("kind", tiny.KINDS)
@pytest.mark.parametrize(
    ("layers", "expected"), [("all", slice(1, None)), (-1, slice(-1, None)), ([0, 1, 2], slice(3))]
)
def test_hooks_give_the_hidden_states_of_the_model(kind, layers, expected):
    model = tiny.model(kind).eval()
    with HiddenStates(model, layers) as states:
        model(**INPUTS)
    got = states.take()
    assert not any(module._forward_hooks for module in model.modules())  # gone after the block
    want = model(**INPUTS, output_hidden_states=True).hidden_states[expected]
    assert len(got) == len(want)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_a_model_without_a_registry_is_searched_for_its_list_of_layers(monkeypatch):
    model = tiny.model("roberta").eval()
    monkeypatch.setattr(type(encoder_of(model)), "_can_record_outputs", None)
    with HiddenStates(model, "all") as states:
        model(**INPUTS)
    want = model(**INPUTS, output_hidden_states=True).hidden_states[1:]
    assert all(torch.equal(a, b) for a, b in zip(states.take(), want, strict=True))


@pytest.mark.parametrize("layers", ["all", 1])
def test_a_model_whose_layers_cannot_be_found_is_refused_before_any_hook(monkeypatch, layers):
    model = tiny.model("roberta")
    monkeypatch.setattr(type(encoder_of(model)), "_can_record_outputs", None)
    model.config.num_hidden_layers = 3
    for look in (lambda: HiddenStates(model, layers), lambda: Pooling("tokens", layers).check(model)):
        with pytest.raises(InputError, match="must have a list of 3 layers"):
            look()
    Pooling("cls").check(model)  # the last state needs no list
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


def test_wrappers_and_heads_are_looked_through():
    model = tiny.model()
    wrapped = torch.nn.Module()
    wrapped.module = model
    assert encoder_of(wrapped) is encoder_of(model) is model.bert


@pytest.mark.parametrize("points", ["cls", "last", "mean", "tokens"])
@pytest.mark.parametrize("layers", [-1, "all"])
def test_points_ignore_what_stands_on_padding(points, layers):
    model = tiny.model().eval()
    noise = INPUTS["input_ids"] + (1 - INPUTS["attention_mask"]) * 7
    clouds = []
    for ids in (INPUTS["input_ids"], noise):
        clouds.append(tiny.points(Pooling(points, layers), model, INPUTS | {"input_ids": ids})[0])
    torch.testing.assert_close(*clouds)
    every, _ = tiny.points(Pooling(points, layers, include_pads=True), model, INPUTS)
    sizes = len(clouds[0]), len(every)
    assert sizes[0] < sizes[1] if points == "tokens" else sizes[0] == sizes[1]


def test_what_a_decoder_reads_beside_an_encoder_has_a_mask_of_its_own():
    """Padded to one length: the source's mask would mark other places of the target."""
    size = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_heads": 2, "num_layers": 2, "vocab_size": 40}
    model = T5ForConditionalGeneration(T5Config(decoder_start_token_id=0, **size)).eval()
    mask = INPUTS["attention_mask"]
    own = torch.ones_like(mask).tril()[: len(mask)]
    batch = {**INPUTS, "labels": INPUTS["input_ids"]}
    for module, more, points in (
        (None, {}, mask.sum()),
        ("decoder", {}, mask.numel()),
        ("decoder", {"decoder_attention_mask": own}, own.sum()),
    ):
        cloud, _ = tiny.points(Pooling("tokens", module=module), model, batch | more)
        assert len(cloud) == points


class Prompted(torch.nn.Module):
    """Two vectors are put before those of the words, as by prompt tuning."""

    def __init__(self):
        super().__init__()
        self.bert = tiny.model().bert.eval()
        self.prompt = torch.nn.Parameter(torch.ones(1, 2, 8).double())

    def forward(self, input_ids, attention_mask):
        words = self.bert.get_input_embeddings()(input_ids)
        before = attention_mask.new_ones(len(words), 2)
        embeds = torch.cat([self.prompt.expand(len(words), -1, -1), words], 1)
        return self.bert(inputs_embeds=embeds, attention_mask=torch.cat([before, attention_mask], 1))


def test_a_prompt_before_the_words_has_its_places():
    cloud, _ = tiny.points(Pooling("tokens"), Prompted(), INPUTS)
    assert len(cloud) == INPUTS["attention_mask"].sum() + 2 * len(INPUTS["attention_mask"])


@pytest.mark.parametrize("starts", [False, True])
def test_a_row_of_several_packed_texts_has_no_points_but_its_tokens(starts):
    model, pack = tiny.model().eval(), DataCollatorWithFlattening(return_flash_attn_kwargs=starts)
    one, two = pack([{"input_ids": [3, 4, 5]}]), pack([{"input_ids": [3, 4, 5]}, {"input_ids": [7]}])
    for points in ("cls", "last", "mean"):
        pooling = Pooling(points)
        assert len(points_of(pooling, model, one)) == 1
        with pytest.raises(InputError, match=f"with points='{points}' a row must hold one text"):
            points_of(pooling, model, two)
    assert len(points_of(Pooling("tokens"), model, two)) == 4


def points_of(pooling, model, batch):
    with pooling.watch(model) as states:
        model(input_ids=batch["input_ids"], position_ids=batch["position_ids"])
    return pooling.points(states, batch)[0]


def test_labels_follow_the_points():
    model = tiny.model().eval()
    for points, labels, want in (
        ("cls", BATCH["labels"], BATCH["labels"].repeat(2)),
        ("tokens", BATCH["labels"], None),
        ("mean", BATCH["labels"].double(), None),
        ("mean", None, None),
    ):
        _, got = tiny.points(Pooling(points, "all"), model, INPUTS, **({} if labels is None else {"labels": labels}))
        assert (got is None and want is None) or torch.equal(got, want)


def test_last_token_is_the_last_real_one_whichever_side_is_padded():
    states = [torch.arange(4.0).view(1, 4, 1).expand(2, 4, 1)]
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1]])
    assert pool(states, mask, "last").flatten().tolist() == [1.0, 3.0]
    assert pool(states, None, "last").flatten().tolist() == [3.0, 3.0]


def test_typed_errors():
    model = tiny.model()
    with pytest.raises(
        InputError, match="must be one of 'cls', 'last', 'mean', 'mean_after_first', 'tokens'; got 'middle'"
    ):
        Pooling("middle")
    with pytest.raises(InputError, match="must hold a transformers encoder or decoder; got Linear"):
        HiddenStates(torch.nn.Linear(2, 2))
    with pytest.raises(ShapeError, match="layers must name some of the 3 hidden states; got layers 7"):
        HiddenStates(model, 7)
    with HiddenStates(model) as states:
        pass
    with pytest.raises(InputError, match="the model must run once inside the block"):
        states.take()
