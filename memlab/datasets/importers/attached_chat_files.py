"""Files that people sent in a chat, which lie beside it in its folder or archive and may be
chats too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memlab.datasets.record_sources import Source

_NUMBERED = re.compile(r"(?:.*/)?(?:file[-_]\w+-|0\d{7}-)[^/]+")
"""Of ChatGPT, and of WhatsApp on an iPhone."""
_BESIDE = re.compile(r"(?:.*/)?(?:[^/]+\.\w+_Files|tool-results|__uploads)/.+")
"""Of DiscordChatExporter, Claude Code and slackdump."""
_BELOW_TELEGRAM = re.compile(
    r"(?:chats/chat_\d+/)?(?:files|video_files|(?:voice|round_video)_messages)/.+"
)
"""Below the folder of ``result.json``."""
_CHAT_TEXT = re.compile(r"(?i)_chat\.txt|.*(?:whatsapp|واتساب).*\.txt")


def find_attachments_by_numbered_name(export_files: list[Source]) -> list[Source]:
    """Find what ChatGPT and WhatsApp on an iPhone keep, with a number before its name."""
    return _files_with_names_matching(export_files, _NUMBERED)


def find_attachments_in_own_folders(export_files: list[Source]) -> list[Source]:
    """Find what DiscordChatExporter, Claude Code and slackdump keep in folders of their own."""
    return _files_with_names_matching(export_files, _BESIDE)


def find_telegram_attachments(export_files: list[Source]) -> list[Source]:
    """Find what Telegram keeps in folders beside ``result.json``."""
    chat_folders = {file.path.parent for file in export_files if file.path.name == "result.json"}

    def lies_in_telegram_folder(file: Source, chat_folder: Path) -> bool:
        return _BELOW_TELEGRAM.fullmatch(_path_relative_to_folder(file, chat_folder)) is not None

    return _attachments_below_folders(export_files, chat_folders, lies_in_telegram_folder)


def find_whatsapp_attachments(export_files: list[Source]) -> list[Source]:
    """Find what WhatsApp keeps beside the text of a chat, and in folders below it.

    The text is named as its archive or folder, or is the only one of its archive.
    """
    chat_texts = [file for file in export_files if _CHAT_TEXT.fullmatch(file.path.name)]
    texts_by_folder = Counter(chat_text.path.parent for chat_text in chat_texts)
    text_by_folder: dict[Path, Source] = {}
    named_folders: set[Path] = set()
    for chat_text in chat_texts:
        folder = chat_text.path.parent
        if chat_text.path.stem == folder.name.removesuffix(".zip"):
            named_folders.add(folder)
            text_by_folder[folder] = chat_text
        elif chat_text.packed and texts_by_folder[folder] == 1:
            text_by_folder[folder] = chat_text

    def lies_beside_or_below_chat(file: Source, chat_folder: Path) -> bool:
        if file is text_by_folder[chat_folder]:
            return False
        return chat_folder in named_folders or "/" not in _path_relative_to_folder(
            file, chat_folder
        )

    return find_attachments_by_numbered_name(export_files) + _attachments_below_folders(
        export_files, set(text_by_folder), lies_beside_or_below_chat
    )


def _files_with_names_matching(files: list[Source], name_form: re.Pattern[str]) -> list[Source]:
    return [file for file in files if name_form.fullmatch(file.name)]


def _attachments_below_folders(
    files: list[Source],
    chat_folders: set[Path],
    is_attachment_of_folder: Callable[[Source, Path], bool],
) -> list[Source]:
    """Give the files for which that holds in any of the folders around them."""
    if not chat_folders:
        return []
    sent_files = []
    for file in files:
        folders_around = chat_folders.intersection(file.path.parents)
        if any(map(partial(is_attachment_of_folder, file), folders_around)):
            sent_files.append(file)
    return sent_files


def _path_relative_to_folder(file: Source, folder: Path) -> str:
    return file.path.relative_to(folder).as_posix()
