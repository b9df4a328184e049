"""Files are whole or not there; what the machine is."""

import os
import platform
from importlib import metadata

import pytest
import torch

from isonb.runtime.files import DiskError, replace, update
from isonb_lab.runtime.machine import hardware, versions


def test_the_file_and_its_folder_are_made_and_nothing_else(tmp_path):
    path = tmp_path / "deep" / "file.bin"
    replace(path, b"one")
    replace(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_the_same_text_is_not_written_again(tmp_path):
    path = tmp_path / "page.md"
    assert update(path, "a cône\n")
    os.utime(path, ns=(1, 1))
    assert not update(path, "a cône\n")
    assert path.stat().st_mtime_ns == 1
    assert update(path, "another\n")
    assert path.read_text(encoding="utf-8") == "another\n"


def test_what_the_disk_refuses_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    replace(path, b"old")
    with pytest.raises(DiskError, match=r"the disk must take new; got .*\. Check the folder"):
        replace(path / "new", b"")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_versions_and_hardware_are_those_of_this_process():
    python, numpy = platform.python_version(), metadata.version("numpy")
    assert versions(["numpy", "no-such-package"]) == {"python": python, "numpy": numpy, "no-such-package": None}
    result = hardware()
    assert result["threads"] == torch.get_num_threads()
    assert 1 <= result["cores"] <= os.cpu_count()
    assert result["cpu"]
    assert not {os.uname().nodename, os.environ.get("USER")} & set(map(str, result.values()))
