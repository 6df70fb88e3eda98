"""Write tables into a TOML file and leave every other character of it as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memlab.errors import DataError
from memlab.files import atomic

_HEADER = re.compile(r"^\s*\[{1,2}[^\[\]]*(\"[^\"]*\"[^\[\]]*)*\]{1,2}\s*(#.*)?$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_BARE = re.compile(r"^[A-Za-z0-9_-]+$")


def write(path: Path, under: tuple[str, ...], tables: Mapping[str, Mapping[str, Any]]) -> Path:
    """Replace tables of a file, such as ``[confidence.decay]``, and keep the rest to the letter.

    The result is read back before it is written: if anything but these tables would change, nothing is written.

    :param under: the table that they are in.
    :param tables: by name; each holds numbers, texts and tables. An empty one is taken out of the file.
    :raises DataError: when the file is not valid TOML, or holds the tables in a way that cannot be replaced alone.
    """
    try:
        old = path.read_bytes().decode() if path.exists() else ""
        before = tomllib.loads(old)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid TOML: {error}; mend that line first") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    end = "\r\n" if "\r\n" in old else "\n"
    block = [line for name, table in tables.items() for line in _lines((*under, name), table)][:-1]
    kept = _without(old, [(*under, name) for name in tables])
    if kept and block:
        kept += (end if not kept.endswith("\n") else "") + (end if not kept.endswith(end * 2) else "")
    new = kept + "".join(line + end for line in block)
    try:
        after = tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        after = {}
    wanted = _merged(_pruned(before, under, tables), under, tables)
    if after != wanted:
        raise DataError(
            f"{path} holds {'.'.join(under)} in a way that cannot be changed alone; write this into it by hand:\n"
            + "\n".join(block)
        )
    with atomic(path.resolve()) as stream:
        stream.write(new.encode())
    return path


def _lines(name: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    flat = {key: value for key, value in table.items() if key not in inner}
    lines = (
        [f"[{'.'.join(map(_key, name))}]", *(f"{_key(k)} = {_value(v)}" for k, v in flat.items()), ""] if flat else []
    )
    return lines + [line for key, value in inner.items() for line in _lines((*name, key), value)]


def _key(name: str) -> str:
    return name if _BARE.match(name) else _text(name)


def _value(value: Any) -> str:
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """Quote a text: a JSON string is a TOML string, but for the delete character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without(text: str, names: list[tuple[str, ...]]) -> str:
    """Leave out the sections of some tables; comments and blank lines before the next header stay with that."""
    kept, held, inside = list[str](), list[str](), False
    for line in _LINE.findall(text):
        path = _path(line)
        if path is not None:
            inside = any(path[: len(name)] == name for name in names)
            kept, held = kept + (_comments(held) if inside else held), []
        if not inside:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            held.append(line)
        else:
            held = []
    return "".join(kept + (_comments(held) if inside else held))


def _comments(lines: list[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def _path(line: str) -> tuple[str, ...] | None:
    """Read the name of the table that a line opens; ``None`` for any other line."""
    if not _HEADER.match(line):
        return None
    try:
        found: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while found:
        found = found[0] if isinstance(found, list) else found
        if not found:
            break
        key = next(iter(found))
        path.append(key)
        found = found[key]
    return tuple(path)


def _pruned(held: dict[str, Any], under: tuple[str, ...], tables: Mapping[str, Any]) -> dict[str, Any]:
    if not under:
        return {key: value for key, value in held.items() if key not in tables}
    inner = held.get(under[0])
    return {**held, under[0]: _pruned(inner, under[1:], tables)} if isinstance(inner, dict) else held


def _merged(held: dict[str, Any], under: tuple[str, ...], tables: Mapping[str, Any]) -> dict[str, Any]:
    if not under:
        return held | {key: value for key, value in tables.items() if value}
    return held | {under[0]: _merged(held.get(under[0], {}), under[1:], tables)}
