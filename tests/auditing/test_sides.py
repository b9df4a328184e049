"""Models with two sides: queries and documents pass their own prompts and routes, and the report names them."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

import isonb
from isonb.auditing import measured
from isonb.auditing.embedders import SentenceEmbedder
from isonb.auditing.models import Store
from isonb.auditing.models import _pairs as pairs_of
from isonb.auditing.sides import two_sided, ways
from isonb.cli import main
from isonb.errors import InputError
from isonb_lab.data.corpus import sentences
from tests.lab.random_models import save

TEXTS = [sentence.text for sentence in sentences()]
QUERIES, DOCUMENTS = TEXTS[:40], TEXTS[40:160]
PROMPTS = {"query": "Find: ", "document": "The rain fell on a road. ", "other": "Anna slept. "}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("two")
    return [save("bert", place / f"{seed}", seed) for seed in (0, 1)]


def modules(folder):
    first = Transformer(str(folder))
    return [first, Pooling(first.get_embedding_dimension(), "mean")]


@pytest.fixture(scope="module")
def prompted(folders):
    return SentenceTransformer(modules=modules(folders[0]), prompts=PROMPTS, device="cpu")


@pytest.fixture(scope="module")
def routed(folders):
    query, document = map(modules, folders)
    router = Router.for_query_document(query_modules=query, document_modules=document)
    return SentenceTransformer(modules=[router], device="cpu")


def report(result):
    return " ".join(finding.text for finding in result.findings if finding.name == "two sides")


@pytest.fixture
def compared(monkeypatch):
    """What queries and rows a threshold is looked for between, in the order of the audits."""
    seen = []
    monkeypatch.setattr(measured, "query_thresholds", lambda queries, x, *_: seen.append((queries, x)) or ())
    return seen


@pytest.mark.parametrize("kind", ["prompted", "routed"])
def test_the_threshold_lies_between_queries_and_documents(kind, request, compared):
    model = request.getfixturevalue(kind)
    assert two_sided(model)
    result = isonb.audit(model, DOCUMENTS, queries=QUERIES, progress=False)
    queries, rows = map(torch.as_tensor, (model.encode_query(QUERIES), model.encode_document(DOCUMENTS)))
    (found,) = compared
    assert torch.allclose(found[0].float(), queries, atol=1e-5)
    assert torch.allclose(found[1].float(), rows, atol=1e-5)
    assert not torch.allclose(queries, torch.as_tensor(model.encode_document(QUERIES)), atol=1e-3)
    names = {"prompted": ["the prompt document", "Find:"], "routed": ["the route document", "the route query"]}[kind]
    assert all(name in report(result) for name in names)


def test_labelled_pairs_are_a_query_and_a_document(prompted, tmp_path):
    store = Store(tmp_path, SentenceEmbedder(prompted, "it", None, 32), progress=False)
    pairs = pairs_of(store, QUERIES, DOCUMENTS[:40], torch.ones(40))
    assert torch.allclose(pairs.first, torch.as_tensor(prompted.encode_query(QUERIES)), atol=1e-6)
    assert torch.allclose(pairs.second, torch.as_tensor(prompted.encode_document(DOCUMENTS[:40])), atol=1e-6)


@pytest.mark.parametrize(("prompt", "text"), [("other", "Anna slept. "), ("", "")])
def test_a_prompt_can_be_chosen(prompt, text, prompted, compared):
    result = isonb.audit(prompted, DOCUMENTS, queries=QUERIES, prompt=prompt, progress=False)
    for found, part in zip(compared[0], (QUERIES, DOCUMENTS), strict=True):
        assert torch.allclose(found.float(), torch.as_tensor(prompted.encode(part, prompt=text)), atol=1e-5)
    assert ("the prompt other" if prompt else "without a prompt") in report(result)


def test_without_queries_the_report_asks_for_them(prompted):
    result = isonb.audit(prompted, DOCUMENTS, progress=False)
    (finding,) = [item for item in result.findings if item.name == "two sides"]
    assert "Give queries, too" in finding.advice
    assert "the prompt document" in result.source


def test_a_default_prompt_of_another_name_is_named(folders):
    more = {"prompts": {"other": PROMPTS["other"]}, "default_prompt_name": "other"}
    model = SentenceTransformer(modules=modules(folders[0]), device="cpu", **more)
    result = isonb.audit(model, DOCUMENTS, progress=False)
    plain = isonb.audit(model.encode(DOCUMENTS))
    assert result.floor["random cosine"]["0.5"] == pytest.approx(plain.floor["random cosine"]["0.5"], abs=1e-5)
    assert 'with the prompt other ("Anna slept.")' in str(result)
    assert "default prompt" in [finding.name for finding in result.findings]


def test_a_model_with_one_side_is_encoded_as_ever(folders):
    model = SentenceTransformer(modules=modules(folders[0]), device="cpu")
    assert not two_sided(model)
    assert report(isonb.audit(model, DOCUMENTS, progress=False)) == ""
    prompt = {"prompts": {"a": "Anna. "}, "default_prompt_name": "a"}
    usual = SentenceTransformer(modules=modules(folders[0]), device="cpu", **prompt)
    assert not two_sided(usual)


def test_what_is_no_prompt_of_the_model_is_refused(prompted):
    with pytest.raises(InputError, match=r"got 'quary'\. Its prompts: query, document, other"):
        ways(prompted, "quary")
    with pytest.raises(InputError, match="a model of sentence-transformers alone has prompts"):
        isonb.audit(lambda texts: np.zeros((len(texts), 4)), DOCUMENTS, prompt="query")


def test_the_command_takes_a_prompt_and_keeps_the_sides_apart(prompted, tmp_path, capsys):
    prompted.save(str(tmp_path / "model"))
    for name, texts in (("d", DOCUMENTS), ("q", QUERIES)):
        (tmp_path / f"{name}.txt").write_text("\n".join(texts))
    arguments = ["audit", str(tmp_path / "model"), "--texts", str(tmp_path / "d.txt"), "--work", str(tmp_path / "work")]
    assert main([*arguments, "--queries", str(tmp_path / "q.txt")]) == 0
    first = capsys.readouterr().out
    assert main([*arguments, "--queries", str(tmp_path / "q.txt")]) == 0  # from the vectors in work
    assert capsys.readouterr().out == first
    assert main([*arguments, "--queries", str(tmp_path / "q.txt"), "--prompt", "query"]) == 0
    assert capsys.readouterr().out != first
    assert main([*arguments, "--prompt", "quary"]) == 2
    assert main(["audit", str(tmp_path / "model"), "--prompt", "query"]) == 2
