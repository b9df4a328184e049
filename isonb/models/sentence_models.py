"""Models of sentence-transformers, built from what their folders hold as data; no code of a folder is ever run.

The library imports a module's class by the name that ``modules.json`` gives, and from the folder itself where it may.
Here each class is known before it is looked for (:mod:`isonb.models.module_list`), what a configuration may say
is a closed list too, pickled weights are not read, and the library is given the finished modules.
"""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isonb.checks import is_whole
from isonb.errors import in_one_line, needs
from isonb.models.catalogue import EMBEDDED, WHOLE, embedded_folder, fingerprint
from isonb.models.locate import lacks, place_of_modules, reject, written
from isonb.models.module_list import LIBRARY, OURS, ROUTERS, Module, read_json, read_modules, routes_of
from isonb.models.text_models import check_attention, check_tokenizer, quiet, read_any_config, reads_text

USAGE = "config_sentence_transformers.json"
SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")

# What the configuration of a Transformer may say, by the names of this and of earlier releases of the library.
FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
CONFIGS = [f"sentence_{family}_config.json" for family in FAMILIES]
SETTINGS = {
    *("do_lower_case", "max_seq_length", "modality_config", "module_output_name", "processing_kwargs"),
    *("document_length", "query_length", "query_expansion", "transformer_task", "unpad_inputs"),
}
KWARGS = ("model_args", "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs")
VALUES = {
    *("add_pooling_layer", "attn_implementation", "dtype", "torch_dtype"),
    *("do_lower_case", "model_max_length", "padding_side", "use_fast"),
    "trust_remote_code",  # the library takes it out
}
WEIGHTED = {"Dense", "LayerNorm", "LSTM", "CNN", "StaticEmbedding", "WeightedLayerPooling", "WordEmbeddings", *OURS}
METHODS = {"forward", *(f"get_{what}_features" for what in ("audio", "image", "multimodal", "text", "video", "vision"))}
WORD_TOKENIZERS = {
    f"sentence_transformers.{place}.{name}Tokenizer"
    for name in ("Phrase", "Whitespace")
    for place in (f"sentence_transformer.modules.tokenizer.{name.lower()}", f"models.tokenizer.{name}Tokenizer")
}


def load_sentences(name: str | Path, *, device: str = "cpu") -> tuple[Any, str] | None:
    """The ``SentenceTransformer`` called ``name`` and its fingerprint; None where that has no ``modules.json``.

    What its ``encode`` gives is the model. ``name`` is looked for as by :func:`isonb.models.loading.load`.
    Weights are safetensors, in the numbers that they were saved in, and no code of the folder is run. Raises
    :class:`~isonb.models.catalogue.ModelError` for modules that are neither the library's nor ours, for options
    and activations that aren't known, for pickled weights, and for a folder that the library can't load.

    >>> model, fingerprint = load_sentences("minilm")
    >>> [type(module).__name__ for module in model], len(fingerprint)
    (['Transformer', 'Pooling', 'Normalize'], 64)
    """
    place = place_of_modules(name)
    if place is None:
        return None
    folder, commit = place
    if (text := written(name)) in EMBEDDED:
        embedded_folder(EMBEDDED[text])
    with needs("isonb.audit of a folder of sentence-transformers", "audit"):
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.util.environment import check_version_requirements
    try:
        listed = read_modules(folder)
        for module in listed:
            _check(folder, module)
        usage = read_json(folder / USAGE)
        how = _usage(usage)
    except Exception as error:  # of a file that can't be read, of a configuration that isn't one
        reject(name, in_one_line(error), error)
    try:
        with quiet():
            check_version_requirements(usage.get("requirements"), source=str(folder))
            modules = OrderedDict((module.name, _built(folder, module)) for module in listed)
            model = SentenceTransformer(modules=modules, device=str(device), local_files_only=True, **how)
            model.module_kwargs = OrderedDict((module.name, list(module.kwargs)) for module in listed)
            model.encode(["a word"], show_progress_bar=False)  # some values are wrong only where they are used
    except Exception as error:  # a wrong value in any file of the folder comes as an error of another kind
        reject(name, f"sentence-transformers can't load {folder}: {in_one_line(error)}", error)
    return model, commit or fingerprint(folder)


def _usage(saved: dict[str, Any]) -> dict[str, Any]:
    """How the folder says that its model is used: prompts, similarity and width, as arguments of the library."""
    kind = saved.get("model_type", "SentenceTransformer")
    if kind != "SentenceTransformer":
        raise ValueError(f"it is saved as a {kind}, which gives no sentence vectors; pass a function that does")
    prompts, usual = saved.get("prompts") or {}, saved.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise ValueError(f"its {USAGE} must give prompts as texts by name")
    if usual is not None and usual not in prompts:
        raise ValueError(f"its {USAGE} must give the prompt that it names as the default, {usual!r}")
    width, similarity = saved.get("truncate_dim"), saved.get("similarity_fn_name")
    if width is not None and (not is_whole(width) or width < 1):
        raise ValueError(f"its {USAGE} must give truncate_dim as a number from 1")
    return {
        "prompts": prompts,
        "default_prompt_name": usual,
        "truncate_dim": width,
        "similarity_fn_name": similarity if similarity in SIMILARITIES else None,
    }


def _built(folder: Path, module: Module) -> Any:
    """The module with its weights. Those of a Router are looked up in the same table."""
    more = {}
    if module.class_name in ROUTERS:
        _, routed = routes_of(folder / module.path)
        more["module_classes"] = {inner.kind: _class(inner.class_name) for inner in routed}
    return _class(module.class_name).load(
        str(folder), subfolder=module.path, local_files_only=True, model_kwargs={"use_safetensors": True}, **more
    )


def _class(name: str) -> Any:
    place = OURS[name] if name in OURS else f"sentence_transformers.{LIBRARY[name]}"
    return getattr(importlib.import_module(place), name)


def _check(folder: Path, module: Module) -> None:
    """ValueError for a module that isn't known, for pickled weights, and for a configuration that isn't known."""
    place, name = folder / module.path, module.class_name
    try:
        if name in CHECKS:
            CHECKS[name](place)
        if name in WEIGHTED and not (place / WHOLE).is_file():
            raise ValueError(
                f"it has no {WHOLE}, and pickled weights aren't read, since they can hold code. "
                "If you trust them, load the model yourself and save it again: SentenceTransformer(folder).save(new)"
            )
    except ValueError as error:
        raise ValueError(f"its module {module.path}: {error}" if module.path else str(error)) from error


def _check_dense(place: Path) -> None:
    from torch.nn.modules import activation

    activations = {f"{activation.__name__}.{name}" for name in activation.__all__} | {
        "torch.nn.modules.linear.Identity"
    }
    named = read_json(place / "config.json").get("activation_function", "torch.nn.modules.linear.Identity")
    if named not in activations:
        raise ValueError(f"it has the activation {named}, which is none of torch.nn")


def _check_words(place: Path) -> None:
    named = read_json(place / "wordembedding_config.json").get("tokenizer_class")
    if named not in WORD_TOKENIZERS:
        raise ValueError(f"it has the tokenizer {named}, which is none of sentence-transformers")


def _check_router(place: Path) -> None:
    for module in routes_of(place)[1]:
        _check(place, module)


def _check_transformer(place: Path) -> None:
    if why := lacks(place):
        raise ValueError(f"it {why}")
    for name in CONFIGS:
        _check_settings(name, read_json(place / name))
    config = read_any_config(place)
    check_tokenizer(place)
    if not reads_text(config):
        raise ValueError(f"{config.model_type} is no model of text")


def _check_settings(file: str, saved: dict[str, Any]) -> None:
    """ValueError for a setting of a Transformer that isn't known: some name files, code or kernels of the hub."""
    odd = [key for key in saved if key not in SETTINGS and key not in KWARGS and saved[key] is not None]
    for key in KWARGS:
        more = saved.get(key) or {}
        odd += [f"{key}.{inner}" for inner in more if inner not in VALUES] if isinstance(more, dict) else [key]
        check_attention(more)
    if odd:
        raise ValueError(f"its {file} sets {odd[0]}, which isn't known; load the model yourself and pass it")
    methods = [way.get("method") for way in (saved.get("modality_config") or {}).values()]
    if strange := [name for name in methods if name not in METHODS]:
        raise ValueError(f"its {file} calls {strange[0]!r} of the model, which gives no vectors")


CHECKS: dict[str, Callable[[Path], None]] = {
    "Transformer": _check_transformer,
    "CLIPModel": _check_transformer,
    "Dense": _check_dense,
    "Router": _check_router,
    "Asym": _check_router,
    "WordEmbeddings": _check_words,
}
