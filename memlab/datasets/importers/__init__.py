"""Exports of chat tools: an importer each, a generator of chat-log records over the files of an
export.

Each is registered in :data:`memlab.formats` with how its files are recognised
(:class:`memlab.registry.Format`). The first that recognises a file has it. What an importer leaves
out or changes it counts by kind; :func:`memlab.datasets.load` puts the counts into the issues of
the dataset.

- ``character_ai``, ``chatgpt``, ``claude_ai``, ``claude_code``, ``copilot``, ``discord``,
  ``gemini``, ``letta``, ``librechat``, ``lm_studio``, ``mem0``, ``open_webui``,
  ``openai_messages``, ``sharegpt``, ``silly_tavern``, ``slack``, ``table``, ``telegram``,
  ``whatsapp`` (with ``whatsapp_words``, which reads ``whatsapp.toml``): a format each.
  ``traces``: those of LangSmith and Langfuse. ``opentelemetry``, ``realtime``: spans, and events
  of OpenAI's realtime API. ``framework_messages``, ``transcripts``: what ``openai_messages``
  rewrites: messages of libraries for agents, and conversations in one text.
- ``export_messages``, ``loose_json``, ``branches``, ``newest_first``, ``html_text``: what they
  share.
- ``message_fields``, ``conversation_rows``, ``wrapped_conversations``,
  ``logged_calls``, ``batches``, ``session_records``: messages of a layout that is not known: who
  says what and when, whose rows are, what stands within an object, what was asked and answered,
  and what a record repeats.
- ``foreign_files``: files that are known and not read. ``sent_files``: files that people sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from memlab.datasets.importers import (
    character_ai,
    chatgpt,
    claude_ai,
    claude_code,
    copilot,
    discord,
    gemini,
    letta,
    librechat,
    lm_studio,
    mem0,
    open_webui,
    openai_messages,
    opentelemetry,
    realtime,
    sent_files,
    sharegpt,
    silly_tavern,
    slack,
    table,
    telegram,
    traces,
    whatsapp,
    wrapped_conversations,
)
from memlab.datasets.importers.export_messages import Message
from memlab.datasets.importers.foreign_files import explain_refusal
from memlab.datasets.source import Source
from memlab.registry import formats


def _register(
    name: str,
    read_format: Callable[[Source], Iterator[Message]],
    detect: Callable[[Source], bool],
    **more: Any,
) -> None:
    formats.register(read_format, name=name, kind="export", detect=detect, **more)


_register(
    "chatgpt",
    chatgpt.read_chatgpt_export,
    chatgpt.is_chatgpt_export,
    refuse=explain_refusal,  # other tools write as it does
    sent=sent_files.find_numbered_files,
)
_register("claude_ai", claude_ai.read_claude_ai_export, claude_ai.is_claude_ai_export)
_register(
    "claude_code",
    claude_code.read_claude_code_export,
    claude_code.is_claude_code_export,
    sent=sent_files.find_files_in_folders,
)
_register(
    "discord",
    discord.read_discord_export,
    discord.is_discord_export,
    sent=sent_files.find_files_in_folders,
)
_register("gemini", gemini.read_gemini_activity, gemini.is_gemini_activity)
_register("copilot", copilot.read_copilot_history, copilot.is_copilot_history)
_register("open_webui", open_webui.read_open_webui_export, open_webui.is_open_webui_export)
_register("librechat", librechat.read_librechat_export, librechat.is_librechat_export)
_register(
    "character_ai", character_ai.read_character_ai_export, character_ai.is_character_ai_export
)
_register("lm_studio", lm_studio.read_lm_studio_conversation, lm_studio.is_lm_studio_conversation)
_register("silly_tavern", silly_tavern.read_silly_tavern_chat, silly_tavern.is_silly_tavern_chat)
_register("letta", letta.read_letta_export, letta.is_letta_export)
_register("langsmith", traces.read_langsmith_export, traces.is_langsmith_export)
_register("langfuse", traces.read_langfuse_export, traces.is_langfuse_export)
_register(
    "opentelemetry",
    opentelemetry.read_opentelemetry_spans,
    opentelemetry.is_opentelemetry_export,
)
_register("openai_realtime", realtime.read_realtime_events, realtime.is_realtime_log)
_register(
    "telegram",
    telegram.read_telegram_export,
    telegram.is_telegram_export,
    sent=sent_files.find_telegram_files,
)
_register(
    "slack",
    slack.read_slack_export,
    slack.is_slack_export,
    sent=sent_files.find_files_in_folders,
    beside=slack.TABLES,
)
_register("mem0", mem0.read_mem0_dump, mem0.is_mem0_dump)
_register("table", table.read_table_of_messages, table.is_table_of_messages)
_register("sharegpt", sharegpt.read_sharegpt, sharegpt.is_sharegpt_list)
_register(
    "openai_messages",
    openai_messages.read_openai_messages,
    openai_messages.is_openai_list,
    guess=wrapped_conversations.holds_conversations,
    refuse=explain_refusal,  # many tools write roles and contents
)
_register(
    "whatsapp",
    whatsapp.read_whatsapp_export,
    whatsapp.is_whatsapp_export,
    refuse=explain_refusal,  # other tools write as it does
    sent=sent_files.find_whatsapp_files,
)
