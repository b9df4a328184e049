"""The reference pages: every public name, method and cited work."""

import importlib
import inspect
import re
import zlib
from pathlib import Path

import pytest
from browser import HTML
from pybtex.database import parse_file

import isonb
from isonb_lab.methods import methods

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
API = BOOK / "reference" / "api.md"
CITED = re.compile(r"\{cite(?::[a-z]+)?\}`([^`]+)`")
built = pytest.mark.browser  # which runs after the book is built; its build refuses a link that leads nowhere


@pytest.fixture(scope="module")
def entries():
    """What the built pages document: each name with its page, a second name of the same with none."""
    inventory = HTML / "objects.inv"
    if not inventory.is_file():
        pytest.skip("run `make book` first")
    lines = zlib.decompress(inventory.read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    named = (line.split() for line in lines if " py:" in line)
    return {name: place.partition("#")[0] if priority != "-1" else None for name, _, priority, place, _ in named}


@built
def test_every_public_name_has_an_entry(entries):
    assert [name for name in isonb.__all__ if not entries.get(f"isonb.{name}")] == []


def test_every_public_name_has_an_example():
    named = {name: getattr(isonb, name) for name in isonb.__all__}
    assert [name for name, it in named.items() if not inspect.ismodule(it) and ">>>" not in (it.__doc__ or "")] == []


def test_every_member_that_the_page_names_is_there():
    """The build refuses one that isn't, minutes later."""
    named = re.findall(r"automodule:: (\S+)\n +:members: (\S.*)", API.read_text(encoding="utf-8"))
    assert named
    for module, names in named:
        missing = set(names.split(", ")) - vars(importlib.import_module(module)).keys()
        assert not missing, module


INTEGRATIONS = ["trainer", "accelerate", "sentence_transformers", "hidden_states", "union", "monitor", "watch"]
MODULES = ["losses", "layers", "transforms", "metrics", "auditing", *(f"integrations.{name}" for name in INTEGRATIONS)]


@built
@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_has_an_entry(entries, module):
    room = importlib.import_module(f"isonb.{module}")
    own = [name for name, it in vars(room).items() if getattr(it, "__module__", "") == room.__name__ and name[0] != "_"]
    names = getattr(room, "__all__", own)
    missing = {name for name in names if not {f"isonb.{name}", f"isonb.{module}.{name}"} & entries.keys()}
    assert missing <= {"reads_forwards"}, "which the page leaves out"


@built
def test_a_function_is_found_by_both_names(entries):
    assert entries["isonb.isoscore_star"] == "book/reference/api.html"
    for second in ("isonb.measures.isoscore.isoscore_star", "isonb.losses.istar.IStarLoss"):
        assert entries[second] is None


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
    for key, entry in parse_file(str(BOOK / "references.bib")).entries.items():
        people = entry.persons.get("author") or entry.persons["editor"]
        results[key] = (re.sub(r"[{}\\\"]", "", " ".join(people[0].last_names)), entry.fields["year"])
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
