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
    ("direct", "line"),
    [
        (None, "pip install 'isonb[audit]==0.7.0'"),
        ({"url": "file:///home/a%20b/isonb", "dir_info": {}}, "pip install '/home/a b/isonb[audit]'"),
        (REPOSITORY, f"pip install 'isonb[audit] @ git+{URL}@{COMMIT}'"),
        (REPOSITORY | {"subdirectory": "py"}, f"pip install 'isonb[audit] @ git+{URL}@{COMMIT}#subdirectory=py'"),
        ({"url": f"{URL}.whl", "archive_info": {}}, f"pip install 'isonb[audit] @ {URL}.whl'"),
    ],
)
def test_the_line_installs_from_where_the_copy_came(installed, direct, line):
    installed(direct)
    assert install_line("audit") == line
    assert str(missing("rips_barcode", "gudhi", "audit")) == f"rips_barcode needs gudhi: {line}"
    with pytest.raises(DependencyError) as caught, needs("it", "audit", "no_such_library"):
        pass
    assert str(caught.value) == f"it needs no_such_library: {line}"


@pytest.mark.parametrize(
    ("direct", "lab"),
    [
        (None, "isonb-lab==0.7.0"),
        ({"url": "file:///home/a/isonb", "dir_info": {}}, "/home/a/isonb/book"),
        (REPOSITORY, f"isonb-lab @ git+{URL}@{COMMIT}#subdirectory=book"),
        (REPOSITORY | {"subdirectory": "py"}, f"isonb-lab @ git+{URL}@{COMMIT}#subdirectory=py/book"),
        ({"url": f"{URL}/isonb-0.7.0-py3-none-any.whl", "archive_info": {}},
         f"isonb-lab @ {URL}/isonb_lab-0.7.0-py3-none-any.whl"),
    ],
)  # fmt: skip
def test_the_laboratory_comes_from_where_isonb_came(installed, direct, lab):
    installed(direct)
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
    root, result = PACKAGE.parent, []
    for folder, kinds in (
        ("isonb", ("*.py",)),
        ("book", ("*.md", "*.yml", "*.yaml", "*.py")),
        (".", ("*.md", "*.toml")),
    ):
        for kind in kinds:
            for file in (root / folder).rglob(kind) if folder != "." else root.glob(kind):
                text = file.read_text(encoding="utf-8")
                result += [file.name for line in text.splitlines() if "pip install" in line and BARE.search(line)]
    assert result == []
