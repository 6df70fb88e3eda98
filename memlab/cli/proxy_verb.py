"""The verb that stands between a memory and its model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from memlab.cli import shared_options as opt
from memlab.cli.shared_options import echo, register_command
from memlab.errors import DataError
from memlab.terminal_text import count_noun

GROUP = "Measure"
PORT = 8765
PAUSE = 0.2


@register_command(GROUP, "proxy --recorded calls.jsonl")
def proxy(
    record: Annotated[
        Path | None,
        typer.Option(
            help="Ask --service what is not in this file, and write it down.", show_default=False
        ),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            help="Answer from this file alone; what is not in it is refused.", show_default=False
        ),
    ] = None,
    service: Annotated[
        str | None, typer.Option(help="One of [llm.services]; with --record.", show_default=False)
    ] = None,
    port: Annotated[
        int, typer.Option(help="To listen on; 0 takes a free one.", min=0, max=65535)
    ] = PORT,
    encoder: opt.EncoderName = None,
) -> None:
    """Serve a model on this machine for a memory: its calls are recorded, or read back.

    The server is OpenAI-compatible (chat completions, embeddings, models) and listens on
    127.0.0.1. Texts are embedded by the encoder of the settings. Ctrl-C ends it and prints what was
    asked.
    """
    if (record is None) == (recorded is None):
        raise DataError("give --record FILE with --service NAME, or --recorded FILE")
    if (record is None) != (service is None):
        raise DataError(
            "--record and --service go together: the service is asked, the file keeps it"
        )
    if recorded is not None and not recorded.is_file():
        raise DataError(f"{recorded} is no file; record one with --record FILE --service NAME")
    from memlab.llm.proxy import ModelProxy

    settings = opt.settings_in_force(encoder=encoder)
    model_proxy = ModelProxy(
        record or recorded, service=service, encoder=opt.load_encoder(settings), port=port
    )
    model_proxy.start()
    try:
        recorded_now = count_noun(len(model_proxy.exchanges), "exchanges")
        echo(f"{recorded_now} recorded; serving until Ctrl-C at {model_proxy.url}")
        for variable, variable_value in model_proxy.variables.items():
            if variable.startswith("OPENAI"):
                echo(f"export {variable}={variable_value}")
        # A library's handler of Ctrl-C may not wake a wait without an end.
        while True:
            time.sleep(PAUSE)
    except KeyboardInterrupt:
        echo()
    finally:
        model_proxy.stop()
        for report_line in model_proxy.lines():
            echo(report_line)
