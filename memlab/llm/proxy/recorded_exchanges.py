"""Recorded exchanges with a model: what was asked and what it answered, a JSON line each."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from memlab.errors import DataError, ModelError
from memlab.llm.proxy.prompt_rules import Rules, read_rules, replace_substrings
from memlab.llm.response_bodies import JsonObject, JsonValue
from memlab.llm.token_spending import CHARS, TokensReadAndWritten
from memlab.terminal_text import count_noun

ASKED = ("model", "messages", "tools", "tool_choice", "response_format", "input", "text")
"""What of a request decides its answer; settings such as the temperature do not."""
_SHOWN_BEFORE, _SHOWN_AFTER = 20, 50
"""Characters that a refusal shows before and from the first difference."""
MOST_TOKENS = 100_000_000
"""Of one exchange; a number beyond it is no count."""


@dataclass(frozen=True)
class Exchange:
    """One question to a model and its answer.

    :param asked: the part of the request that :data:`ASKED` names.
    :param answer: ``message`` and ``finish_reason``.
    :param tokens: read and written.
    :param is_estimated: whether the tokens are counted by characters.
    """

    asked: Mapping[str, JsonValue]
    answer: Mapping[str, JsonValue]
    tokens: TokensReadAndWritten
    is_estimated: bool = False


class NotRecordedError(ModelError):
    """What was asked is not in the recording."""


class UnreadableAnswerError(ModelError):
    """A service answered with something that is no completion."""


def deciding_part_of_request(request_body: Mapping[str, JsonValue]) -> JsonObject:
    """Give what of a request decides its answer."""
    return {
        field_name: request_body[field_name]
        for field_name in ASKED
        if request_body.get(field_name) is not None
    }


def to_canonical_json(json_object: Mapping[str, JsonValue]) -> str:
    """Write what was asked as compact JSON with sorted keys."""
    return json.dumps(json_object, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def to_readable_text(deciding_fields: Mapping[str, JsonValue]) -> str:
    """Write what was asked as text: messages first, in which line breaks are line breaks."""
    lines = list[str]()
    messages = deciding_fields.get("messages")
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            lines.append(to_canonical_json({"message": message}))
            continue
        content = message.get("content")
        message_text = (
            content if isinstance(content, str) else to_canonical_json({"content": content})
        )
        lines.append(f"{message.get('role')}: {message_text}")
    other_fields = {
        field_name: field_value
        for field_name, field_value in deciding_fields.items()
        if field_name != "messages"
    }
    lines.append(to_canonical_json(other_fields))
    return "\n".join(lines)


def is_token_count(json_value: JsonValue) -> TypeGuard[int]:
    """Say whether a value may be a number of tokens: a whole number from 0 to :data:`MOST_TOKENS`.

    >>> [is_token_count(number) for number in (12, -1, True, "12", 1e12)]
    [True, False, False, False, False]
    """
    if isinstance(json_value, bool) or not isinstance(json_value, int):
        return False
    return 0 <= json_value <= MOST_TOKENS


def estimate_tokens(
    deciding_fields: Mapping[str, JsonValue], answer_message: JsonValue
) -> TokensReadAndWritten:
    """Give the tokens of a prompt and of an answer by their characters.

    >>> estimate_tokens({"model": "m"}, "four")
    (4, 2)
    """
    n_read, n_written = (
        len(json.dumps(json_value, ensure_ascii=False))
        for json_value in (deciding_fields, answer_message)
    )
    return -(-n_read // CHARS), -(-n_written // CHARS)


class Exchanges:
    """The exchanges of a file, found by what was asked.

    Several processes may append to one file at a time. A line that was cut off is left out; its
    number stands in ``damaged_lines``. Where the tokens of a line are no counts, they are estimated
    by characters. Of two answers to the same question the first holds.

    :param path: JSON lines; it need not exist.
    :raises DataError: when the file is there and cannot be read, or holds something else.

    >>> kept = Exchanges(None)
    >>> asked = {"messages": [{"role": "user", "content": "Hi"}]}
    >>> kept.add(Exchange(asked, {"message": {}}, (1, 1)))
    >>> kept.find({"messages": [{"content": "Hi", "role": "user"}]}).tokens
    (1, 1)
    """

    def __init__(self, path: Path | None, rules: Rules | None = None) -> None:
        self.path = path
        self.damaged_lines = list[int]()
        self._rules = read_rules() if rules is None else rules
        self._rows = dict[str, Exchange]()
        self._texts = dict[str, str]()
        if path is not None and path.exists():
            self._load_recording_and_note_damage(path)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def damaged(self) -> int:
        """How many lines could not be read."""
        return len(self.damaged_lines)

    def _load_recording_and_note_damage(self, recording_path: Path) -> None:
        try:
            recording_text = recording_path.read_bytes().decode("utf-8-sig", "replace")
        except OSError as error:
            raise DataError(
                f"the recording {recording_path} cannot be read: {error.strerror}"
            ) from error
        for number, line in enumerate(recording_text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                self._keep_first_of_key(_parse_exchange(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                self.damaged_lines.append(number)
        # The first exchange of a recording may have been broken off; anything else is not ours.
        if self.damaged_lines and not self._rows and not recording_text.startswith('{"asked"'):
            raise DataError(
                f"{recording_path} is no recording: none of its "
                f"{count_noun(self.damaged, 'lines')} holds an exchange; give a file that --record "
                "or ModelProxy wrote, or a new name"
            )

    def describe_damage(self) -> str:
        """Say which lines could not be read; an empty text where all could."""
        if not self.damaged_lines:
            return ""
        first_lines = ", ".join(f"{number:,}" for number in self.damaged_lines[:5])
        more_mark = ", …" if self.damaged > 5 else ""
        copula = "is" if self.damaged == 1 else "are"
        return (
            f"{self.path}: {count_noun(self.damaged, 'damaged lines')} (line "
            f"{first_lines}{more_mark}) {copula} left out"
        )

    def digest(self) -> str:
        """Name what is recorded: 16 hex digits of prompts and answers, in whatever order."""
        exchange_lines = [
            f"{key} {to_canonical_json(self._rows[key].answer)} {self._rows[key].tokens}"
            for key in sorted(self._rows)
        ]
        return hashlib.sha256("\n".join(exchange_lines).encode("utf-8", "replace")).hexdigest()[:16]

    def _keep_first_of_key(self, exchange: Exchange) -> None:
        self._rows.setdefault(self.key(exchange.asked), exchange)

    def keys(self) -> set[str]:
        """Give the names of what is recorded, see :meth:`key`."""
        return set(self._rows)

    def models(self) -> list[str]:
        """Give the names of the models that were asked."""
        model_names = [str(exchange.asked.get("model")) for exchange in self._rows.values()]
        return list(dict.fromkeys(model_names))

    def key(self, asked: Mapping[str, JsonValue]) -> str:
        """Name what was asked, without what differs from run to run."""
        normal_text = self._rules.normalise(
            _unescape_line_breaks(to_canonical_json(deciding_part_of_request(asked)))
        )
        return hashlib.sha256(normal_text.encode("utf-8", "replace")).hexdigest()[:24]

    def find(self, request_body: Mapping[str, JsonValue]) -> Exchange | None:
        """Find the exchange of a request; names in its answer are those of the request."""
        kept_exchange = self._rows.get(self.key(request_body))
        if kept_exchange is None:
            return None
        recorded_names = self._find_names_in_request(kept_exchange.asked)
        asked_names = self._find_names_in_request(deciding_part_of_request(request_body))
        asked_by_recorded_name = dict(zip(recorded_names, asked_names, strict=False))
        answer = json.loads(
            replace_substrings(json.dumps(kept_exchange.answer), asked_by_recorded_name)
        )
        return Exchange(
            kept_exchange.asked, answer, kept_exchange.tokens, kept_exchange.is_estimated
        )

    def _find_names_in_request(self, asked: Mapping[str, JsonValue]) -> list[str]:
        return self._rules.find_names(to_canonical_json(asked))

    def add(self, exchange: Exchange) -> None:
        """Keep an exchange, and append it to the file where there is one.

        :raises DataError: when the file cannot be written.
        """
        self._keep_first_of_key(exchange)
        if self.path is None:
            return
        exchange_row: dict[str, Any] = {
            "asked": exchange.asked,
            "answer": exchange.answer,
            "tokens": exchange.tokens,
        }
        if exchange.is_estimated:
            exchange_row["estimated"] = True
        _append_line_to_file(self.path, json.dumps(exchange_row, ensure_ascii=False))

    def refusal(self, request_body: Mapping[str, JsonValue]) -> NotRecordedError:
        """Say that a request is not recorded, with the nearest that is and the first difference."""
        recording_name = "the recording" if self.path is None else str(self.path)
        if not self._rows:
            return NotRecordedError(
                f"{recording_name} has no exchange; record some with --service NAME"
            )
        asked_text = self._rules.normalise(to_readable_text(deciding_part_of_request(request_body)))
        nearest_text = self._nearest_recorded_text(asked_text)
        difference_at = _common_prefix_length(asked_text, nearest_text)
        line_number = nearest_text.count("\n", 0, difference_at) + 1
        shown_start = max(0, difference_at - _SHOWN_BEFORE)
        shown_end = difference_at + _SHOWN_AFTER
        # The difference stands first: whoever shows this may cut it.
        return NotRecordedError(
            f"not recorded: asked {asked_text[shown_start:shown_end]!r}, the nearest of "
            f"{count_noun(len(self), 'prompts')} has {nearest_text[shown_start:shown_end]!r} in "
            f"line {line_number}; {recording_name}"
        )

    def _nearest_recorded_text(self, asked_text: str) -> str:
        """Give the recorded text that shares most lines, then the longest beginning."""
        asked_lines = set(asked_text.splitlines())
        best_text = ""
        best_score = (-1, -1)
        for key, exchange in self._rows.items():
            if key not in self._texts:
                self._texts[key] = self._rules.normalise(to_readable_text(exchange.asked))
            recorded_text = self._texts[key]
            n_shared_lines = len(asked_lines & set(recorded_text.splitlines()))
            score = (n_shared_lines, _common_prefix_length(asked_text, recorded_text))
            if score > best_score:
                best_text = recorded_text
                best_score = score
        return best_text


def _parse_exchange(json_line: str) -> Exchange:
    """Read one line of a recording.

    :raises ValueError: when it is none, or another error of a wrong type.
    """
    exchange_row = json.loads(json_line)
    asked_fields = dict(exchange_row["asked"])
    answer = dict(exchange_row["answer"])
    tokens = exchange_row["tokens"]
    if not isinstance(answer["message"], dict):
        raise ValueError("no message")
    is_counted = len(tokens) == 2 and all(map(is_token_count, tokens))
    if is_counted:
        return Exchange(
            asked_fields, answer, (tokens[0], tokens[1]), exchange_row.get("estimated") is True
        )
    return Exchange(
        asked_fields, answer, estimate_tokens(asked_fields, answer["message"]), is_estimated=True
    )


def _common_prefix_length(first_text: str, second_text: str) -> int:
    """Give how many characters two texts begin with together.

    >>> _common_prefix_length("abcd", "abxd")
    2
    """
    shortest = 0
    longest = min(len(first_text), len(second_text))
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if first_text.startswith(second_text[:middle]):
            shortest = middle
        else:
            longest = middle - 1
    return shortest


def _unescape_line_breaks(text: str) -> str:
    r"""Write line breaks as themselves, so that a rule may hold one.

    >>> _unescape_line_breaks('a\\nb')
    'a\nb'
    """
    return text.replace("\\n", "\n")


def _append_line_to_file(path: Path, line: str) -> None:
    """Append a line in one go, on a line of its own where the last write was broken off."""
    line_bytes = line.encode("utf-8", "replace") + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.fstat(descriptor).st_size:
                os.lseek(descriptor, -1, os.SEEK_END)
                if os.read(descriptor, 1) != b"\n":
                    line_bytes = b"\n" + line_bytes
            # One call, so that lines of two processes do not mix.
            if os.write(descriptor, line_bytes) < len(line_bytes):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DataError(
            f"{path} cannot be written ({error.strerror}): the exchange is not recorded"
        ) from error
