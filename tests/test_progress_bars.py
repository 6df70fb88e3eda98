"""Progress: a bar where somebody watches, and at most two lines where a log is written."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from memlab import progress_bars
from memlab.progress_bars import LOG_VARIABLE, LoggedProgress, progress_bar
from memlab.terminal_text import warn_of_long_step


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let every look at the clock be ten seconds after the one before."""
    seconds = [0.0]

    def monotonic() -> float:
        seconds[0] += 10
        return seconds[0]

    monkeypatch.setattr(progress_bars.time, "monotonic", monotonic)
    return seconds


def test_a_log_has_a_line_early_and_one_at_the_end(
    clock: list[float], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    rows = list(progress_bar(range(10), what="ranking", unit="runs"))
    assert rows == list(range(10))
    assert "\r" not in log.getvalue()
    assert caplog.messages == ["ranking: 1 of 10 runs after 10 s", "ranking: 10 runs in 20 s"]


def test_only_the_outer_work_is_logged_and_what_ends_early_says_so(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    outer = LoggedProgress(what="outer", unit="parts")
    with pytest.raises(ZeroDivisionError), outer as parts:
        parts.update(len(list(LoggedProgress(range(3), what="inner", unit="texts"))) // 0)
    assert [line.split(" in ")[0] for line in caplog.messages] == ["outer: 0 parts"]
    assert caplog.messages[0].endswith("not to its end")


def test_short_work_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert list(progress_bar(range(3), what="ranking", unit="runs")) == [0, 1, 2]
    assert list(progress_bar(range(3), what="hidden", unit="runs", hidden=True)) == [0, 1, 2]
    assert not caplog.messages


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar(what="ranking", total=2, unit="runs") as bar:
        bar.update(2)
    assert "ranking: 100%" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()


def test_a_kernel_marks_its_lines_for_who_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    monkeypatch.setenv(LOG_VARIABLE, "1")
    monkeypatch.setenv("TQDM_DISABLE", "1")
    warn_of_long_step("encoding 12 texts", 40)
    with progress_bar(what="ranking", total=1, unit="runs") as bar:
        bar.update()
    marked = ["progress: encoding 12 texts takes about 40 s", "progress: ranking: 1 runs in 20 s"]
    assert caplog.messages == marked


def test_who_set_the_variable_of_tqdm_hears_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert logging.getLogger("memlab").isEnabledFor(logging.WARNING)
    assert list(progress_bar([1], what="ranking", unit="runs")) == [1]
    assert not caplog.messages
