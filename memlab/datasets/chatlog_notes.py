"""What is noted of a chat log as a whole, once all of it is read."""

from __future__ import annotations

from collections import Counter

from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import TAKEN_BY_NAME, comparable_name

OTHER_ROLES = "message of other roles"
_KEPT_AS_PERSONS = "kept as those of persons"
_TAKEN_FOR = {
    None: "the assistant",
    "assistant": "the assistant",
    "system": "the system",
    "other": "a tool",
}


class LogNotes:
    """Counts what a log has that is read otherwise, or not at all.

    ``silent`` are the names that the load says, of those who have not spoken yet; ``renamed``
    counts the fields that stand under another name, by both names; ``other_keys`` counts the
    messages that have a key that is not read, ``unread`` the texts that are not.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.silent = {comparable_name(name): name for name in (*source.assistants, *source.people)}
        self.renamed = dict[tuple[str, str], int]()
        self.other_keys = Counter[str]()
        self.unread = Counter[str]()

    def remove_from_silent_names(self, speaker: str) -> None:
        """Note that somebody speaks."""
        self.silent.pop(comparable_name(speaker), None)

    def count_renamed_fields(self, key_by_usual_name: dict[str, str]) -> None:
        """Count fields that a message has under other names."""
        for name_and_key in key_by_usual_name.items():
            self.renamed[name_and_key] = self.renamed.get(name_and_key, 0) + 1

    def count_unread_keys_and_texts(self, record: Record, read_keys: frozenset[str]) -> None:
        """Count the keys and texts of a message that stand in fields that a chat log has not."""
        # Imported when it is needed: an import of memlab.datasets stays small.
        from memlab.datasets.unread_texts import list_paths_of_unread_texts

        for key, value in record.items():
            if value is not None and key not in read_keys:
                self.other_keys[key] += 1
        read_text = f"{record['text']}\n{record.get('caption') or ''}"
        for key in list_paths_of_unread_texts(record, read_keys, read_text):
            self.unread[f"text under the key {key!r}"] += 1

    def note_all_counts_as_issues(self) -> None:
        """Write the notes as issues of the load."""
        if self.silent:
            silent_names = ", ".join(map(repr, self.silent.values()))
            self.source.note(
                "sender", f"{silent_names}, whom no message is from", "nobody is called so"
            )
        self._note_guessed_roles_as_issues()
        for (name, key), count in self.renamed.items():
            renamed_text = f"none in {count_with_noun(count, 'message')}, which have {key!r}"
            self.source.note(name, renamed_text, f"read as the {name}")
        if self.other_keys:
            key_list = ", ".join(map(repr, self.other_keys))
            most = count_with_noun(max(self.other_keys.values()), "message")
            self.source.note("keys", f"{key_list}, in up to {most}", "not read")
        for unread_kind, count in (+self.unread).items():
            action = "left out"
            if unread_kind == OTHER_ROLES:
                action = _KEPT_AS_PERSONS
            self.source.note("messages", count_with_noun(count, unread_kind), action)

    def _note_guessed_roles_as_issues(self) -> None:
        """Note whose name alone made them an assistant."""
        from memlab.datasets.role_words import turn_role_of_word

        for name, count in self.source.report.guessed.items():
            action = TAKEN_BY_NAME.replace("the assistant", _TAKEN_FOR[turn_role_of_word(name)])
            messages = count_with_noun(count, "message")
            self.source.note("assistant", f"{name!r}, {messages}", action)


def count_with_noun(count: int, singular_noun: str) -> str:
    """Write a count, with the first word in the plural where it is not one."""
    if count == 1:
        return f"1 {singular_noun}"
    first_word, *other_words = singular_noun.split(" ", 1)
    return " ".join((f"{count:,}", f"{first_word}s", *other_words))
