"""What the book says of a classifier and of roundness is bound to the vectors that the classifier reads.

With a pooler it reads neither tokens nor [CLS]. So a paragraph that sets a head, an isotropy and a score beside each
other names what the head reads, by a value ``read...`` of the page, and such a value comes from ``studies/heads.py``.
"""

import ast
import re

import pytest

from isonb_lab.methods import reading_place
from isonb_lab.papers import read_where
from isonb_lab.places import RECORDINGS_FOLDER

EXCLUDED = ("the_dial", "the_dial_more")  # a linear head there reads the very vectors that are turned
# studies of what is read, and of no other vectors
SOURCES = {"dose": {"heads", "study"}, "claims": {"heads", "rounded"}}
BOOK = RECORDINGS_FOLDER.parent
PAGES = [*BOOK.glob("results/*.md"), *BOOK.glob("teaching/*.md")]
PAGES = sorted(page for page in PAGES if page.stem not in EXCLUDED)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUBJECTS = {
    "a head": r"\b(classifiers?|(trained|fine-tuned|linear) head)\b",
    "an isotropy": r"\b(rounder|less round|times as round|isotropy|isoscore\w*)\b",
    "a score that moved": r"\b(accuracy|points?|gains?|scores?|costs?)\b",
}
BOUND = "{glue}`read"


def unbound(source):
    """The paragraphs and rows that speak of a head, of isotropy and of a score, and not of what the head reads."""
    results = []
    for block in FENCE.sub("\n\n", source).split("\n\n"):
        for text in block.split("\n") if block.startswith("|") else re.split(r"\n(?=- )", block):
            plain = re.sub(r"\{\w+\}`[^`]*`", " 1 ", text).lower()
            if all(re.search(pattern, plain) for pattern in SUBJECTS.values()) and BOUND not in text:
                results.append(" ".join(text.split())[:90])
    return results


def bound_elsewhere(source, sources=frozenset({"heads"})):
    """The values named ``read...`` that a page doesn't take from ``heads``."""
    cells = [re.sub(r"\A---\n.*?^---$", "", item, flags=re.MULTILINE | re.DOTALL) for item in CODE.findall(source)]
    tree = ast.parse(re.sub(r"^:.*$", "", "\n".join(cells), flags=re.MULTILINE))
    of_heads = set(sources)
    for _ in range(5):  # a name of a name of a name
        for node in ast.walk(tree):
            for values, targets in flows(node):
                if names(values) & of_heads:
                    of_heads |= {name for target in targets for name in names(target)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "pages.glue"]
    read = [call for call in calls if ast.unparse(call.args[0]).lstrip("f'\"").startswith("read")]
    return [ast.unparse(call) for call in read if not names(call.args[1]) & of_heads]


def flows(node):
    """From which part of a statement to which names values go."""
    match node:
        case ast.Assign(value=value, targets=targets):
            yield value, targets
        case ast.For(iter=value, target=target):
            yield value, [target]
        case ast.FunctionDef(name=name):
            yield node, [ast.Name(name)]
        case ast.Call(func=ast.Attribute(value=ast.Name() as target, attr="append")):
            yield node, [target]


def names(node):
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_paragraph_about_a_classifier_says_what_it_reads(page):
    source = page.read_text(encoding="utf-8")
    assert unbound(source) == []
    assert bound_elsewhere(source, SOURCES.get(page.stem, {"heads"})) == []


def test_the_column_of_read_where_is_what_its_classifiers_read():
    column = f"metric.end.{reading_place('log_isoscore', 'pooler')}.participation_ratio_unbiased"
    assert column == read_where.READ


CELL = "```{{code-cell}} ipython3\n:tags: [hide-input]\n\n{}\n```\n\n"
SENTENCE = "The classifier reads {{glue}}`{}` directions; with rounder tokens the accuracy rises."


def test_a_sentence_without_what_the_head_reads_is_found():
    assert unbound(SENTENCE.format("read-up")) == []
    assert len(unbound(SENTENCE.format("tokens-up"))) == 1
    row = "| a fine-tuned head | tokens twice as round, IsoScore 0.8 | accuracy +0.4 |"
    assert unbound(f"Text.\n\n{row}\n") == [row]
    assert unbound("A cosine gains where the space is rounder.") == []


@pytest.mark.parametrize(
    "value",
    ['runs["metric.end.cls.isoscore"].mean()', "rounder", 'runs["metric.end.tokens.isoscore"]'],
)
def test_what_a_head_reads_is_bound_to_no_other_vectors(value):
    """The [CLS] vectors and the tokens of a recording are not what a head with a pooler reads."""
    elsewhere = CELL.format(f'rounder = runs["metric.end.cls.isoscore"]\npages.glue("read-up", {value})')
    assert len(bound_elsewhere(elsewhere)) == 1
    right = CELL.format('means = heads.participation(runs)\nleast = means.min()\npages.glue(f"read-{name}", least)')
    assert bound_elsewhere(right) == []
