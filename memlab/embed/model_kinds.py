"""What kind of model a folder holds, and whose code it needs: read from its JSON files, nothing is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from memlab.errors import ModelError

ModelKind = Literal["dense", "static", "multi-vector"]

_LIBRARY = "sentence_transformers."
_MULTI_VECTOR = ("MultiVectorEncoder", "ColBERT")
"""``model_type`` of sentence-transformers 6, and of PyLate, whose files it reads."""


def read_json(path: Path) -> Any:
    """Read a JSON file; an empty table where there is none, or no JSON in it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _read_table(path: Path) -> dict[str, Any]:
    found = read_json(path)
    return found if isinstance(found, dict) else {}


def read_modules(path: Path) -> list[dict[str, str]]:
    """Give the rows of ``modules.json``: the modules of sentence-transformers, in their order."""
    listed = read_json(path / "modules.json")
    if not isinstance(listed, list):
        return []
    tables = [row for row in listed if isinstance(row, dict)]
    return [{name: str(row.get(name, "")) for name in ("path", "type")} for row in tables]


def module_folder(path: Path) -> Path:
    """Give the folder of the first module: the model's own, or an inner one such as ``0_Transformer``."""
    modules = read_modules(path)
    if modules and (path / modules[0]["path"]).is_dir():
        return path / modules[0]["path"]
    return path


def model_kind(path: Path, name: str) -> ModelKind:
    """Say what kind of encoder a folder holds.

    :param name: of the model, for messages.
    :raises ModelError: for a model that gives no vectors of the kind that is compared here.
    """
    config = _read_table(path / "config.json")
    architectures = [str(each) for each in config.get("architectures") or ()]
    stated = str(_read_table(path / "config_sentence_transformers.json").get("model_type", ""))
    modules = [row["type"] for row in read_modules(path)]
    if stated in _MULTI_VECTOR or "HF_ColBERT" in architectures:
        return "multi-vector"
    if stated == "CrossEncoder":
        raise ModelError(
            f"encoder {name} is a cross-encoder: it scores pairs of texts and gives no vectors; "
            f"use it as a reranker: cross_encoder(model='{name}')"
        )
    if _is_sparse(stated, modules, architectures, name):
        raise ModelError(
            f"encoder {name} is a sparse encoder (SPLADE): it weighs the words of a vocabulary and "
            "gives no dense vectors, and memlab has no index for its weights; choose a dense encoder "
            "or a ColBERT, or bm25 for words"
        )
    is_static = bool(modules) and modules[0].endswith(".StaticEmbedding")
    if is_static or config.get("model_type") == "model2vec":
        return "static"
    return "dense"


def _is_sparse(stated: str, modules: list[str], architectures: list[str], name: str) -> bool:
    if stated == "SparseEncoder":
        return True
    for module in modules:
        if module.startswith(f"{_LIBRARY}sparse_encoder."):
            return True
    # Published before sentence-transformers knew them: a language model's head, and the name.
    has_head = any(each.endswith("ForMaskedLM") for each in architectures)
    return not modules and has_head and "splade" in name.lower()


def own_code(path: Path) -> str:
    """Name the code of its own that a model needs; empty where there is none.

    That is a module that is none of sentence-transformers, a function of a ``Dense`` that is none
    of torch's, and ``auto_map`` in ``config.json``: transformers needs the last only where it does
    not know the architecture itself.
    """
    for row in read_modules(path):
        if row["type"] and not row["type"].startswith((_LIBRARY, "pylate.")):
            return row["type"]
    function = foreign_function(path)
    if function:
        return function
    mapped = _read_table(path / "config.json").get("auto_map")
    if isinstance(mapped, dict) and mapped:
        return str(next(iter(mapped.values())))
    return ""


def foreign_function(path: Path) -> str:
    """Name the activation function of a ``Dense`` that is none of torch's; empty where there is none.

    sentence-transformers takes the hyperbolic tangent in its place and only logs it.
    """
    for row in read_modules(path):
        if row["type"].endswith(".Dense"):
            config = _read_table(path / row["path"] / "config.json")
            function = str(config.get("activation_function", "torch."))
            if not function.startswith("torch."):
                return function
    return ""


def original_names(path: Path, name: str) -> list[str]:
    """Give the names by which a model is known: its own, and those in its configuration."""
    config = _read_table(path / "config.json")
    found = [name, str(config.get("_name_or_path", "")), str(config.get("model_type", ""))]
    return [each for each in found if each]
