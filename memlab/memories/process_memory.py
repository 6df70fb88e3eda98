"""A memory in a process of its own, such as a framework that lives in another environment."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from memlab.errors import DataError
from memlab.memories.memory_identity import digest_of_command_environment
from memlab.memories.returned_rows import JsonValue
from memlab.terminal_text import shorten_line

_LAST_LINES = 20
_PATIENCE = 3600.0


class ProcessMemory:
    """Speaks JSON lines with a process: requests on its input, answers on its output.

    Requests are ``{"id": 1, "do": "add", "turns": […]}``, one a session with the columns of
    :data:`memlab.memories.TURNS` and ``role``, then ``{"id": 2, "do": "search", "query": "…",
    "k": 10}`` and ``{"id": 3, "do": "stored"}``. Answers are ``{"id": 1, "rows": […]}``, or
    ``{"id": 1, "error": "…"}``. What else the process prints is its log. Give a subclass that names
    a ``command``, so that each scope has a process of its own.

    :param command: the program and its arguments.
    :raises DataError: when it cannot be started, ends, or answers with an error; says its last
        line.
    """

    command: ClassVar[Sequence[str]] = ()
    owner: ClassVar[str] = ""
    """Whose messages have the role ``user``; by default whoever is not called assistant."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = list(command or self.command)
        if not self._command:
            raise DataError(f"{type(self).__name__} has no command; name a program")
        environment = digest_of_command_environment(self._command)
        self.settings = {"command": self._command[1:], "environment": environment}
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._log: deque[str] = deque(maxlen=_LAST_LINES)
        self._reading_threads: list[threading.Thread] = []
        self._number = 0

    def _start_process_once(self) -> subprocess.Popen[str]:
        if self._process is not None:
            return self._process
        process_pipes: dict[str, Any] = dict.fromkeys(
            ("stdin", "stdout", "stderr"), subprocess.PIPE
        )
        try:
            started_process = subprocess.Popen(
                self._command, **process_pipes, text=True, encoding="utf-8", errors="replace"
            )
        except OSError as error:
            raise DataError(
                f"{self._command[0]} cannot be started ({error.strerror}); name the Python of the "
                "framework's environment"
            ) from error
        readers = (self._queue_answers_until_process_ends, self._collect_log_lines_of_process)
        self._reading_threads = [
            threading.Thread(target=reader, args=(started_process,), daemon=True)
            for reader in readers
        ]
        for reading_thread in self._reading_threads:
            reading_thread.start()
        self._process = started_process
        return started_process

    def _queue_answers_until_process_ends(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for output_line in process.stdout:
            try:
                parsed_line = json.loads(output_line)
            except ValueError:
                parsed_line = None
            if isinstance(parsed_line, dict) and "id" in parsed_line:
                self._answers.put(parsed_line)
            elif output_line.strip():
                self._log.append(output_line.strip())
        self._answers.put(None)

    def _collect_log_lines_of_process(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for log_line in process.stderr:
            if log_line.strip():
                self._log.append(log_line.strip())

    def request(self, do: str, **what: Any) -> list[JsonValue]:
        """Ask the process for something, and give the rows of its answer.

        :raises DataError: when it answers with an error, or has ended.
        """
        process = self._start_process_once()
        self._number += 1
        try:
            assert process.stdin is not None
            request_line = json.dumps({"id": self._number, "do": do, **what}, default=str)
            process.stdin.write(request_line + "\n")
            process.stdin.flush()
        except OSError:
            raise self._wait_and_make_error_of_ended_process() from None
        while True:
            try:
                process_answer = self._answers.get(timeout=_PATIENCE)
            except queue.Empty:
                raise DataError(
                    f"the process gave no answer within {_PATIENCE:,.0f} seconds"
                ) from None
            if process_answer is None:
                raise self._wait_and_make_error_of_ended_process()
            if process_answer.get("id") != self._number:
                continue  # of a request that nobody waited for
            if "error" in process_answer:
                raise DataError(shorten_line(str(process_answer["error"]), 300))
            return list(process_answer.get("rows") or [])

    def _wait_and_make_error_of_ended_process(self) -> DataError:
        assert self._process is not None
        self._process.wait(10)
        # Its last line may still be on the way, and mostly says why it ended.
        for reading_thread in self._reading_threads:
            reading_thread.join(10)
        last_line = self._log[-1] if self._log else "it printed nothing"
        exit_code = self._process.returncode
        return DataError(f"the process ended with {exit_code}: {shorten_line(last_line, 200)}")

    def ingest(self, turns: pl.DataFrame) -> None:
        """Hand on turns, a request for each session."""
        for session in turns.partition_by("session", maintain_order=True):
            self.request(
                "add", turns=list(self._request_messages_of_turns(session.iter_rows(named=True)))
            )

    def _request_messages_of_turns(
        self, turn_rows: Iterable[Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        for turn_row in turn_rows:
            is_assistant = (turn_row["speaker"] or "").lower() == "assistant"
            if self.owner:
                is_assistant = turn_row["speaker"] != self.owner
            turn_time = turn_row["time"] and turn_row["time"].isoformat()
            yield {**turn_row, "role": "assistant" if is_assistant else "user", "time": turn_time}

    def search(self, query: str, k: int) -> list[JsonValue]:
        """Give what the process found."""
        return self.request("search", query=query, k=k)

    def stored(self) -> list[JsonValue]:
        """Give all texts that the process keeps."""
        return self.request("stored")

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process = None

    def __del__(self) -> None:
        """End the process with the object."""
        process = getattr(self, "_process", None)
        if process is not None and os.name == "posix":
            process.terminate()
