"""sentence-transformers with a penalty, with SoftDecay, and whitened models that load without isonb."""

import json

import pytest
import torch
from datasets import Dataset
from processes import python
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer
from transformers import AutoTokenizer

from isonb.errors import FitWarning, InputError, PrecisionWarning, ShapeError
from isonb.integrations.sentence_transformers import IsotropyLoss, TokenSoftDecay, append_transform, dense
from isonb.losses import CosRegLoss, GORLoss, IStarLoss, PersistentEntropyLoss
from isonb.transforms import AllButTheTop, ClusterRemoval, Whitening

TEXTS = [
    f"{subject} {verb} the {thing}."
    for subject in ("Anna", "The dog", "Rain")
    for verb in ("saw", "met", "hid")
    for thing in ("river", "house", "road", "letter")
]


def tower(bert):
    """Its first layer without dropout, and the mean over tokens."""
    size = {"num_hidden_layers": 1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return [Transformer(bert, config_kwargs=size), Pooling(16)]


def make(bert):
    return SentenceTransformer(modules=tower(bert), device="cpu")


COLUMNS = TEXTS[:6], TEXTS[6:12]


def features(model, *columns):
    return [model.preprocess(list(texts)) for texts in columns or COLUMNS]


def mean_penalty(model, *columns):
    """The mean of CosReg over the vectors of each column."""
    vectors = [model(column)["sentence_embedding"] for column in features(model, *columns)]
    return sum(CosRegLoss()(item) for item in vectors) / len(vectors)


@pytest.fixture
def model(bert):
    return make(bert).train()


@pytest.mark.parametrize("kind", [MultipleNegativesRankingLoss, losses.CoSENTLoss])
def test_the_loss_is_the_inner_loss_plus_the_mean_penalty_of_the_columns(model, kind):
    inner, labels = kind(model), torch.linspace(0, 1, 6)
    parts = IsotropyLoss(model, inner, CosRegLoss(), weight=0.5)(features(model), labels)
    torch.testing.assert_close(parts["task"], inner(features(model), labels))
    torch.testing.assert_close(parts["isonb_penalty"], 0.5 * mean_penalty(model))
    sum(parts.values()).backward()
    assert all(bool(weight.grad.any()) for name, weight in model.named_parameters() if "pooler" not in name)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_penalty_is_what_the_library_computes_of_the_columns(model, columns):
    """GOR acts within a column there: the cosine of a pair's two sentences is not to fall."""
    texts = [TEXTS[start : start + 8] for start in range(0, 8 * columns, 8)]
    inner = MultipleNegativesRankingLoss(model) if columns > 1 else losses.GlobalOrthogonalRegularizationLoss(model)
    parts = IsotropyLoss(model, inner, GORLoss())(features(model, *texts))
    golden = losses.GlobalOrthogonalRegularizationLoss(model)(features(model, *texts))
    torch.testing.assert_close(parts["isonb_penalty"], sum(golden.values()))


def matryoshka(model, loss):
    return losses.MatryoshkaLoss(model, loss, [16, 4], [1.0, 0.5])


def adaptive(model, loss):
    return losses.AdaptiveLayerLoss(model, loss, kl_temperature=0)


@pytest.mark.parametrize("wrap", [matryoshka, adaptive, lambda model, loss: adaptive(model, matryoshka(model, loss))])
def test_around_another_loss_the_penalty_sees_the_full_vectors_of_the_last_layer(model, wrap):
    columns = *COLUMNS, TEXTS[12:18]
    inner = wrap(model, MultipleNegativesRankingLoss(model))
    parts = IsotropyLoss(model, inner, CosRegLoss())(features(model, *columns))
    torch.testing.assert_close(parts["isonb_penalty"], mean_penalty(model, *columns))
    torch.testing.assert_close(parts["task"], inner(features(model, *columns), None))


def test_inside_matryoshka_the_penalty_sees_each_width(model):
    loss = matryoshka(model, IsotropyLoss(model, MultipleNegativesRankingLoss(model), CosRegLoss(), weight=2.0))
    vectors = [model(column)["sentence_embedding"] for column in features(model)]
    cut = {d: [torch.nn.functional.normalize(item[:, :d], dim=-1) for item in vectors] for d in (16, 4)}
    penalty = {d: sum(CosRegLoss()(entry) for entry in both) / 2 for d, both in cut.items()}
    task = matryoshka(model, MultipleNegativesRankingLoss(model))(features(model), None)
    total = loss(features(model), None)
    torch.testing.assert_close(total, task + 2 * (penalty[16] + 0.5 * penalty[4]))
    total.backward()
    assert bool(model[0].auto_model.encoder.layer[0].output.dense.weight.grad.any())


def test_inside_adaptive_layers_the_penalty_sees_each_layer(model):
    plain = adaptive(model, MultipleNegativesRankingLoss(model))(features(model), None)
    loss = adaptive(model, IsotropyLoss(model, MultipleNegativesRankingLoss(model), CosRegLoss()))
    earlier = 0
    for row in features(model):
        inputs = {key: row[key] for key in ("input_ids", "attention_mask")}
        state, mask = model[0].auto_model(**inputs, output_hidden_states=True).hidden_states[0], row["attention_mask"]
        earlier += CosRegLoss()((state * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True))
    torch.testing.assert_close(loss(features(model), None), plain + mean_penalty(model) + earlier / 2)


def test_a_model_of_static_vectors_has_columns_too(bert):
    text = AutoTokenizer.from_pretrained(bert).backend_tokenizer
    model = SentenceTransformer(modules=[StaticEmbedding(text, embedding_dim=8)], device="cpu").train()
    parts = IsotropyLoss(model, MultipleNegativesRankingLoss(model), CosRegLoss())(features(model))
    torch.testing.assert_close(parts["isonb_penalty"], mean_penalty(model))


def test_half_weights_are_warned_of(model):
    with pytest.warns(PrecisionWarning, match="weights in torch.float16"):
        IsotropyLoss(model.half(), MultipleNegativesRankingLoss(model), CosRegLoss())


def test_istar_without_a_larger_sample_warns(model):
    task = MultipleNegativesRankingLoss(model)
    with pytest.warns(FitWarning, match=r"without shrinkage_cov.*ShrinkageCovariance"):
        IsotropyLoss(model, task, IStarLoss())
    penalty, cov = IStarLoss(), torch.eye(8)
    for own in (
        IStarLoss(zeta="auto"),
        IStarLoss(zeta=0),
        IStarLoss(unbiased=True),
        lambda points: penalty(points, cov),
        CosRegLoss(),
    ):
        IsotropyLoss(model, task, own)


def test_a_penalty_that_is_not_one_number_is_refused(model):
    loss = IsotropyLoss(model, MultipleNegativesRankingLoss(model), lambda points: points.sum(-1))
    with pytest.raises(ShapeError, match=r"a penalty must return a tensor of one number; got shape \(6,\)"):
        loss(features(model))


def test_labels_reach_a_penalty_that_asks_for_them(model):
    labels, penalty = torch.arange(12) % 2, PersistentEntropyLoss(select=False)
    loss = IsotropyLoss(model, losses.BatchAllTripletLoss(model), penalty)
    vectors = model(features(model, TEXTS[:12])[0])["sentence_embedding"]
    torch.testing.assert_close(loss(features(model, TEXTS[:12]), labels)["isonb_penalty"], penalty(vectors, labels))


def test_evaluation_leaves_the_penalty_out_and_hooks_are_removed(model):
    loss = IsotropyLoss(model, MultipleNegativesRankingLoss(model), CosRegLoss())
    model.eval()
    assert list(loss(features(model))) == ["task"]
    assert not model._forward_hooks


@pytest.mark.filterwarnings("ignore:The CachedMultipleNegativesSymmetricRankingLoss is deprecated")
@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (losses.CachedMultipleNegativesSymmetricRankingLoss, "Take Multiple"),
        (lambda model: losses.CachedGISTEmbedLoss(model, model), "Take GIST"),
        (losses.MegaBatchMarginLoss, "Pass use_mini_batched_version=False to Mega"),
        (lambda model: matryoshka(model, losses.CachedMultipleNegativesRankingLoss(model)), "Take Multiple"),
    ],
)
def test_a_loss_that_builds_its_graph_later_is_refused_at_once(model, kind, advice):
    message = rf"the loss must build the graph of the vectors; got .*, which builds it in .*{advice}"
    with pytest.raises(InputError, match=message):
        IsotropyLoss(model, kind(model), CosRegLoss())
    uncached = losses.MegaBatchMarginLoss(model, use_mini_batched_version=False)
    assert "isonb_penalty" in IsotropyLoss(model, uncached, CosRegLoss())(features(model))


def test_the_trainer_logs_the_penalty_apart(model, tmp_path):
    data = Dataset.from_dict({"anchor": TEXTS[:16], "positive": TEXTS[16:32]})
    options = {"max_steps": 2, "logging_steps": 1, "per_device_train_batch_size": 8, "use_cpu": True}
    args = SentenceTransformerTrainingArguments(
        str(tmp_path), report_to=[], save_strategy="no", disable_tqdm=True, **options
    )
    loss = IsotropyLoss(model, MultipleNegativesRankingLoss(model), IStarLoss(2.0, unbiased=True))
    trainer = SentenceTransformerTrainer(model=model, args=args, train_dataset=data, loss=loss)
    trainer.train()
    first = trainer.state.log_history[0]
    assert first["loss"] == pytest.approx(first["task"] + first["isonb_penalty"], abs=1e-4)
    assert 0 < first["isonb_penalty"] < 2


LOAD_ELSEWHERE = """
import json, sys
sys.modules["isonb"] = None
from sentence_transformers import SentenceTransformer
texts, *folders = json.loads(sys.argv[1])
print(json.dumps([SentenceTransformer(folder, device="cpu").encode(texts).tolist() for folder in folders]))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")  # few sentences on purpose
def test_transformed_models_load_without_isonb(bert, tmp_path):
    expected, places = [], []
    for transform, normalize in ((Whitening(4), False), (AllButTheTop(2), True)):
        model = make(bert)
        vectors = torch.as_tensor(model.encode(TEXTS))
        want = transform.fit(vectors).transform(vectors)
        expected.append(torch.nn.functional.normalize(want, dim=-1) if normalize else want)
        append_transform(model, transform, normalize=normalize)
        torch.testing.assert_close(torch.as_tensor(model.encode(TEXTS)), expected[-1], rtol=1e-3, atol=1e-4)
        places.append(str(tmp_path / type(transform).__name__))
        model.save(places[-1])
    results = json.loads(python("-c", LOAD_ELSEWHERE, json.dumps([TEXTS, *places])))
    for got, want in zip(results, expected, strict=True):
        torch.testing.assert_close(torch.tensor(got), want, rtol=1e-3, atol=1e-4)


def test_only_affine_transforms_become_dense():
    layer = torch.nn.Linear(3, 2, bias=False)
    torch.testing.assert_close(
        dense(layer)({"sentence_embedding": torch.eye(3)})["sentence_embedding"], layer.weight.mT
    )
    with pytest.raises(InputError, match=r"must be affine \(have to_dense\); got ClusterRemoval"):
        dense(ClusterRemoval())


@pytest.mark.parametrize("mode", ["code", "safe"])
def test_soft_decay_is_trained_saved_and_loaded(bert, tmp_path, mode):
    model = make(bert)
    plain = model.encode(TEXTS[:4])
    model.insert(1, TokenSoftDecay(-0.4, mode))
    alone = torch.as_tensor(model.encode(TEXTS[:1]))
    together = torch.as_tensor(model.encode([TEXTS[0], " ".join(TEXTS[:3])]))
    torch.testing.assert_close(alone[0], together[0], rtol=1e-4, atol=1e-5)  # padding stays out
    assert abs(model.encode(TEXTS[:4]) - plain).max() > 1e-3
    model(features(model, TEXTS[:4])[0])["sentence_embedding"].square().sum().backward()
    assert model[1].layer.raw.grad.abs() > 0
    with torch.no_grad():
        model[1].layer.raw -= 0.1
    model.save(str(tmp_path))
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path), device="cpu")
    again = SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    assert again[1].alpha == pytest.approx(model[1].alpha, abs=1e-7)
    torch.testing.assert_close(torch.as_tensor(again.encode(TEXTS)), torch.as_tensor(model.encode(TEXTS)))


def test_soft_decay_of_packed_sentences_is_that_of_padded_ones():
    draw = torch.Generator().manual_seed(0)
    rows = [torch.randn(length, 16, generator=draw) for length in (3, 5)]
    packed = {"input_ids": torch.ones(1, 8, dtype=torch.long), "cu_seq_lens_q": torch.tensor([0, 3, 8])}
    decay, pooling = TokenSoftDecay(-0.4), Pooling(16)
    got = pooling(decay(packed | {"token_embeddings": torch.cat(rows).unsqueeze(0)}))["sentence_embedding"]
    torch.testing.assert_close(got, torch.stack([decay.layer(row).mean(0) for row in rows]))


@pytest.mark.parametrize("alpha", [0.3, -1.5])
def test_an_alpha_that_training_has_led_out_of_its_start_range_is_loaded(tmp_path, alpha):
    layer = TokenSoftDecay(mode="code")
    with torch.no_grad():
        layer.layer.raw.fill_(alpha)
    layer.save(str(tmp_path))
    assert TokenSoftDecay.load(str(tmp_path)).alpha == pytest.approx(alpha)


def routed(bert, width=16):
    """Two towers; the one of documents ends at ``width`` dimensions."""
    query, document = tower(bert), tower(bert)
    document += [] if width == 16 else [dense(torch.nn.Linear(16, width))]
    router = Router.for_query_document(query_modules=query, document_modules=document)
    return SentenceTransformer(modules=[router], device="cpu")


def mixed(bert):
    model = routed(bert)
    model[0].sub_modules["document"].to(torch.bfloat16)
    return model


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_transform_goes_behind_a_model_of_any_dtype(bert, dtype):
    model = make(bert).to(dtype)
    vectors = model.encode(TEXTS, convert_to_tensor=True)
    fitted = Whitening(k=3).fit(vectors.double())
    got = append_transform(model, fitted, normalize=True).encode(TEXTS, convert_to_tensor=True)
    want = torch.nn.functional.normalize(fitted.transform(vectors.double()), dim=-1)
    assert got.dtype == dtype
    assert torch.allclose(got.double(), want, atol=0.3 if dtype == torch.bfloat16 else 0.05)


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize("way", ["truncate_dim", "two towers"])
def test_a_transform_fits_vectors_that_are_cut_and_both_towers(bert, way, tmp_path):
    model = make(bert) if way == "truncate_dim" else routed(bert)
    model.truncate_dim = 5 if way == "truncate_dim" else None
    vectors = model.encode_document(TEXTS, convert_to_tensor=True)
    fitted = Whitening(k=3).fit(vectors)
    append_transform(model, fitted).save(str(tmp_path))
    for encoder in (model, SentenceTransformer(str(tmp_path), device="cpu")):
        got = encoder.encode_document(TEXTS, convert_to_tensor=True)
        assert torch.allclose(got, fitted.transform(vectors), atol=1e-4)
        assert encoder.encode_query(TEXTS[:2]).shape == (2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make, "must have the 6 dimensions that the transform was fitted on; got query 16, document 16"),
        (lambda bert: routed(bert, 6), "got query 16, document 6"),
        (mixed, "must have one dtype; got query torch.float32, document torch.bfloat16"),
    ],
)
def test_what_does_not_fit_is_refused_and_the_model_is_as_it_was(bert, change, message):
    model = change(bert)
    before, modes = len(model), [module.training for module in model.train().modules()]
    with pytest.raises(InputError, match=message):
        append_transform(model, torch.nn.Linear(6, 3), normalize=True)
    assert (len(model), [module.training for module in model.modules()]) == (before, modes)
    assert model.encode_document(TEXTS[:2]).shape[0] == 2
