"""What kind of model a folder holds, and whose code it needs: read from its JSON files, nothing is
loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from memlab.errors import ModelError

ModelKind = Literal["dense", "static", "multi-vector"]

_LIBRARY = "sentence_transformers."
_MULTI_VECTOR = ("MultiVectorEncoder", "ColBERT")
"""``model_type`` of sentence-transformers 6, and of PyLate, whose files it reads."""

_ROUTERS = (".Router", ".Asym")


def read_json_table_or_empty(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds a table; an empty one where there is none."""
    json_value = _read_json_or_none(path)
    if isinstance(json_value, dict):
        return json_value
    return {}


def _read_json_or_none(json_path: Path) -> Any:
    try:
        return json.loads(json_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def read_folder_and_class_of_modules(model_folder: Path) -> list[tuple[str, str]]:
    """Give folder and class of the modules of sentence-transformers, in their order:
    ``modules.json``.
    """
    module_list = _read_json_or_none(model_folder / "modules.json")
    modules = []
    if isinstance(module_list, list):
        for module_row in module_list:
            with suppress(TypeError, KeyError):
                modules.append((str(module_row["path"]), str(module_row["type"])))
    return modules


def first_module_folder(model_folder: Path) -> Path:
    """Give the folder of the first module: the model's own, or an inner one such as
    ``0_Transformer``.
    """
    for folder, _ in read_folder_and_class_of_modules(model_folder)[:1]:
        return model_folder / folder
    return model_folder


def supported_kind_of_model_folder(model_folder: Path, model_name: str) -> ModelKind:
    """Say what kind of encoder a folder holds.

    :param model_name: of the model, for messages.
    :raises ModelError: for a model that gives no vectors of the kind that is compared here.
    """
    config = read_json_table_or_empty(model_folder / "config.json")
    stated_kind = str(
        read_json_table_or_empty(model_folder / "config_sentence_transformers.json").get(
            "model_type", ""
        )
    )
    architecture = _architecture_or_empty(config)
    if stated_kind in _MULTI_VECTOR or architecture == "HF_ColBERT":
        return "multi-vector"
    if stated_kind == "CrossEncoder" or _is_classifier(model_folder, architecture):
        raise ModelError(
            f"encoder {model_name} is a cross-encoder or a classifier: it scores pairs of texts "
            "and "
            "gives no vectors; "
            f"use it as a reranker: cross_encoder(model='{model_name}')"
        )
    if (
        stated_kind == "SparseEncoder"
        or _has_sparse_modules(model_folder)
        or _is_old_splade(model_folder, model_name)
    ):
        raise ModelError(
            f"encoder {model_name} is a sparse encoder (SPLADE): it weighs the words of a "
            "vocabulary and "
            "gives no dense vectors, and memlab has no index for its weights; choose a dense "
            "encoder or a ColBERT, or bm25 for words"
        )
    for _, module in read_folder_and_class_of_modules(model_folder):
        if module.endswith(_ROUTERS):
            raise ModelError(
                f"encoder {model_name} reads queries and documents by modules of their own "
                "(Router), "
                "which "
                "memlab does not; choose a model that has the same for both, or write a plug-in"
            )
    if config.get("model_type") == "model2vec":
        return "static"
    for _, module in read_folder_and_class_of_modules(model_folder)[:1]:
        if module.endswith(".StaticEmbedding"):
            return "static"
    return "dense"


def _architecture_or_empty(model_config: Mapping[str, Any]) -> str:
    """Give the class of transformers that a model was saved from."""
    architectures = model_config.get("architectures")
    if isinstance(architectures, list) and architectures:
        return str(architectures[0])
    return ""


def _is_classifier(model_folder: Path, architecture: str) -> bool:
    """Whether a model was saved with a head that scores texts, as cross-encoders were before they
    said so.
    """
    return architecture.endswith(
        "ForSequenceClassification"
    ) and not read_folder_and_class_of_modules(model_folder)


def _has_sparse_modules(model_folder: Path) -> bool:
    sparse_prefix = f"{_LIBRARY}sparse_encoder."
    return any(
        module.startswith(sparse_prefix)
        for _, module in read_folder_and_class_of_modules(model_folder)
    )


def _is_old_splade(model_folder: Path, model_name: str) -> bool:
    """Whether a model was published before sentence-transformers knew its kind: a language model,
    and the name.
    """
    if read_folder_and_class_of_modules(model_folder) or "splade" not in model_name.lower():
        return False
    return _architecture_or_empty(read_json_table_or_empty(model_folder / "config.json")).endswith(
        "ForMaskedLM"
    )


def own_code_name_or_empty(model_folder: Path) -> str:
    """Name the code of its own that a model needs; empty where there is none.

    That is a module that is none of sentence-transformers, a function of a ``Dense`` that is none
    of torch's, and ``auto_map`` in ``config.json``: transformers needs the last only where it does
    not know the architecture itself.
    """
    for _, module in read_folder_and_class_of_modules(model_folder):
        if not module.startswith((_LIBRARY, "pylate.")):
            return module
    function = foreign_activation_name_or_empty(model_folder)
    if function:
        return function
    auto_map = read_json_table_or_empty(model_folder / "config.json").get("auto_map")
    if not isinstance(auto_map, dict):
        return ""
    return str(next(iter(auto_map.values()), ""))


def foreign_activation_name_or_empty(model_folder: Path) -> str:
    """Name the activation function of a ``Dense`` that is none of torch's.

    Empty where there is none.

    sentence-transformers takes the hyperbolic tangent in its place and only logs it.
    """
    for folder, module in read_folder_and_class_of_modules(model_folder):
        if module.endswith(".Dense"):
            config = read_json_table_or_empty(model_folder / folder / "config.json")
            function = str(config.get("activation_function", "torch."))
            if not function.startswith("torch."):
                return function
    return ""


def known_model_names(model_folder: Path, model_name: str) -> list[str]:
    """Give the names by which a model is known: its own, and those in its configuration."""
    config = read_json_table_or_empty(model_folder / "config.json")
    return [model_name, str(config.get("_name_or_path", "")), str(config.get("model_type", ""))]
