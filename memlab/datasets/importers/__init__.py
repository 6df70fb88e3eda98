"""Exports of chat tools: an importer each, a generator of chat-log records over the files of an
export.

Each is registered in :data:`memlab.formats` with how its files are recognised
(:class:`memlab.registry.Format`). The first that recognises a file has it. What an importer leaves
out or changes it counts by kind, as every function called ``…_or_count_drop`` or ``…_and_count_…``
does; :func:`memlab.datasets.load` puts the counts into the issues of the dataset.

- ``character_ai``, ``chatgpt``, ``claude_ai``, ``claude_code``, ``copilot``, ``discord``,
  ``gemini``, ``letta``, ``librechat``, ``lm_studio``, ``mem0``, ``open_webui``,
  ``openai_messages``, ``sharegpt``, ``silly_tavern``, ``slack``, ``message_tables``, ``telegram``,
  ``whatsapp`` (with ``whatsapp_system_messages``, which reads ``whatsapp.toml``): a format each.
  ``langsmith_langfuse``: those of LangSmith and Langfuse. ``opentelemetry``,
  ``openai_realtime_api``: spans, and events of OpenAI's realtime API. ``agent_framework_messages``,
  ``transcripts_in_text``: what ``openai_messages`` rewrites: messages of libraries for agents, and
  conversations in one text.
- ``export_messages``, ``loose_json``, ``message_branches``, ``newest_first_lists``, ``html_text``:
  what they share.
- ``unknown_message_layouts``, ``user_and_thread_fields``, ``wrapped_conversations``,
  ``logged_model_calls``, ``batch_requests``, ``session_records``: messages of a layout that is not
  known: who says what and when, whose rows are, what stands within an object, what was asked and
  answered, and what a record repeats.
- ``unsupported_formats``: files that are known and not read. ``attached_chat_files``: files that
  people sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from memlab.datasets.importers import (
    attached_chat_files,
    character_ai,
    chatgpt,
    claude_ai,
    claude_code,
    copilot,
    discord,
    gemini,
    langsmith_langfuse,
    letta,
    librechat,
    lm_studio,
    mem0,
    message_tables,
    open_webui,
    openai_messages,
    openai_realtime_api,
    opentelemetry,
    sharegpt,
    silly_tavern,
    slack,
    telegram,
    whatsapp,
    wrapped_conversations,
)
from memlab.datasets.importers.export_messages import Message
from memlab.datasets.importers.unsupported_formats import explain_unsupported_format
from memlab.datasets.record_sources import Source
from memlab.registry import formats


def _register_importer(
    format_name: str,
    read_messages: Callable[[Source], Iterator[Message]],
    is_of_format: Callable[[Source], bool],
    **format_fields: Any,
) -> None:
    formats.register(
        read_messages, name=format_name, kind="export", detect=is_of_format, **format_fields
    )


_register_importer(
    "chatgpt",
    chatgpt.read_chatgpt_export,
    chatgpt.is_chatgpt_export,
    refuse=explain_unsupported_format,  # other tools write as it does
    sent=attached_chat_files.find_attachments_by_numbered_name,
)
_register_importer("claude_ai", claude_ai.read_claude_ai_export, claude_ai.is_claude_ai_export)
_register_importer(
    "claude_code",
    claude_code.read_claude_code_export,
    claude_code.is_claude_code_export,
    sent=attached_chat_files.find_attachments_in_own_folders,
)
_register_importer(
    "discord",
    discord.read_discord_export,
    discord.is_discord_export,
    sent=attached_chat_files.find_attachments_in_own_folders,
)
_register_importer("gemini", gemini.read_gemini_activity, gemini.is_gemini_activity)
_register_importer("copilot", copilot.read_copilot_history, copilot.is_copilot_history)
_register_importer("open_webui", open_webui.read_open_webui_export, open_webui.is_open_webui_export)
_register_importer("librechat", librechat.read_librechat_export, librechat.is_librechat_export)
_register_importer(
    "character_ai", character_ai.read_character_ai_export, character_ai.is_character_ai_export
)
_register_importer(
    "lm_studio", lm_studio.read_lm_studio_conversation, lm_studio.is_lm_studio_conversation
)
_register_importer(
    "silly_tavern", silly_tavern.read_silly_tavern_chat, silly_tavern.is_silly_tavern_chat
)
_register_importer("letta", letta.read_letta_export, letta.is_letta_export)
_register_importer(
    "langsmith", langsmith_langfuse.read_langsmith_export, langsmith_langfuse.is_langsmith_export
)
_register_importer(
    "langfuse", langsmith_langfuse.read_langfuse_export, langsmith_langfuse.is_langfuse_export
)
_register_importer(
    "opentelemetry",
    opentelemetry.read_opentelemetry_spans,
    opentelemetry.is_opentelemetry_export,
)
_register_importer(
    "openai_realtime", openai_realtime_api.read_realtime_events, openai_realtime_api.is_realtime_log
)
_register_importer(
    "telegram",
    telegram.read_telegram_export,
    telegram.is_telegram_export,
    sent=attached_chat_files.find_telegram_attachments,
)
_register_importer(
    "slack",
    slack.read_slack_export,
    slack.is_slack_export,
    sent=attached_chat_files.find_attachments_in_own_folders,
    beside=slack.TABLES,
)
_register_importer("mem0", mem0.read_mem0_dump, mem0.is_mem0_dump)
_register_importer(
    "table", message_tables.read_table_of_messages, message_tables.is_table_of_messages
)
_register_importer("sharegpt", sharegpt.read_sharegpt_conversations, sharegpt.is_sharegpt_file)
_register_importer(
    "openai_messages",
    openai_messages.read_openai_messages,
    openai_messages.is_openai_messages_file,
    guess=wrapped_conversations.may_hold_nested_conversations,
    refuse=explain_unsupported_format,  # many tools write roles and contents
)
_register_importer(
    "whatsapp",
    whatsapp.read_whatsapp_export,
    whatsapp.is_whatsapp_export,
    refuse=explain_unsupported_format,  # other tools write as it does
    sent=attached_chat_files.find_whatsapp_attachments,
)
