"""Run a notebook, without Jupyter, and show it as Markdown.

    python tools/run_notebook.py docs/notebooks/first_model.ipynb     # runs it and keeps what it prints and draws

Cells run one after the other in one namespace. Kept are what they print, the value of a last expression (as a picture
or as HTML if it can be shown so), and figures.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """Return a notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def source(cell: dict[str, Any]) -> str:
    """Return the text of a cell."""
    return "".join(cell["source"])


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of its cells made anew; whatever a cell raises is raised."""
    names: dict[str, Any] = {"__name__": "__main__"}
    _close()  # what somebody else has left open is no picture of it
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": _outputs(source(cell), names, count)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(code: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(tree, f"<cell {count}>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if said.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": said.getvalue().splitlines(keepends=True)})
    pictures = list(_pictures())
    if value is not None and not pictures:
        outputs.append(
            {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": _shown(value)}
        )
    outputs += [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": base64.b64encode(picture).decode()}}
        for picture in pictures
    ]
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    """Return a value as Jupyter would show it."""
    if hasattr(value, "_repr_png_"):
        return {"image/png": base64.b64encode(value._repr_png_()).decode()}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_().splitlines(keepends=True)}
    return {"text/plain": repr(value).splitlines(keepends=True)}


def _pictures() -> list[bytes]:
    if "matplotlib.pyplot" not in sys.modules:
        return []
    pyplot = sys.modules["matplotlib.pyplot"]
    found = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, dpi=100, format="png")
        found.append(file.getvalue())
    _close()
    return found


def _close() -> None:
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def printed(notebook: dict[str, Any]) -> list[str]:
    """Return the text that each code cell has put out."""
    found = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            parts = [output.get("text", output.get("data", {}).get("text/plain", [])) for output in cell["outputs"]]
            found.append("".join("".join(part) for part in parts))
    return found


def as_markdown(notebook: dict[str, Any]) -> str:
    """Return the notebook as a page, what cells have put out included."""
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(source(cell))
            continue
        parts.append(f"```python\n{source(cell)}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f'<img alt="what the cell above draws" src="data:image/png;base64,{data["image/png"]}">')
            elif "text/html" in data:
                lines = "".join(data["text/html"]).splitlines()
                parts.append('<div class="shown">' + "\n".join(line for line in lines if line) + "</div>")
            else:
                text = "".join(output.get("text", data.get("text/plain", [])))
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run notebooks and write them back."""
    import matplotlib

    matplotlib.use("Agg")
    for name in sys.argv[1:]:
        made = run(read(Path(name)))
        Path(name).write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
