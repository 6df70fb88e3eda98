"""Who speaks: an assistant or a person, by the names of a load and those of products."""

from __future__ import annotations

from memlab.datasets.record_sources import Source

TAKEN_BY_NAME = "taken for the assistant by the name; --person NAME says that somebody is called so"
"""What is done with a sender whose name alone says that they are an assistant."""


def is_assistant_and_count_guess(
    source: Source, sender: str, *, in_messenger: bool = False
) -> bool:
    """Say whether a sender is an assistant: one that was named, or one whose name says so, which is
    counted.

    One of the names that the load says are people's is none.

    :param in_messenger: people talk to each other there, and Claude may be one of them: only the
        names of products say so.

    >>> from pathlib import Path
    >>> from memlab.datasets.sender_roles import is_assistant_and_count_guess
    >>> source = Source(Path("log.jsonl"), assistants=("ann",))
    >>> senders = ("ChatGPT", "Claude", "Bo", "Ann")
    >>> [is_assistant_and_count_guess(source, sender) for sender in senders]
    [True, True, False, True]
    >>> is_assistant_and_count_guess(source, "Claude", in_messenger=True)
    False
    """
    # Imported when it is needed: an import of memlab.datasets stays small.
    from memlab.datasets.role_words import ASSISTANTS, PRODUCTS, is_plain_role_word

    name = comparable_name(sender)
    if name in map(comparable_name, source.assistants):
        return True
    assistant_names = ASSISTANTS
    if in_messenger:
        assistant_names = PRODUCTS
    if name not in assistant_names or is_named_as_person(source, sender):
        return False
    if not is_plain_role_word(sender.strip()):
        source.report.guessed[sender.strip()] += 1
    return True


def is_named_as_person(source: Source, sender: str) -> bool:
    """Say whether the load names a sender as a person, whatever their name says."""
    return comparable_name(sender) in map(comparable_name, source.people)


def messenger_role_and_count_guess(
    source: Source, sender: str, *, is_bot: bool | None = None
) -> str:
    """Give the role of a sender of a messenger: ``user``, ``assistant``, or ``other`` for any other
    bot.

    :param is_bot: what the export says; ``None`` where it says nothing.
    """
    if is_bot is False and comparable_name(sender) not in map(comparable_name, source.assistants):
        return "user"
    if is_assistant_and_count_guess(source, sender, in_messenger=not is_bot):
        return "assistant"
    if is_bot:
        return "other"
    return "user"


def comparable_name(name: str) -> str:
    """Write a name as names are compared: without case and the blanks around it."""
    return name.strip().casefold()
