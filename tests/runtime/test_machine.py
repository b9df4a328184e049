"""What a process says of the machine it runs on."""

import os
import platform
from importlib import metadata

import torch

from isonb_lab.runtime.machine import hardware, versions


def test_versions_are_those_installed():
    result = versions(["numpy", "no-such-package"])
    assert result == {"python": platform.python_version(), "numpy": metadata.version("numpy"), "no-such-package": None}


def test_hardware_is_that_of_this_process():
    result = hardware()
    assert list(result) == sorted(result)
    assert result["threads"] == torch.get_num_threads()
    assert 1 <= result["cores"] <= os.cpu_count()
    assert result["cpu"]
    assert not {os.uname().nodename, os.environ.get("USER")} & set(map(str, result.values()))
