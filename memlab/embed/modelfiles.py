"""What a model's files say about how to use it, and where the files come from."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlab.embed.pooling import MODES
from memlab.errors import ModelError
from memlab.files import sha256

logger = logging.getLogger(__name__)

HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+(@[\w./-]+)?")
"""How a hub model is named: owner/name, or owner/name@revision."""

_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_LEGACY = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class ModelConfig:
    """How a model wants to be used.

    :param pooling: modes of :data:`memlab.embed.pooling.MODES`, in the order in which they are concatenated.
    :param pooling_found: false where the files do not say and mean pooling is assumed.
    :param include_prompt: whether the prompt's own tokens are pooled.
    :param max_length: in tokens; ``None`` leaves it to the tokenizer.
    :param lower_case: whether texts are lower-cased before the tokenizer.
    """

    pooling: tuple[str, ...] = ("mean",)
    pooling_found: bool = False
    include_prompt: bool = True
    normalize: bool = False
    query_prompt: str = ""
    document_prompt: str = ""
    max_length: int | None = None
    lower_case: bool = False


def read_config(path: Path) -> ModelConfig:
    """Read pooling, prompts and maximum length of a model directory.

    :param path: a directory that sentence-transformers or transformers saved.
    :raises ModelError: when a file cannot be read, or asks for a module or a pooling that memlab does not have.
    """
    if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
        found = ", ".join(sorted(p.name for p in path.iterdir())[:6]) or "nothing"
        raise ModelError(f"{path} is no model: it holds {found}; expected config.json, a tokenizer and weights")
    modules = _modules(path)
    prompts = _prompts(path)
    sentence = _sentence_config(path)
    pooling = modules.get("Pooling")
    if pooling is None:
        logger.warning("%s does not say how to pool its token vectors; mean pooling is assumed", path.name)
    settings = _json(pooling / "config.json", dict, optional=False) if pooling is not None else {}
    return ModelConfig(
        pooling=_pooling(settings, pooling) if pooling is not None else ("mean",),
        pooling_found=pooling is not None,
        include_prompt=settings.get("include_prompt", True),
        normalize="Normalize" in modules,
        query_prompt=prompts[0],
        document_prompt=prompts[1],
        max_length=sentence.get("max_seq_length"),
        lower_case=bool(sentence.get("do_lower_case")),
    )


def _json(path: Path, kind: type, *, optional: bool = True) -> Any:
    """Read a JSON file that holds a value of one type; a file that may be missing is then empty."""
    if optional and not path.is_file():
        return kind()
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({error}); fetch the model again") from error
    if not isinstance(value, kind):
        raise ModelError(f"{path}: found {type(value).__name__}, expected {kind.__name__}; fetch the model again")
    return value


def _modules(path: Path) -> dict[str, Path]:
    """Give the directory of each module by its class name; only a plain stack of three is known."""
    found: dict[str, Path] = {}
    listed = _json(path / "modules.json", list)
    if not all(isinstance(m, dict) and {"path", "type"} <= m.keys() for m in listed):
        raise ModelError(f"{path / 'modules.json'}: expected a list of modules, each with path and type")
    for module in listed:
        name = module["type"].rsplit(".", 1)[-1]
        if name not in ("Transformer", "Pooling", "Normalize"):
            raise ModelError(
                f"{path / 'modules.json'}: module {module['type']!r}; memlab knows Transformer, Pooling and Normalize: "
                "serve this model behind an endpoint (endpoint:NAME) or choose another"
            )
        if name == "Transformer" and module["path"]:
            raise ModelError(f"{path / 'modules.json'}: the transformer is in {module['path']!r}, expected at the top")
        found[name] = path / module["path"]
    return found


def _pooling(settings: dict[str, Any], directory: Path) -> tuple[str, ...]:
    named = settings.get("pooling_mode")
    if named is None:
        modes = tuple(mode for key, mode in _LEGACY.items() if settings.get(key)) or ("mean",)
    else:
        modes = (named,) if isinstance(named, str) else tuple(named)
    unknown = [m for m in modes if m not in MODES]
    unknown += [k for k, on in settings.items() if on is True and k.startswith("pooling_mode_") and k not in _LEGACY]
    if unknown:
        raise ModelError(f"{directory / 'config.json'}: pooling {unknown[0]!r}; memlab knows {', '.join(MODES)}")
    return modes


def _prompts(path: Path) -> tuple[str, str]:
    config = _json(path / "config_sentence_transformers.json", dict)
    prompts = {k: v for k, v in (config.get("prompts") or {}).items() if v is not None}
    default = prompts.get(config.get("default_prompt_name"), "")
    document = (prompts[k] for k in ("document", "passage", "corpus") if k in prompts)
    return prompts.get("query", default), next(document, default)


def _sentence_config(path: Path) -> dict[str, Any]:
    kinds = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    names = (path / f"sentence_{kind}_config.json" for kind in kinds)
    config = _json(next((p for p in names if p.is_file()), path / "sentence_bert_config.json"), dict)
    length = config.get("max_seq_length")
    if length is not None and not (isinstance(length, int) and length > 0):
        raise ModelError(f"{path}: max_seq_length is {length!r}; expected a whole number of tokens above 0")
    return config


def weights_digest(path: Path) -> str:
    """Give the sha256 of a model's weights; of several shards, of all in order of name.

    Reading 90 MB takes a tenth of a second; a file that has not changed is read once in a process.

    :raises ModelError: when the directory holds no weights.
    """
    for pattern in _WEIGHTS:
        files = sorted(path.glob(pattern))
        if files:
            digests = [sha256(path) for path in files]
            return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    raise ModelError(f"{path} holds no weights; expected {' or '.join(_WEIGHTS)}")


def fetch(spec: str, *, what: str = "encoder") -> Path:
    """Find a hub model in the hub's local cache, or download it there.

    :param spec: ``owner/name`` or ``owner/name@revision``.
    :param what: the kind of model, for messages.
    :returns: a directory named after the revision.
    :raises ModelError: when it is neither cached nor to be had.
    """
    from huggingface_hub import snapshot_download

    repo, _, revision = spec.partition("@")
    options: dict[str, Any] = {
        "repo_id": repo,
        "revision": revision or None,
        "allow_patterns": ["*.json", "*.txt", "*.model", "model*.safetensors"],
        "ignore_patterns": ["onnx/*", "openvino/*", "*.onnx"],
    }
    try:
        path = _cached(snapshot_download, options)
        if path is None:
            path = Path(snapshot_download(**options))
        if not any(path.glob(_WEIGHTS[0])):
            options["allow_patterns"].append(_WEIGHTS[1])
            path = Path(snapshot_download(**options))
    except Exception as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise ModelError(
            f"no {what} {spec!r}: there is no such directory, and the hub did not give it "
            f"({type(error).__name__}: {reason}); check the name and the network, or download the model elsewhere and "
            "give its directory"
        ) from error
    return path


def _cached(snapshot_download: Any, options: dict[str, Any]) -> Path | None:
    try:
        path = Path(snapshot_download(**options, local_files_only=True))
    except Exception:
        return None
    return path if any(p for w in _WEIGHTS for p in path.glob(w)) else None
