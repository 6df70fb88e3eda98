"""Write tables into a TOML file and leave every other value and comment of it as it is."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memlab.errors import DataError
from memlab.files import atomic


def write(path: Path, under: str, tables: Mapping[str, Mapping[str, Any]]) -> Path:
    """Replace tables of a file, such as ``[confidence.decay]``.

    The result is read back before it is written: if anything but these tables would change, nothing is written.

    :param under: the table that they are in.
    :param tables: by name; each holds numbers, texts and tables. An empty one is taken out of the file.
    :raises DataError: when the file is not valid TOML, or holds the tables in a way that cannot be replaced alone.
    """
    import tomlkit

    try:
        old = path.read_bytes().decode() if path.exists() else ""
        wanted, document = tomllib.loads(old), tomlkit.parse(old)
    except (tomllib.TOMLDecodeError, tomlkit.exceptions.TOMLKitError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid TOML: {error}; mend that line first") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    outer = document.setdefault(under, tomlkit.table(is_super_table=True))
    if isinstance(outer, Mapping):
        _fill(outer, {**outer, **tables})
        wanted[under] = {name: table for name, table in {**wanted.get(under, {}), **tables}.items() if table != {}}
    new = tomlkit.dumps(document)
    if "\r\n" in old:
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    if not isinstance(outer, Mapping) or tomllib.loads(new) != wanted:
        raise DataError(
            f"{path} holds {under} in a way that cannot be changed alone; write this into it by hand:\n"
            + tomlkit.dumps({under: tables})
        )
    with atomic(path.resolve()) as stream:
        stream.write(new.encode())
    return path


def _fill(table: Any, values: Mapping[str, Any]) -> None:
    """Let a table hold some values and no others; comments at its end stay there."""
    body, end = getattr(getattr(table, "value", None), "body", []), []
    while body and body[-1][0] is None:
        end.append(body.pop()[1])
    for key in [key for key in table if values.get(key, {}) == {}]:
        del table[key]
    for key, value in values.items():
        if isinstance(value, Mapping) and key in table:
            _fill(table[key], value)
        elif value != {}:
            table[key] = value
    for item in reversed(end):
        table.add(item)
