"""Arrow files of which bytes have changed: rows are read, or the file is called damaged; the process goes on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather

from expost.table.files import open_disk

BROKEN = """
import pathlib, random, sys
from expost import Schema
from expost.table.encoding import Encoding
from expost.table.files import open_disk
from expost.table.kinds import Categorical, Numeric
from expost.table.streamed import EncodedSource
path, draw, said = pathlib.Path(sys.argv[1]), random.Random(1), {}
other = lambda value: Categorical([value], other=True)
columns = {"x": Numeric((0, 2)), "text": other("a"), "coded": other("u"), "view": other("b")}
encoding = Encoding(Schema("y", columns, target_bounds=(0, 1)))
good = path.read_bytes()
for _ in range(150):
    bad = bytearray(good)
    for _ in range(draw.choice([1, 1, 3, 10])):
        bad[draw.randrange(len(bad))] = draw.randrange(256)
    path.write_bytes(bad)
    try:
        source = EncodedSource(open_disk(path), encoding)
        rows = sum(len(batch) for part in source.parts() for batch in source.read(part))
        kind = "read"
    except (ValueError, OSError) as error:
        kind = f"{error}".replace(str(path), "")[:21]
    said[kind] = said.get(kind, 0) + 1
print(sorted(said))
"""


def table():
    return pa.table(
        {
            "x": pa.array([1.5, None] * 30),
            "text": ["a", "bb", None] * 20,
            "coded": pa.array(["u", "v"] * 30).dictionary_encode(),
            "view": pa.array(["a" * 20, "b"] * 30, pa.string_view()),
            "y": np.linspace(0, 1, 60),
        }
    )


def test_changed_bytes_end_no_process(tmp_path):
    """Without a look at where texts lie Arrow reads beyond its memory, and the process is ended: that was seen."""
    path = tmp_path / "t.feather"
    pa.feather.write_feather(table(), path, compression="uncompressed", chunksize=20)
    done = subprocess.run([sys.executable, "-c", BROKEN, str(path)], capture_output=True, encoding="utf-8", check=True)
    kinds = done.stdout
    assert "'read'" in kinds
    assert "could not be read" in kinds


def test_bytes_that_are_no_text_stop_no_other_row(tmp_path):
    bad = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    pa.feather.write_feather(pa.table({"text": bad}), tmp_path / "t.feather")
    disk = open_disk(tmp_path / "t.feather")
    assert (disk.n, disk.count()) == (3, 3)
    [columns] = [columns for piece in disk.pieces() for columns in disk.read(piece, ["text"], frozenset(), 10)]
    assert columns["text"].cells() == ["a", None, "b"]
