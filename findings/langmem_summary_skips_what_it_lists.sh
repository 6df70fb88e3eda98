#!/usr/bin/env bash
# langmem marks messages as summarised that the model never saw
#
# Versions: langmem 0.0.30, langgraph 1.2.24, langchain-core 1.8.3
# Date: 2026-11-28
#
# Behaviour: summarize_messages trims what is to be summarised to max_tokens, newest first, before
# it asks the model; max_tokens is also the size of the history that comes back. With eight
# messages of 22 words and max_tokens=80 the model is given three of the six old ones. All six are
# replaced by the summary and stand in summarized_message_ids. A note in the docstring mentions
# the cut; the result and the log do not.
#
# Guess: max_tokens bounds the result, and a message that is listed as summarised was in the
# prompt of the summary, if need be in several calls.
#
# Why it matters: The beginning of a conversation (who the user is, what was agreed) is lost at
# the first summary of a long history, such as an import, and the list of ids, which one would
# check, says the opposite.
#
# Output seen:
#   listed as summarised: ['0', '1', '2', '3', '4', '5']
#   given to the model:   ['3', '4', '5']
#   kept as they are:     ['6', '7']
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
    langmem==0.0.30 langgraph==1.2.24 langchain-core==1.8.3

"$work/venv/bin/python" - <<'PY'
from langchain_core.messages import AIMessage, HumanMessage
from langmem.short_term import summarize_messages

prompts = []


class Recorder:
    def invoke(self, prompt, *arguments, **options):
        prompts.append(prompt)
        return AIMessage("a summary")

    def bind(self, **options):
        return self


def words(messages):
    return sum(len(str(message.content).split()) for message in messages)


history = [HumanMessage(f"message {number} " + "word " * 20, id=str(number)) for number in range(8)]
result = summarize_messages(
    history,
    running_summary=None,
    model=Recorder(),
    max_tokens=80,
    max_tokens_before_summary=60,
    max_summary_tokens=20,
    token_counter=words,
)
(prompt,) = prompts
text = prompt.to_string() if hasattr(prompt, "to_string") else str(prompt)
listed = sorted(result.running_summary.summarized_message_ids)
seen = [str(number) for number in range(8) if f"message {number} " in text]
kept = [message.id for message in result.messages if message.type == "human"]
print("listed as summarised:", listed)
print("given to the model:  ", seen)
print("kept as they are:    ", kept)
assert listed == ["0", "1", "2", "3", "4", "5"]
assert seen == ["3", "4", "5"]
assert kept == ["6", "7"]
PY
