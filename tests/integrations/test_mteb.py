"""An encoder with a transform, scored by MTEB without a network, and by hand."""

import pytest
import torch
from scipy.stats import spearmanr

from isonb.errors import ShapeError
from isonb.integrations.mteb import TransformedEncoder
from isonb.transforms import Whitening
from isonb_lab.data.rows import load_task
from isonb_lab.data.sts import pair_cosine


def letters(texts):
    """How often each text has each letter: an encoder that costs nothing."""
    return [[float(text.lower().count(chr(97 + i))) for i in range(26)] for text in texts]


@pytest.fixture(scope="module")
def rows():
    return load_task("english_sts", limit=300, seed=0)


@pytest.fixture(scope="module")
def whitening(rows):
    return Whitening(k=10).fit(torch.tensor(letters([*rows["sentence1"], *rows["sentence2"]])))


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.filterwarnings("ignore")  # MTEB's own
def test_mteb_scores_what_is_scored_by_hand(transformed, rows, whitening):
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    class Local(AbsTaskSTS):
        metadata = TaskMetadata(
            name="Local", description="Rows of this test.", type="STS", category="t2t", modalities=["text"],
            dataset={"path": "local/none", "revision": "0"}, eval_splits=["test"], eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
        )  # fmt: skip

        def load_data(self, **kwargs):
            columns = {name: list(rows[name]) for name in ("sentence1", "sentence2", "score")}
            self.dataset, self.data_loaded = DatasetDict(test=Dataset.from_dict(columns)), True

    encoder = TransformedEncoder(letters, whitening if transformed else None, "isonb/letters")
    (result,) = mteb.evaluate(encoder, Local(), cache=None, co2_tracker=False, show_progress_bar=False).task_results
    first, other = (torch.tensor(letters(rows[name])) for name in ("sentence1", "sentence2"))
    if transformed:
        first, other = whitening.transform(first), whitening.transform(other)
    expected = spearmanr(pair_cosine(first, other), rows["score"]).statistic
    assert result.get_score() == pytest.approx(expected, abs=1e-4)


def test_another_transform_is_another_revision(whitening):
    plain, changed = TransformedEncoder(letters), TransformedEncoder(letters, whitening)
    assert plain.revision == TransformedEncoder(letters).revision != changed.revision
    assert changed.encode([{"text": ["a cone", "a ball"]}, {"text": ["x"]}], task_metadata=None).shape == (3, 10)
    cosines = plain.similarity(torch.eye(3), torch.ones(2, 3))
    torch.testing.assert_close(cosines, torch.full((3, 2), 3**-0.5))


def test_vectors_that_are_not_one_a_text_are_refused():
    with pytest.raises(ShapeError, match=r"encode must return one vector a text; got shape \(26,\) of 1 texts"):
        TransformedEncoder(lambda texts: letters(texts)[0])
