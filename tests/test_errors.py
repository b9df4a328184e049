"""Where this copy of isonb came from, and how the errors say to install it again."""

import json
import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest

import isonb
from isonb import errors
from isonb.errors import DependencyError, install_line, missing, needs, origin

BARE = re.compile(r"""pip install\b.*[\s'"]isonb(\[\w+\])?(['"\s]|$)(?! *@)""")
PACKAGE = Path(isonb.__file__).resolve().parent


class Installed:
    """The metadata that pip leaves beside a package in ``site``."""

    version = "0.7.0"

    def __init__(self, site, direct):
        self.site, self.direct = site, direct

    def read_text(self, name):
        return None if self.direct is None else json.dumps(self.direct)

    def locate_file(self, name):
        return self.site / name


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A copy of the package without its checkout, and what pip says of it."""
    origin.cache_clear()
    (tmp_path / "isonb").mkdir()
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "isonb" / "errors.py"))

    def say(direct, site=tmp_path):
        origin.cache_clear()
        monkeypatch.setattr(metadata, "distribution", lambda name: Installed(site, direct))

    yield say
    origin.cache_clear()


URL = "https://example.org/isonb"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = {"url": URL, "vcs_info": {"vcs": "git", "commit_id": COMMIT}}


@pytest.mark.parametrize(
    ("direct", "line", "lab"),
    [
        (None, "'isonb[audit]==0.7.0'", "isonb-lab==0.7.0"),
        ({"url": "file:///home/a%20b/isonb", "dir_info": {}}, "'/home/a b/isonb[audit]'", "/home/a b/isonb/book"),
        (REPOSITORY, f"'isonb[audit] @ git+{URL}@{COMMIT}'", f"isonb-lab @ git+{URL}@{COMMIT}#subdirectory=book"),
        (REPOSITORY | {"subdirectory": "py"}, f"'isonb[audit] @ git+{URL}@{COMMIT}#subdirectory=py'",
         f"isonb-lab @ git+{URL}@{COMMIT}#subdirectory=py/book"),
        ({"url": f"{URL}/isonb-0.7.0-py3-none-any.whl", "archive_info": {}},
         f"'isonb[audit] @ {URL}/isonb-0.7.0-py3-none-any.whl'", f"isonb-lab @ {URL}/isonb_lab-0.7.0-py3-none-any.whl"),
    ],
)  # fmt: skip
def test_isonb_and_its_laboratory_are_installed_from_where_the_copy_came(installed, direct, line, lab):
    installed(direct)
    line = f"pip install {line}"
    assert install_line("audit") == line
    assert str(missing("rips_barcode", "gudhi", "audit")) == f"rips_barcode needs gudhi: {line}"
    with pytest.raises(DependencyError) as caught, needs("it", "audit", "no_such_library"):
        pass
    assert str(caught.value) == f"it needs no_such_library: {line}"
    assert shlex.split(install_line("lab"))[-1] == lab


def test_what_is_not_known_is_not_guessed(installed, tmp_path, monkeypatch):
    text = "install isonb again from where it came, with isonb-lab"
    installed(None, site=tmp_path / "another")  # the metadata are those of another copy
    assert install_line("lab") == text
    origin.cache_clear()
    monkeypatch.setattr(metadata, "distribution", lambda name: (_ for _ in ()).throw(metadata.PackageNotFoundError))
    assert install_line("lab") == text


def test_a_checkout_is_installed_from_its_folder():
    assert origin() == ("checkout", str(PACKAGE.parent))
    lab = shlex.quote(f"{PACKAGE.parent}/book[book]")
    assert install_line("book") == f"pip install -e {shlex.quote(str(PACKAGE.parent))} -e {lab}"


def test_no_file_installs_isonb_by_its_name_alone():
    """Whoever registers a name on the index of packages runs code on all who install it."""
    root, kinds = PACKAGE.parent, {".py", ".md", ".yml", ".yaml", ".toml"}
    files = [*root.glob("*.*"), *(root / "isonb").rglob("*.*"), *(root / "book").rglob("*.*")]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.suffix in kinds and file.is_file()}
    assert [file.name for file, text in texts.items() for line in text.splitlines() if BARE.search(line)] == []
