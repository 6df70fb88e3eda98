#!/usr/bin/env bash
# Two parsers of WhatsApp exports turn a change of the subject into a person
#
# Versions: whatstk 0.9.1, chat-miner 0.6.0
# Date: 2026-11-28
#
# Behaviour: A line in which the app says that somebody changed the group's subject has no author.
# Where the new subject holds a colon and a space, both parsers take what stands before it for a
# name: the chat gains a member with one message. Other lines of the app are dropped without a
# count. chat-miner returns the newest message first and replaces line breaks by spaces, whatstk
# does neither.
#
# Guess: Lines of the app are recognised, or kept as such; two parsers of one format give the same
# rows in the order of the file.
#
# Why it matters: Facts are drawn about a person who does not exist, scopes per speaker and
# statistics of speakers are off, and a memory that is filled in the order of the frame learns
# backwards: older facts supersede newer ones.
#
# Output seen:
#   whatstk:    [('Ann changed the subject to "Trip', 'Rome"'), ('Ann', 'two lines\nof one message'), ('Bob', 'fine')]
#   chat-miner: [('Bob', 'fine'), ('Ann', 'two lines of one message'), ('Ann changed the subject to "Trip', 'Rome"')]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    whatstk==0.9.1 chat-miner==0.6.0

"$work/venv/bin/python" - <<'PY'
import contextlib
import io
import logging
import pathlib
import tempfile

from chatminer.chatparsers import WhatsAppParser
from whatstk import WhatsAppChat

EXPORT = """01.02.26, 10:00 - Messages are end-to-end encrypted.
01.02.26, 10:01 - Ann changed the subject to "Trip: Rome"
01.02.26, 10:02 - Ann: two lines
of one message
13.02.26, 10:03 - Bob: fine
"""
logging.disable(logging.WARNING)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "chat.txt"
    path.write_text(EXPORT, encoding="utf-8")
    parser = WhatsAppParser(path)
    with contextlib.redirect_stderr(io.StringIO()):
        parser.parse_file()
    mined = parser.parsed_messages.get_df().select("author", "message").rows()
    frame = WhatsAppChat.from_source(str(path)).df
read = list(zip(frame["username"], frame["message"]))
print("whatstk:   ", read)
print("chat-miner:", mined)
invented = ('Ann changed the subject to "Trip', 'Rome"')
assert invented in read
assert invented in mined
assert len(read) == len(mined) == 3
assert read[-1][0] == "Bob"
assert mined[0][0] == "Bob"
assert ("Ann", "two lines\nof one message") in read
assert ("Ann", "two lines of one message") in mined
PY
