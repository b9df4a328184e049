"""An audit measures the vectors that users get: those of encode, of a model with its tokenizer, of a function."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer import modules as kinds
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, T5Config, T5EncoderModel

import isonb
from isonb.auditing.choosing import Encoding, embedder_of
from isonb.auditing.models import Store
from isonb.errors import InputError, ShapeError
from isonb.integrations.sentence_transformers import TokenSoftDecay, append_transform
from isonb.models.catalogue import ModelError
from isonb.transforms import Whitening
from isonb_lab.data import corpus

TEXTS = [sentence.text for sentence in corpus.sentences()][:60]
LONG = [*TEXTS, " ".join(TEXTS[:9])]


def pooled(bert, mode="mean", *heads, **more):
    first = Transformer(bert)
    wide = 16 if isinstance(mode, str) else 16 * len(mode)
    return SentenceTransformer(
        modules=[first, kinds.Pooling(16, pooling_mode=mode), *(head(wide) for head in heads)], device="cpu", **more
    )


def dense(out):
    return lambda wide: Dense(wide, out)


def unit(wide):
    return kinds.Normalize()


def prompted(bert, include):
    model = pooled(bert, "mean", prompts={"query": "search for this: ", "plain": ""}, default_prompt_name="query")
    model[1].include_prompt = include
    return model


def short(bert):
    model = pooled(bert, "cls")
    model.max_seq_length = 7
    return model


def whitened(bert):
    model = pooled(bert)
    return append_transform(model, Whitening(4).fit(torch.as_tensor(model.encode(TEXTS))), normalize=True)


def static(bert):
    return SentenceTransformer(
        modules=[kinds.StaticEmbedding(AutoTokenizer.from_pretrained(bert).backend_tokenizer, embedding_dim=12)]
    )


def weighted(bert):
    first = Transformer(bert, config_kwargs={"output_hidden_states": True})
    return SentenceTransformer(modules=[first, kinds.WeightedLayerPooling(16, 2, 1), kinds.Pooling(16)], device="cpu")


def soft_decay(bert):
    model = pooled(bert)
    model.insert(1, TokenSoftDecay(-0.6, mode="safe"))  # by "code" rounding decides along directions without tokens
    return model


SAVED = {
    "two poolings": lambda bert: pooled(bert, ("cls", "max")),
    "two dense and unit length": lambda bert: pooled(bert, "lasttoken", dense(24), lambda wide: Dense(24, 6), unit),
    "layer norm": lambda bert: pooled(bert, "max", kinds.LayerNorm),
    "dropout": lambda bert: pooled(bert, "mean", lambda wide: kinds.Dropout(0.5)),
    "prompt": lambda bert: prompted(bert, True),
    "prompt left out of the mean": lambda bert: prompted(bert, False),
    "short input": short,
    "whitened": whitened,
    "static": static,
    "weighted layers": weighted,
    "soft decay": soft_decay,
}


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")  # few sentences on purpose
@pytest.mark.parametrize("kind", SAVED)
def test_the_vectors_of_a_saved_folder_are_those_of_encode(kind, bert, tmp_path):
    torch.manual_seed(0)
    SAVED[kind](bert).save(str(tmp_path / "model"))
    model = SentenceTransformer(str(tmp_path / "model"), device="cpu", trust_remote_code=True)
    two = kind.startswith("prompt")  # the library has an empty prompt for documents where the model names none
    want = model.encode_document(LONG) if two else model.encode(LONG)
    embedder, assumed = embedder_of(str(tmp_path / "model"), Encoding(batch_size=8))
    got, layers, _ = Store(tmp_path, embedder).embed(LONG, "texts", [0, 5, 60])
    np.testing.assert_allclose(got[:], want, rtol=0, atol=1e-5)
    queries_read = Store(tmp_path, embedder).of_queries().vectors(LONG, "queries")
    np.testing.assert_allclose(queries_read, model.encode_query(LONG), rtol=0, atol=1e-5)
    assert np.allclose(queries_read, want, rtol=0, atol=1e-5) == (not two)
    assert not assumed
    assert (layers is None) == (kind == "static")
    report = isonb.audit(tmp_path / "model", LONG, progress=False)
    assert report.d == want.shape[1]
    assert report.values()["mean cosine"] == pytest.approx(float(isonb.mean_cosine(torch.as_tensor(want))), abs=1e-5)
    way = "as its encode_document does, without a prompt" if two else "as sentence-transformers encodes"
    assert way in report.source


def test_a_loaded_model_is_measured_as_it_is_and_left_as_it_was(bert):
    model = pooled(bert, "cls", unit, truncate_dim=6).train()
    report = isonb.audit(model, TEXTS, max_length=9, progress=False)
    assert (report.d, report.sound, len(report.layers)) == (6, True, 3)
    assert (model.training, model.max_seq_length) == (True, 130)
    assert (
        report.layers_note == "Layers have 16 dimensions, the vectors 6: they are cut to these, or more modules follow."
    )
    assert "cut texts" in {item.name for item in report.findings}
    model.max_seq_length = 9
    assert report.values() == isonb.audit(model, TEXTS, progress=False).values()


def test_a_tokenizer_without_a_limit_is_read(bert):
    model = pooled(bert)
    model.tokenizer.model_max_length = model.max_seq_length = int(1e30)
    short = [text[:40] for text in TEXTS]  # the model itself has places for 130 tokens
    assert isonb.audit(model, short, progress=False).sound
    assert "cut texts" in {item.name for item in isonb.audit(model, short, max_length=9, progress=False).findings}


def test_layers_are_those_of_the_first_module_pooled_alike(bert, tmp_path):
    model = pooled(bert, "max", dense(5))
    embedder, _ = embedder_of(model, Encoding())
    _, layers, _ = Store(tmp_path, embedder).embed(TEXTS, "texts", [2])
    plain = AutoModel.from_pretrained(bert)
    batch = AutoTokenizer.from_pretrained(bert)(TEXTS[2], return_tensors="pt")
    states = plain(**batch, output_hidden_states=True).hidden_states
    want = torch.stack([state[0].max(0).values for state in states]).detach()
    torch.testing.assert_close(torch.tensor(layers[0]), want, rtol=0, atol=1e-5)


def test_a_transformers_model_comes_with_its_tokenizer(bert):
    tokenizer = AutoTokenizer.from_pretrained(bert)
    model = AutoModelForSequenceClassification.from_pretrained(bert).eval()
    by_name = isonb.audit(bert, TEXTS, progress=False, pool="cls")
    for inputs, more in (((model, tokenizer), {}), ((tokenizer, model), {}), (model, {"tokenizer": tokenizer})):
        report = isonb.audit(inputs, TEXTS, progress=False, pool="cls", **more)
        assert report.values() == pytest.approx(by_name.values(), abs=1e-5)
    with pytest.raises(InputError, match=r"a model must come with its tokenizer; got Bert.*\(model, tokenizer\)"):
        isonb.audit(model, TEXTS)


def test_of_an_encoder_decoder_the_encoder_is_taken_or_the_word_is_clear(bert, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(bert)
    torch.manual_seed(0)
    size = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "vocab_size": len(tokenizer)}
    model = T5EncoderModel(T5Config(**size)).eval()
    assert len(isonb.audit((model, tokenizer), TEXTS, progress=False).layers) == 3
    model.config.is_encoder_decoder = True
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="is an encoder-decoder; use an encoder or a decoder"):
        isonb.audit(tmp_path, TEXTS)


def test_a_function_from_texts_to_vectors_is_taken(bert):
    model = pooled(bert, "cls")
    report = isonb.audit(lambda texts: list(model.encode(texts, convert_to_tensor=True)), TEXTS, progress=False)
    want = isonb.audit(model, TEXTS, progress=False)
    assert report.values()["mean cosine"] == pytest.approx(want.values()["mean cosine"], abs=1e-5)
    assert not report.layers
    with pytest.raises(InputError, match="must be those of a model's name or folder; got the function"):
        isonb.audit(model.encode, TEXTS, work="somewhere")


def test_a_function_may_give_dimensions_that_count_the_rows_on():
    """As of vectors an id beside them would; here a batch of eight may count where the next one doesn't."""
    texts = [f"text {i:03d}{'.' * (i % 8)}" for i in range(60)]
    place = {text: i for i, text in enumerate(texts)}
    draw = np.random.default_rng(0).normal(size=(60, 4))

    def features(batch):
        return [[*draw[place.get(text, 0)], len(text)] for text in batch]

    assert isonb.audit(features, texts, batch_size=8, progress=False).d == 5
    assert "60 texts" in isonb.compare(features, features, texts, batch_size=8).read[0]


@pytest.mark.parametrize(
    ("model", "kind", "says"),
    [
        (torch.nn.Linear(2, 2), InputError, "a model must come with its tokenizer; got Linear"),
        (lambda texts: np.zeros((3, 4)), ShapeError, "the function must give one vector a text; got 3 of"),
        (lambda texts: np.zeros(4), ShapeError, "must be an array"),
        (lambda texts: [*map(np.zeros, range(2, 2 + len(texts)))], ShapeError, "every row of the vectors of the func"),
        (type("Flag", (), {"encode": lambda self, texts: texts})(), InputError, r"audit\(model.encode, texts\)"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(model, kind, says):
    with pytest.raises(kind, match=says):
        isonb.audit(model, TEXTS, progress=False)


def test_sparse_vectors_are_refused_by_name(bert):
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    sparse = SparseEncoder(modules=[Transformer(bert), SpladePooling()], device="cpu")
    with pytest.raises(InputError, match="the model must give dense vectors; got SparseEncoder"):
        isonb.audit(sparse, TEXTS)


def test_pooling_that_is_not_saved_is_told(bert):
    (note,) = [item for item in isonb.audit(bert, TEXTS, progress=False).findings if item.name == "pooling"]
    assert (note.severity, note.text) == ("note", "No pooling is saved with the model: mean is assumed.")
    assert "pooling" not in {entry.name for entry in isonb.audit(bert, TEXTS, progress=False, pool="cls").findings}


def edit_tokenizer(folder):
    path = folder / "tokenizer.json"
    text = json.loads(path.read_text())
    vocabulary = text["model"]["vocab"]
    words = [word for word in vocabulary if word.isalpha()]
    for a, b in zip(words[::2], words[1::2], strict=False):
        vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    path.write_text(json.dumps(text))


def edit_prompt(folder):
    path = folder / "config_sentence_transformers.json"
    report = {"prompts": {"q": "say what it is about: "}, "default_prompt_name": "q"}
    path.write_text(json.dumps(json.loads(path.read_text()) | report))


@pytest.mark.parametrize("edit", [edit_tokenizer, edit_prompt])
def test_kept_vectors_are_of_the_folder_as_it_is_now(edit, bert, tmp_path):
    torch.manual_seed(0)
    pooled(bert, "mean", dense(6)).save(str(tmp_path / "model"))
    before = isonb.audit(tmp_path / "model", TEXTS, work=tmp_path / "work", progress=False)
    edit(tmp_path / "model")
    again = isonb.audit(tmp_path / "model", TEXTS, work=tmp_path / "work", progress=False)
    assert again == isonb.audit(tmp_path / "model", TEXTS, work=tmp_path / "other", progress=False) != before


def test_a_place_that_cannot_be_written_is_one_typed_error(bert):
    with pytest.raises(InputError, match=r"^audit: the disk must take 0+\.npz; got .*\. Check the folder"):
        isonb.audit(bert, TEXTS, work="/dev/null/work", progress=False)


@pytest.mark.parametrize("inputs", ["name", "object"])
def test_an_input_that_special_tokens_fill_is_refused(inputs, bert):
    model = bert if inputs == "name" else pooled(bert)
    with pytest.raises(InputError, match=r"max_length must leave room for a word beside 2 special tokens; got 2"):
        isonb.audit(model, TEXTS, max_length=2)
    assert isonb.audit(model, TEXTS, max_length=3, progress=False).n == 60


NONE = np.zeros((60, 4))
REFUSED = {
    "a tokenizer beside a name": ("tiny", {"tokenizer": object()}, "tokenizer must be left out here"),
    "a tokenizer beside a function": (lambda texts: NONE, {"tokenizer": 1}, "tokenizer must be left out here"),
    "the pooling of a function": (lambda texts: NONE, {"pool": "cls"}, "pool must be left out of a function"),
    "the length of a function": (lambda texts: NONE, {"max_length": 3}, "max_length must be left out of a function"),
    "a column of a model": ("tiny", {"name": "nonsense"}, "name must be left out of a model"),
    "the pooling of vectors": (NONE, {"pool": "mean"}, "pool must be left out of vectors"),
    "the length of vectors": (NONE, {"max_length": 3}, "max_length must be left out of vectors"),
    "a work folder of vectors": (NONE, {"work": "w"}, "work must be left out of vectors"),
    "a prompt of vectors": (NONE, {"prompt": ""}, "prompt must be left out of vectors"),
    "a device that isn't there": (NONE, {"device": "cuda:99"}, "device must be one that this machine has"),
    "a device that is none": ("tiny", {"device": "foo"}, "device must be one that this machine has; got 'foo'"),
    "a seed that is none": (NONE, {"seed": "a"}, "seed must be an integer of 64 bits"),
    "a seed beyond torch": (NONE, {"seed": 2**70}, "seed must be an integer of 64 bits"),
    "a batch of none": (NONE, {"batch_size": 0}, "batch_size must be at least 1 and an integer"),
}


def test_numbers_of_numpy_serve_as_options(tmp_path):
    options = {"sample": 100, "seed": 3, "max_length": 8, "batch_size": 9}
    wanted = isonb.audit("tiny", TEXTS, work=tmp_path / "python", **options)
    options = {name: np.int64(number) for name, number in options.items()}
    assert isonb.audit("tiny", TEXTS, work=tmp_path / "numpy", **options).to_json() == wanted.to_json()


@pytest.mark.parametrize("case", REFUSED)
def test_an_option_without_effect_or_meaning_is_refused(case):
    model, more, says = REFUSED[case]
    with pytest.raises(InputError, match=f"^audit: {says}"):
        isonb.audit(model, TEXTS, **more)


def test_a_second_tokenizer_and_the_pooling_of_a_loaded_model_are_refused(bert):
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert)
    with pytest.raises(InputError, match=r"^audit: tokenizer must be left out here"):
        isonb.audit((model, tokenizer), TEXTS, tokenizer=tokenizer)
    for option in ({"pool": "mean"}, {"tokenizer": tokenizer}):
        with pytest.raises(InputError, match="must be left out of a model of sentence-transformers"):
            isonb.audit(pooled(bert), TEXTS, **option)


def test_what_a_chosen_pooling_and_length_leave_out_is_told(bert, tmp_path):
    pooled(bert, "mean", unit).save(str(tmp_path / "model"))
    _, said = embedder_of(tmp_path / "model", Encoding(pool="mean", max_length=100_000))
    assert [(item.name, item.severity) for item in said] == [("max_length", "note"), ("pooling", "note")]
    assert said[0].text == "The model cuts texts at 130 tokens, before max_length = 100000."
    assert "(Pooling, Normalize) and any prompts are left out" in said[1].text
