"""The rules of the house that code can check: what imports what, and what `import isonb` may need."""

import ast
import sys
from pathlib import Path

from processes import python

import isonb

ROOT = Path(isonb.__file__).parent
ROOMS = ("measures", "barcodes", "losses", "layers", "transforms", "streaming", "numerics")
MATHS = sorted([*ROOT.glob("*.py"), *(path for room in ROOMS for path in (ROOT / room).glob("*.py"))])


def foreign(path: Path) -> set[str]:
    """Libraries other than torch that a file needs to be imported."""
    roots = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        roots |= {name.split(".")[0] for name in names}
    return roots - set(sys.stdlib_module_names) - {"torch", "isonb"}


def test_maths_needs_torch_alone_and_metrics_torchmetrics():
    assert {path.name: foreign(path) for path in MATHS if foreign(path)} == {}
    assert set().union(*map(foreign, (ROOT / "metrics").glob("*.py"))) <= {"torchmetrics"}


def test_old_names_of_modules_give_the_same_objects_with_a_warning():
    code = """
import warnings
with warnings.catch_warnings(record=True) as raised:
    warnings.simplefilter("always")
    from isonb.lab.data.corpus import sentences
    from isonb.lab.encoders.catalogue import EMBEDDED
    import isonb.pages
import isonb_lab.data.corpus, isonb_lab.pages, isonb.models.catalogue
assert sentences is isonb_lab.data.corpus.sentences and EMBEDDED is isonb.models.catalogue.EMBEDDED
assert isonb.pages is isonb_lab.pages and isonb_lab.pages.__spec__.name == "isonb_lab.pages"
print(*sorted(str(one.message).split(" ")[0] for one in raised if one.category is DeprecationWarning))
"""
    names = "isonb.lab isonb.lab.data isonb.lab.data.corpus isonb.lab.encoders isonb.lab.encoders.catalogue isonb.pages"
    assert set(names.split()) <= set(python("-c", code).split())


def test_with_torch_alone_isonb_computes_and_what_is_missing_is_told_by_name():
    script = """
import sys
class Block:
    allowed = {"isonb", "torch", "torchgen", "functorch", "typing_extensions", "sympy", "mpmath", "filelock", "fsspec",
               "jinja2", "networkx", "markupsafe", *sys.stdlib_module_names}
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.allowed and not name.startswith("_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
import torch, isonb
print(f"{float(isonb.isoscore(torch.eye(4))):.4f}", len(isonb.__all__) > 40)
for call in (lambda: isonb.audit(torch.eye(30)), lambda: isonb.compare(torch.eye(30), torch.eye(30)),
             lambda: isonb.rips_barcode(torch.eye(5)), lambda: isonb.h0_barcode(torch.eye(5), metric="cosin")):
    try:
        call()
    except (isonb.DependencyError, isonb.InputError) as error:
        print(error)
"""
    output = python("-W", "ignore", "-c", script).splitlines()
    wants = ["0.6667 True", *["isonb.audit needs numpy"] * 2, "rips_barcode", "'cosin'"]
    for want, line in zip(wants, output, strict=True):
        assert want in line


def test_everything_public_is_there_and_documented_and_completion_shows_it_alone():
    assert isonb.__all__ == sorted(isonb.__all__) == [name for name in dir(isonb) if not name.startswith("__")]
    assert [name for name in isonb.__all__ if not (getattr(isonb, name).__doc__ or "").strip()] == []
