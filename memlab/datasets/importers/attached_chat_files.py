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


def find_numbered_files(files: list[Source]) -> list[Source]:
    """Find what ChatGPT and WhatsApp on an iPhone keep, with a number before its name."""
    return _files_like(files, _NUMBERED)


def find_files_in_folders(files: list[Source]) -> list[Source]:
    """Find what DiscordChatExporter, Claude Code and slackdump keep in folders of their own."""
    return _files_like(files, _BESIDE)


def find_telegram_files(files: list[Source]) -> list[Source]:
    """Find what Telegram keeps in folders beside ``result.json``."""
    chat_folders = {file.path.parent for file in files if file.path.name == "result.json"}

    def is_sent(file: Source, folder: Path) -> bool:
        return _BELOW_TELEGRAM.fullmatch(_path_below(file, folder)) is not None

    return _files_below(files, chat_folders, is_sent)


def find_whatsapp_files(files: list[Source]) -> list[Source]:
    """Find what WhatsApp keeps beside the text of a chat, and in folders below it.

    The text is named as its archive or folder, or is the only one of its archive.
    """
    chat_texts = [file for file in files if _CHAT_TEXT.fullmatch(file.path.name)]
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

    def is_sent(file: Source, folder: Path) -> bool:
        if file is text_by_folder[folder]:
            return False
        return folder in named_folders or "/" not in _path_below(file, folder)

    return find_numbered_files(files) + _files_below(files, set(text_by_folder), is_sent)


def _files_like(files: list[Source], form: re.Pattern[str]) -> list[Source]:
    return [file for file in files if form.fullmatch(file.name)]


def _files_below(
    files: list[Source], folders: set[Path], is_sent: Callable[[Source, Path], bool]
) -> list[Source]:
    """Give the files for which that holds in any of the folders around them."""
    if not folders:
        return []
    sent_files = []
    for file in files:
        chat_folders = folders.intersection(file.path.parents)
        if any(map(partial(is_sent, file), chat_folders)):
            sent_files.append(file)
    return sent_files


def _path_below(file: Source, folder: Path) -> str:
    return file.path.relative_to(folder).as_posix()
