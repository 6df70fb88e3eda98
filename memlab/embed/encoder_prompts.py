"""Prompts: what is put before queries and documents, and the families of models that are known to
need it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memlab.config import FILE, EmbedSettings
from memlab.embed.model_kinds import known_model_names
from memlab.errors import warn_user


@dataclass(frozen=True)
class PromptFamily:
    """Models that were trained with prompts, which their files often leave out.

    :param pattern: found in the name of each.
    :param query: what its authors put before a query.
    :param document: what they put before a document.
    """

    pattern: str
    query: str
    document: str = ""


_SEARCH = "Represent this sentence for searching relevant passages: "
_INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
)
FAMILIES = (
    PromptFamily(
        r"\be5\b.*\binstruct\b|\be5-mistral\b|\bgte-qwen|\bqwen3-embedding\b", _INSTRUCTION
    ),
    PromptFamily(r"\be5\b", "query: ", "passage: "),
    PromptFamily(r"\bbge-(small|base|large)-zh\b", "为这个句子生成表示以用于检索相关文章："),
    PromptFamily(r"\bbge-(small|base|large)\b", _SEARCH),
    PromptFamily(r"\barctic-embed\b.*-v2", "query: "),
    PromptFamily(r"\barctic-embed\b|\bmxbai-embed-large\b", _SEARCH),
    PromptFamily(r"\bnomic-(embed|bert)\b", "search_query: ", "search_document: "),
    PromptFamily(r"\bmodernbert-embed\b", "search_query: ", "search_document: "),
    PromptFamily(r"\bembedding-?gemma\b", "task: search result | query: ", "title: none | text: "),
)
"""By their model cards, the more special first. bge-m3 and gte take none."""

_warned: set[str] = set()


def choose_query_and_document_prompt(
    prompts_by_name: Mapping[str, str | None],
    default_name: str | None,
    model_settings: EmbedSettings,
) -> tuple[str, str]:
    """Choose the prompts of queries and documents: those of the settings, else those of the model's
    files.

    sentence-transformers itself never reads ``passage`` and ``corpus``, nor the default prompt, for
    documents: it always has an empty prompt ``document``, which it finds first.

    :param prompts_by_name: by name, as the model's files have them.
    :param default_name: the name of the one that stands for those that are missing.

    >>> from memlab.config import EmbedSettings
    >>> from memlab.embed.encoder_prompts import choose_query_and_document_prompt
    >>> files = {"query": "query: ", "document": "", "passage": "passage: "}
    >>> choose_query_and_document_prompt(files, None, EmbedSettings(path="e5"))
    ('query: ', 'passage: ')
    """
    chosen_prompts = []
    for given_prompt, names in (
        (model_settings.query_prompt, ("query", default_name)),
        (model_settings.document_prompt, ("document", "passage", "corpus", default_name)),
    ):
        known_prompts = [
            prompts_by_name[name] for name in names if name and prompts_by_name.get(name)
        ]
        if given_prompt is not None:
            known_prompts = [given_prompt]
        chosen_prompts.append(known_prompts[0] if known_prompts else "")
    query, document = chosen_prompts
    return query or "", document or ""


def find_prompt_family(model_folder: Path, model_name: str) -> PromptFamily | None:
    """Find the family of a model that needs prompts, by its name and those in its configuration."""
    for known_name in known_model_names(model_folder, model_name):
        plain_name = known_name.lower().replace("_", "-")
        for family in FAMILIES:
            if re.search(family.pattern, plain_name):
                return family
    return None


def warn_of_missing_prompts(
    model_folder: Path, model_name: str, model_settings: EmbedSettings
) -> None:
    """Warn once of a model that has no prompts and whose family needs them.

    :param model_settings: its settings; a prompt that they set, an empty one too, is meant.
    """
    if (model_settings.query_prompt, model_settings.document_prompt) != (None, None):
        return
    family = find_prompt_family(model_folder, model_name)
    if family is None or model_name in _warned:
        return
    _warned.add(model_name)
    setting_lines = [f"query_prompt = {_quote_as_toml(family.query)}"]
    if family.document:
        setting_lines.append(f"document_prompt = {_quote_as_toml(family.document)}")
    table_name = re.sub(r"[^\w-]+", "-", model_name.rpartition("/")[2])
    warn_user(
        f"encoder {model_name} has no prompts in its files, and models of its family were trained "
        "with "
        f"them; write in {FILE}: [embed.{table_name}] with path, {' and '.join(setting_lines)}, "
        "and name it as encoder "
        f'{table_name!r}; query_prompt = "" says that none is meant'
    )


def _quote_as_toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
