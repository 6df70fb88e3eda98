"""Files that are known and that no importer reads, by how they begin, with what to do about
each.
"""

from __future__ import annotations

import re

from memlab.datasets.importers.whatsapp import LEVEL
from memlab.datasets.record_sources import Source

_HTML = r"(?s)\s*<.*"
_SECOND = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_KAKAOTALK = (
    r"[^[{:\n]*카카오톡 대화|KakaoTalk Chats|\d+[년.] \d+[월.] \d+[일.] 오[전후] [\d:]+[,\r\n]"
)
_DISCORD = "export it again with --format Json"
_WRITE = "write it as a chat log (docs/conversations.md)"
_CLINE = "what a window of Cline or Roo Code shows"
_EXPORT = "export the chat as text or JSON from its tool"
_BEGINNINGS = (
    (r"SQLite format 3\0", "a database of SQLite", _EXPORT),
    (r"%PDF-", "a PDF", _EXPORT),
    (
        r"\x1f.\x08|BZh|7z..'|Rar!",
        "a packed archive other than ZIP",
        "unpack it, and give the folder",
    ),
    (r"PK\x03\x04", "a ZIP archive within another, or broken", "unpack it, and give the folder"),
    (
        rf"{_HTML}(?:tgme|history|Exported Data|Telegram)",
        "Telegram's export in HTML",
        "export it again as JSON",
    ),
    (rf"{_HTML}(?:chatlog__|DiscordChatExporter)", "DiscordChatExporter's HTML", _DISCORD),
    (
        rf"{_HTML}(?:ChatGPT|jsonData)",
        "ChatGPT's chat.html",
        "give the whole ZIP, or conversations.json of it",
    ),
    (r"(?s)\s*<(?:!doctype html|html)", "a web page", _EXPORT),
    (
        r'(?s)\s*\{.{0,400}?"data_files":.*"export_url":',
        "a list of Claude's ZIPs",
        "give the ZIPs themselves",
    ),
    (r"={20,}\s*\n(?:Guild|Server): ", "DiscordChatExporter's text", _DISCORD),
    (r"AuthorID,Author,Date,Content", "DiscordChatExporter's CSV", _DISCORD),
    (
        r"ID,Timestamp,Contents,Attachments",
        "Discord's own data package, your half alone",
        "use DiscordChatExporter",
    ),
    (r"\[?\d[\d:./T -]{3,24}\]? <[^<>\n]{1,30}> ", "a log of IRC", _WRITE),
    (r"\[[\d:.T+ -]{19,35}\] \w+\.[A-Z]{4,9}: ", "the log of a program", _WRITE),
    (
        rf"\[?{_SECOND}[\d:.,+Z]*\]? (?:- )?(?:[\w.]+ - )*{LEVEL}",
        "the log of a program",
        _WRITE,
    ),
    (r"\[LINE\]", "LINE's export", _WRITE),
    (r"消息记录", "QQ's export", _WRITE),
    (rf"{_SECOND} [^\n:]{{1,40}}\n\S", "WeChat's or QQ's export as text", _WRITE),
    (r"[A-Z][a-z]{2} \d\d, \d{4} +\d?\d:\d\d:\d\d [AP]M.*\n\S", "a chat of iMessage", _WRITE),
    (r"# aider chat started", "a history of Aider", _WRITE),
    (r"This conversation was generated with Duck\.ai", "a chat of Duck.ai", _WRITE),
    (r"window\.YTD\.", "a part of X's (Twitter's) archive", _WRITE),
    (r"(?s)\s*<\?xml.{0,400}?<smses", "SMS Backup & Restore's XML", _WRITE),
    (r"(?s)\s*<\?xml", "XML", _EXPORT),
    (r"\d\d?/\d\d?/\d{4},\d\d:\d\d:\d\d,[^,\n]+,\+?\d", "Viber's export", _WRITE),
    (r'"?Timestamp"?,"?Device', "the history of a voice assistant", _WRITE),
    (r"message_id,created_at,updated_at,username,message,", "Reddit's export", _WRITE),
    (_KAKAOTALK, "KakaoTalk's export", _WRITE),
    (
        r"# WhatsApp Chat Export",
        "WhatsApp Web's export in Markdown",
        "export it again as plain text",
    ),
    (r'(?s)\s*\[\{"id".{0,400}?"mapping".*?[^\\]"fragments":', "DeepSeek's export", _WRITE),
    (r"From \S+ .*\n|(?:Delivered-To|Return-Path|Received): ", "mail", _WRITE),
)
_BESIDE = (
    ({"say", "ts", "type"}, _CLINE, "give the api_conversation_history.json beside it"),
    ({"ask", "ts", "type"}, _CLINE, "give the api_conversation_history.json beside it"),
    (
        {"object", "assistants"},
        "a Jan thread without its messages",
        "give its folder, with messages.jsonl",
    ),
)
_OF_SNAPCHAT = {"From", "Media Type", "Created"}
"""Keys of messages that stand under the names of people."""
_KEYS = (
    ({"messages.sender_name", "messages.timestamp_ms"}, "Messenger's or Instagram's export"),
    ({"messages.creator", "messages.created_date"}, "Google Chat's export"),
    (
        {"header", "titleUrl", "products"},
        "Google's activity (My Activity) in another product than Gemini",
    ),
    (
        {"header", "title", "activityControls"},
        "Google's activity (My Activity) in another product than Gemini",
    ),
    ({"chat-sessions-list"}, "Chatbox's data"),
    ({"data.chats", "data.folders"}, "TypingMind's data"),
    ({"chat-sessions"}, "Chatbox's data"),
    ({"chat-next-web-store"}, "NextChat's backup"),
    ({"exportType", "state"}, "LobeChat's export"),
    ({"history", "folders", "prompts"}, "Chatbot UI's export"),
    ({"indexedDB", "localStorage"}, "Cherry Studio's backup"),
    ({"requesterUsername", "requests"}, "a chat of GitHub Copilot in VS Code"),
    ({"workspaceDirectory", "history.message"}, "a session of Continue"),
    ({"internal", "visible"}, "a chat of text-generation-webui"),
    ({"gamestarted", "actions"}, "a story of KoboldAI"),
    ({"storyContainerVersion"}, "a story of NovelAI"),
    ({"ID", "Timestamp", "Contents"}, "Discord's own data package, which has your half alone"),
    ({"conversations_memory"}, "what Claude remembers, without the conversations"),
    ({"prompt_template", "docs"}, "Claude's projects, without the conversations"),
    ({"full_name", "email_address"}, "Claude's list of users, without the conversations"),
    ({"chatgpt_plus_user"}, "ChatGPT's account, without the conversations"),
    ({"profile.real_name"}, "Slack's list of users, without the conversations"),
    (
        {"conversation_id", "is_anonymous"},
        "ChatGPT's list of shared conversations, without the messages",
    ),
    ({"mapping", "inserted_at"}, "DeepSeek's export"),
    ({"conversations.responses"}, "Grok's export"),
    ({"payload.originator"}, "a session of Codex"),
    ({"projectHash", "messages.type"}, "a session of Gemini CLI"),
    ({"parent_tool_use_id"}, "the output of Claude Code, not its session file"),
    ({"conversationId", "sent_at"}, "Signal's messages"),
    ({"messages.origin_server_ts"}, "Matrix's export"),
    ({"post.create_at"}, "Mattermost's export"),
    ({"conversations.MessageList"}, "Skype's or Teams' export"),
    ({"traceID", "spans.tags"}, "a trace of Jaeger"),
    ({"message_tree_id", "tree_state"}, "a tree of Open Assistant"),
    (
        {"conversation_a", "conversation_b"},
        "a battle of Chatbot Arena, which has two conversations",
    ),
    ({"question_id", "turns", "category"}, "questions of MT-Bench"),
    ({"question_id", "choices.turns"}, "answers of MT-Bench"),
    ({"sender_id", "events.event"}, "a tracker of Rasa"),
    ({"conversation_parts", "source"}, "a conversation of Intercom"),
    ({"nodes", "edges"}, "a graph"),
    ({"log.entries", "log.version"}, "what a browser recorded (HAR)"),
    ({"messages.fragments.part"}, "a chat of big-AGI"),
    ({"messages.fragments.ft"}, "a chat of big-AGI"),
    ({"entries.query_str"}, "a thread of Perplexity"),
    ({"query_str", "thread_url_slug"}, "a thread of Perplexity"),
    ({"rid", "msg", "u.username"}, "Rocket.Chat's messages"),
    ({"value.createdDateTime", "value.body"}, "messages of Microsoft Teams"),
    ({"composerId", "conversation.bubbleId"}, "a chat of Cursor"),
    ({"composerId", "fullConversationHeadersOnly"}, "a chat of Cursor"),
    ({"info.id", "messages.info", "messages.parts"}, "a session of opencode"),
    ({"messages.User"}, "a thread of Zed"),
    ({"messages.Agent"}, "a thread of Zed"),
    ({"kind", "messages.msg", "messages.userId"}, "a chat of Agnai"),
    ({"ver", "data.message"}, "a chat of RisuAI"),
    ({"chat.ChatItems"}, "a chat of Backyard AI"),
    ({"Direct Messages"}, "TikTok's data"),
    ({"Direct Message"}, "TikTok's data"),
    ({"zerver_message"}, "Zulip's export"),
    ({"zerver_message.content"}, "Zulip's export"),
    ({"origin_server_ts", "content.body"}, "events of Matrix"),
    ({"chunk.origin_server_ts"}, "events of Matrix"),
    ({"envelope.dataMessage"}, "messages of signal-cli"),
    ({"turnID", "payload"}, "a transcript of Voiceflow"),
    ({"messages.cards", "conversationId"}, "a transcript of Botpress"),
)


def explain_unsupported_format(file: Source) -> str | None:
    """Say what a file is that is known and cannot be read, and what to do.

    ``None`` for any other.
    """
    for beginning, format_name, remedy in _BEGINNINGS:
        if re.match(beginning, file.head):
            return f"looks like {format_name}, which memlab does not read: {remedy}"
    last_keys = {path.rpartition(".")[2] for path in file.keys}
    if last_keys >= _OF_SNAPCHAT:
        return f"looks like Snapchat's chats, which memlab does not read: {_WRITE}"
    for known_keys, format_name, remedy_text in _BESIDE:
        if known_keys <= file.keys:
            return f"looks like {format_name}, which memlab does not read: {remedy_text}"
    for known_keys, format_name in _KEYS:
        if known_keys <= file.keys:
            return f"looks like {format_name}, which memlab does not read: {_WRITE}"
    return None
