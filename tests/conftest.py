"""One thread (the suite runs in parallel processes) and property tests that do not depend on the clock or on luck."""

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile(
    "isonb", deadline=None, derandomize=True, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("isonb")

collect_ignore_glob = ["*conftest.py"]  # plugins, not modules to look for doctests in
