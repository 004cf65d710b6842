"""Pages of the documentation site that are made of something else: parsers, docstrings, notebooks, files beside docs/.

MkDocs calls `on_files` and `on_page_markdown`. Nothing is written into docs/.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from run_notebook import as_markdown, read  # noqa: E402  # found by the line above

BESIDE = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
RESULTS = ("benchmarks/results", "experiments/results")
# rooms whose public names are pieces that stand alone, after those that `expost` itself offers
PIECES = ("exceptions", "noise", "search", "mechanisms", "goals", "solve", "table", "passes", "account", "release")
PIECES += ("planning", "estimators", "datasets")
GROUPS = {
    "Models": ("estimators",),
    "Goals": ("goals",),
    "Tables and bounds": ("table",),
    "Engines": ("passes",),
    "Plans": ("planning",),
    "Releases and budgets": ("release", "account"),
    "Searches": ("search",),
}


# --- the command line, from its parsers ------------------------------------------------------------------------------


def cli_page() -> str:
    """Return the reference of the command line."""
    from expost.cli.command import COMMANDS, build_parser

    parts = ["# The command line", build_parser(None)[0].description or ""]
    parts.append("\n".join(["| command | |", "|---|---|"] + [_row(name, what) for name, (_, what) in COMMANDS.items()]))
    parts.append("Errors are one line on standard error. `expost COMMAND --help` shows what stands here.")
    for name in COMMANDS:
        parts += [f"## {name}", *_command(name, build_parser(name)[1])]
    return "\n\n".join(parts) + "\n"


def _row(name: str, what: str) -> str:
    return f"| [`expost {name}`](#{name}) | {what} |"


def _command(name: str, parser: argparse.ArgumentParser) -> list[str]:
    parts = [parser.description or ""]
    from expost.cli.command import COMMANDS

    home = importlib.import_module(COMMANDS[name][0])
    examples = getattr(home, "EXAMPLES", ())
    if examples:
        parts.append("\n".join(["```sh", *examples, "```"]))
    subparsers = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
        ]
        rows = [_option(action) for action in actions if action not in subparsers]
        if rows:
            parts += [f"**{group.title}**", "\n".join(["| option | |", "|---|---|", *rows])]
    for action in subparsers:
        for inner, sub in action.choices.items():
            parts += [f"### {name} {inner}", *_command(name, sub)[:1], *_options_of(sub)]
    exits = getattr(home, "EXITS", {})
    if exits:
        parts.append("\n".join(["| exit status | |", "|---|---|", *(f"| {k} | {v} |" for k, v in exits.items())]))
    return parts


def _options_of(parser: argparse.ArgumentParser) -> list[str]:
    rows = [_option(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    return ["\n".join(["| option | |", "|---|---|", *rows])] if rows else []


def _option(action: argparse.Action) -> str:
    formatter = argparse.HelpFormatter("expost")
    names = ", ".join(action.option_strings) or action.dest
    value = formatter._format_args(action, (action.metavar or action.dest.upper())) if action.option_strings else ""
    if action.choices is not None and action.option_strings and not isinstance(action.metavar, str | tuple):
        value = " or ".join(map(str, action.choices))
    text = (
        (action.help or "") % {"default": action.default, "const": action.const, "prog": "expost"}
        if action.help
        else ""
    )
    shown = f"{names} {value}".strip().replace("|", "\\|")
    return f"| `{shown}` | {text.replace('|', chr(92) + '|')} |"


# --- the library, from its docstrings --------------------------------------------------------------------------------


def api_page() -> str:
    """Return the page of what `import expost` offers, in groups."""
    import expost

    parts = ["# The library", "What most people need: `from expost import …`. The rest is on [pieces.md](pieces.md)."]
    homes = {name: getattr(expost, name).__module__.split(".")[1] for name in expost.__all__ if name != "__version__"}
    others = set(homes.values()) - {room for rooms in GROUPS.values() for room in rooms}
    for title, rooms in {**GROUPS, "Others": tuple(others)}.items():
        names = sorted(name for name, home in homes.items() if home in rooms)
        parts += [f"## {title}"] * bool(names) + [_entry(getattr(expost, name), name) for name in names]
    return "\n\n".join(parts) + "\n"


def pieces_page() -> str:
    """Return the page of the rooms' public names that `import expost` does not offer itself."""
    import expost

    parts = ["# Pieces", "Each room's names, usable alone. [The rooms](../architecture.md) say what is where."]
    seen = set(expost.__all__)
    for room in PIECES:
        module = importlib.import_module(f"expost.{room}")
        entries = []
        for name in sorted(set(getattr(module, "__all__", dir(module))) - seen):
            value = getattr(module, name)
            if getattr(value, "__doc__", None) and str(getattr(value, "__module__", "")).startswith("expost."):
                entries.append(_entry(value, name))
                seen.add(name)
        if entries:
            parts += [f"## expost.{room}", (module.__doc__ or "").split("\n\n")[0].replace("\n", " "), *entries]
    return "\n\n".join(parts) + "\n"


def _entry(value: Any, name: str) -> str:
    return f"::: {value.__module__}.{name}"


# --- what MkDocs calls -----------------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made, and the files beside docs/ that pages link to."""
    from mkdocs.structure.files import File

    made = {"reference/cli.md": cli_page(), "reference/api.md": api_page(), "reference/pieces.md": pieces_page()}
    made |= {page: (ROOT / name).read_text(encoding="utf-8") for name, page in BESIDE.items()}
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        made[f"notebooks/{path.stem}.md"] = as_markdown(read(path))
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for folder in RESULTS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file():
                name = path.relative_to(ROOT).as_posix()
                files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to where pages stand on the site."""
    here = page.file.src_uri
    if here in BESIDE.values():
        markdown = markdown.replace("](docs/", "](")
        for name, target in BESIDE.items():
            markdown = markdown.replace(f"]({name}", f"]({target}")
    elif "/" not in here:
        for name, target in BESIDE.items():
            markdown = markdown.replace(f"](../{name}", f"]({target}")
        markdown = markdown.replace(".ipynb)", ".md)")
        markdown = re.sub(r"\]\(\.\./((?:benchmarks|experiments)/results/)", r"](\1", markdown)
    return markdown
