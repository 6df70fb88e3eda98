"""Fields of a chat log under the names that other tools give them."""

from __future__ import annotations

from memlab.datasets.record_fields import JsonObject, JsonValue, Record
from memlab.datasets.time_forms import unwrap_time_object
from memlab.datasets.time_keys import find_time_key

_SENDERS = (
    *("speaker", "author", "sender_name", "senderName", "from_name", "fromName"),
    *("username", "user_name", "userName", "name", "from"),
)
_SESSIONS = (
    *("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId"),
    *("session_name", "sessionName", "conversation", "thread"),
)
_OTHERS = {"sender": _SENDERS, "session": _SESSIONS}


def find_key_by_usual_name(record: JsonObject) -> dict[str, str]:
    """Find under which other key a message has its time, its sender or its session.

    Only what stands under no usual name is looked for, and nothing in a record that has all three.

    :returns: the keys, by the usual names.

    >>> from memlab.datasets.other_field_names import find_key_by_usual_name
    >>> fields = {"scope": "me", "speaker": "Ann", "text": "Hi", "time": "2026-03-01T09:00:00Z"}
    >>> find_key_by_usual_name(fields)
    {'sender': 'speaker', 'timestamp': 'time'}
    >>> find_key_by_usual_name({"scope": "me", "sender": "Ann", "speaker": "A.", "text": "Hi"})
    {}
    """
    key_by_name = dict[str, str | None]()
    for name, keys in _OTHERS.items():
        if record.get(name) is None:
            key_by_name[name] = _first_key_holding_name(record, keys)
    if record.get("timestamp") is None:
        key_by_name["timestamp"] = find_time_key(record)
    return {name: key for name, key in key_by_name.items() if key is not None}


def with_usual_names(record: Record, key_by_usual_name: dict[str, str]) -> Record:
    """Give a message its fields under their usual names.

    :param key_by_usual_name: as :func:`find_key_by_usual_name` gives them.
    """
    usual_fields = {name: record[key] for name, key in key_by_usual_name.items()}
    if "timestamp" in key_by_usual_name:
        usual_fields["timestamp"] = unwrap_time_object(usual_fields["timestamp"])
    other_fields = {
        key: value for key, value in record.items() if key not in key_by_usual_name.values()
    }
    return Record(other_fields | usual_fields, record.where)


def _first_key_holding_name(record: JsonObject, candidate_keys: tuple[str, ...]) -> str | None:
    """Find the first key that holds a name: a text that is not blank, or a whole number."""
    for key in candidate_keys:
        if _is_name_value(record.get(key)):
            return key
    return None


def _is_name_value(raw_value: JsonValue) -> bool:
    if isinstance(raw_value, bool):
        return False
    if isinstance(raw_value, str):
        return raw_value.strip() != ""
    return isinstance(raw_value, int)
