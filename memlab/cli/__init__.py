"""The command line ``memlab``: thin, every verb is one public function or a few."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings

from memlab.cli import (
    evaluate_compare_why,
    index_answer_questions_train,
    ingest_fetch_info,
    notebooks_figures,
    proxy_verb,
    search_facts_recall_rollup,
)
from memlab.cli.shared_options import app, echo
from memlab.errors import MemlabError, is_panic
from memlab.terminal_text import escape_line, mask_url_credentials

__all__ = [
    "app",
    "evaluate_compare_why",
    "index_answer_questions_train",
    "ingest_fetch_info",
    "main",
    "notebooks_figures",
    "proxy_verb",
    "search_facts_recall_rollup",
]


def main() -> None:
    """Run the command line; an error that the user can mend is one line and exit code 2."""
    # Imports make objects that stay: looking through them again and again is a fifth of a short
    # command's time.
    gc.set_threshold(100_000)
    for output_stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            output_stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    warnings.formatwarning = lambda message, *_, **__: f"memlab: {escape_line(str(message))}\n"
    try:
        app()
    except MemlabError as error:
        echo(f"memlab: {escape_line(mask_url_credentials(str(error)))}", err=True)
        raise SystemExit(2) from None
    except BaseException as error:
        if not is_panic(error):
            raise
        echo(
            f"memlab: {escape_line(mask_url_credentials(str(error)))}: a library failed on what it "
            "was given; correct it, or report this with the command",
            err=True,
        )
        raise SystemExit(2) from None
