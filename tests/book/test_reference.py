"""The reference pages: every public name, method, term and cited work, and no link that leads nowhere."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import isonb
from isonb_lab.methods import methods

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
API = BOOK / "reference" / "api.md"
FENCE = re.compile(r"^(`{3,}|:{3,})\{?(?P<kind>[\w-]*).*?^\1\s*$", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^@\w+\{([^,]+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
CITED = re.compile(r"\{cite(?::[a-z]+)?\}`([^`]+)`")
# What a build knows, without writing pages.
SPHINX = """
import json, sys
from sphinx.application import Sphinx
source, out, options = sys.argv[1:]
with open(out + "/said.txt", "w") as said:
    app = Sphinx(source, None, out, out, "dummy", json.loads(options), status=None, warning=said, freshenv=True)
    app.build()
found = app.env.get_domain("py").objects
told = {
    "names": {name: entry.docname for name, entry in found.items() if not entry.aliased},
    "second": [name for name, entry in found.items() if entry.aliased],
    "terms": [name for kind, name in app.env.get_domain("std").objects if kind == "term"],
    "index": {one[1]: page for page, many in app.env.get_domain("index").entries.items() for one in many},
}
open(out + "/told.json", "w").write(json.dumps(told))
"""


def plain(text, keep):
    """A page without front matter, code cells and what a run fills in; headings and labels alone unless ``keep``."""
    body = text.split("\n---\n", 1)[-1] if text.startswith("---\n") else text
    directives = ("code-cell", "include", "bibliography")
    body = FENCE.sub(lambda result: result[0] if keep and result["kind"] not in directives else "", body)
    if not keep:
        body = "\n\n".join(re.findall(r"^(?:\([\w-]+\)=|#{1,3} .+)$", body, re.MULTILINE))
    return re.sub(r"\{(?:glue|cite|cite:t|cite:p)\}`[^`]*`", "x", body)


def pages():
    """Every page of the table of contents as its source."""
    match = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [ROOT / f"{page.removesuffix('.ipynb')}.md" for page in match]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What sphinx finds in the reference pages, with stubs for all others; its complaints are under ``said``."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    for page in pages():
        place = page.relative_to(ROOT)
        text = page.read_text(encoding="utf-8")
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        (source / place).write_text(plain(text, "reference" in place.parts), encoding="utf-8")
    for file in BOOK.glob("recorded/*/runs.parquet"):  # which a page offers
        (source / file.relative_to(ROOT)).parent.mkdir(parents=True)
        (source / file.relative_to(ROOT)).symlink_to(file)
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    ours = config["sphinx"]["config"]
    options = {name: value for name, value in ours.items() if name.startswith(("auto", "nitpick", "myst_"))}
    prefixes = ("sphinx.ext.auto", "sphinx.ext.napoleon", "isonb_lab.")
    ours = [name for name in ours["extensions"] if name.startswith(prefixes)]
    options |= {"extensions": ["myst_parser", *ours], "nitpicky": True, "root_doc": "book/intro"}
    options |= {"myst_enable_extensions": config["parse"]["myst_enable_extensions"], "suppress_warnings": ["toc"]}
    command = [sys.executable, "-c", SPHINX, str(source), str(out), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    output = (out / "said.txt").read_text(encoding="utf-8").splitlines()
    return json.loads((out / "told.json").read_text(encoding="utf-8")) | {"said": output}


def listed(path):
    """The names of ``__all__``, read without importing."""
    return re.findall(r'"(\w+)"', re.search(r"__all__ = \[(.*?)\]", path.read_text(encoding="utf-8"), re.DOTALL)[1])


def test_sphinx_has_nothing_to_complain_of(report):
    assert [line for line in report["said"] if "isn't included in any toctree" not in line] == []


def test_every_public_name_has_an_entry(report):
    assert sorted(set(isonb.__all__) - {name.removeprefix("isonb.") for name in report["names"]}) == []


def test_every_public_name_has_an_example():
    named = {name: getattr(isonb, name) for name in isonb.__all__}
    assert [name for name, it in named.items() if not inspect.ismodule(it) and ">>>" not in (it.__doc__ or "")] == []


INTEGRATIONS = ["trainer", "accelerate", "sentence_transformers", "hidden_states", "union", "monitor", "watch"]
MODULES = ["losses", "layers", "transforms", "metrics", "auditing", *(f"integrations.{name}" for name in INTEGRATIONS)]


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_has_an_entry(report, module):
    place = ROOT / "isonb" / module.replace(".", "/")
    names = listed(place / "__init__.py" if place.is_dir() else place.with_suffix(".py"))
    reference = {*report["names"], *report["second"]}
    missing = {name for name in names if not {f"isonb.{name}", f"isonb.{module}.{name}"} & reference}
    assert missing <= {"Penalty"}, "which is a type"


def test_a_function_is_found_by_both_names(report):
    assert report["names"]["isonb.isoscore_star"] == "book/reference/api"
    assert {"isonb.measures.isoscore.isoscore_star", "isonb.losses.istar.IStarLoss"} <= set(report["second"])


def test_the_overview_lists_what_the_page_documents():
    text = API.read_text(encoding="utf-8")
    listed = {name.removeprefix("metrics.") for name in re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)}
    entries = re.findall(r"^\.\. auto(?:function|class|exception):: isonb\.(\S+)$", text, re.MULTILINE)
    assert {name.removeprefix("metrics.") for name in entries} <= listed


def sections():
    """The sections of the methods index by the method's name."""
    text = (BOOK / "reference" / "methods.md").read_text(encoding="utf-8")
    parts = re.split(r"^#{2,3} [^\n]*?`(\w+)`$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_method_has_its_section():
    assert set(sections()) == set(methods())


@pytest.mark.parametrize("name", sorted(set(methods()) - {"none"}))
def test_a_section_says_all_and_types_no_verdict(name):
    section = sections()[name].partition("\n## ")[0]
    assert re.search(r"\$.+\$|As above", section, re.DOTALL), "the formula"
    assert re.search(r"\{py:(?:class|func)\}`isonb\.|`isonb_lab\.", section), "where it is in the module"
    assert re.search(r"- Chapters?: \{(?:doc|ref)\}`", section), "its chapter"
    assert f"-{name}`" in section, "what the runs say, from code"
    evidence = section.partition("- Evidence:")[2]
    assert not re.search(r"supported|contradicted|inconclusive|testable|above|below|apart", evidence)


def bibliography():
    """Each entry's key, with the first author's family name and the year."""
    results = {}
    for key, body in ENTRY.findall((BOOK / "references.bib").read_text(encoding="utf-8")):
        author = re.search(r"(?:author|editor) = \{+(.+?)(?:,| and|\}+,?$)", body, re.MULTILINE)
        year = re.search(r"year = \{(\d{4})", body)
        assert author, f"{key} has no author"
        assert year, f"{key} has no year"
        results[key] = (re.sub(r"[{}\\\"]", "", author[1]), year[1])
    return results


def cited():
    texts = (path.read_text(encoding="utf-8") for path in BOOK.rglob("*.md"))
    return {key.strip() for text in texts for keys in CITED.findall(text) for key in keys.split(",")}


def test_every_citation_is_in_the_bibliography():
    assert not cited() - set(bibliography())


def test_every_entry_is_cited_in_a_chapter_or_named_in_a_docstring():
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "isonb").rglob("*.py"))

    def named(author, year):
        return re.search(rf"\b{author}\b.{{0,60}}\(?{year}", code) is not None

    rest = {key: who for key, who in bibliography().items() if key not in cited()}
    assert [key for key, who in rest.items() if not named(*who)] == []
