#!/usr/bin/env bash
# LangChain's trim_messages returns no message at all when the newest is long
#
# Versions: langchain-core 1.8.3
# Date: 2026-11-28
#
# Behaviour: With strategy last, a newest message that exceeds max_tokens is dropped, and so is
# everything before it: the result is an empty list, without a warning. allow_partial=True keeps a
# part only where the message has several lines; with include_system=True the system message alone
# stays, even if it exceeds the limit by itself.
#
# Guess: The newest message stays, cut if need be, or an error is raised: a request without the
# question makes no sense.
#
# Why it matters: A pasted log or letter is the question of that turn. The assistant then answers
# the system prompt alone, and a summariser that is fed what was trimmed sees the question as
# history.
#
# Output seen:
#   newest of 30 words: []
#   the same, allow_partial: []
#   12 words on three lines, allow_partial: [('human', 8)]
#   with a system message of 14 words: [('system', 14)]
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    langchain-core==1.8.3

"$work/venv/bin/python" - <<'PY'
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, trim_messages


def words(messages):
    return sum(len(message.text.split()) for message in messages)


def trimmed(messages, **options):
    kept = trim_messages(
        messages, max_tokens=10, token_counter=words, strategy="last", **options
    )
    return [(message.type, words([message])) for message in kept]


system = SystemMessage("You are the assistant of a bakery and you answer in two short lines")
talk = [HumanMessage("hello"), AIMessage("hello")]
one_line = HumanMessage("word " * 30)
three_lines = HumanMessage("four words a line\n" * 3)

seen = trimmed([*talk, one_line])
print("newest of 30 words:", seen)
assert seen == []
seen = trimmed([*talk, one_line], allow_partial=True)
print("the same, allow_partial:", seen)
assert seen == []
seen = trimmed([*talk, three_lines], allow_partial=True)
print("12 words on three lines, allow_partial:", seen)
assert seen == [("human", 8)]
seen = trimmed([system, *talk, one_line], include_system=True)
print("with a system message of 14 words:", seen)
assert seen == [("system", 14)]
PY
