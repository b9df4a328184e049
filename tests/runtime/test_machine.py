"""What a process says of the machine it runs on."""

import os
import platform
from importlib import metadata

import torch

from isonb.runtime.machine import hardware, versions


def test_versions_are_those_installed():
    found = versions(["numpy", "no-such-package"])
    assert found == {"python": platform.python_version(), "numpy": metadata.version("numpy"), "no-such-package": None}


def test_hardware_is_that_of_this_process():
    found = hardware()
    assert list(found) == sorted(found)
    assert found["threads"] == torch.get_num_threads()
    assert 1 <= found["cores"] <= os.cpu_count()
    assert found["cpu"]
    assert not {os.uname().nodename, os.environ.get("USER")} & set(map(str, found.values()))
