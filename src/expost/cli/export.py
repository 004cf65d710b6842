"""``expost export``: a released model for scikit-learn alone."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from expost.cli.options import check_release
from expost.cli.output import check_output
from expost.cli.predict import read_release
from expost.cli.terminal import print_line
from expost.whole import write_whole

DESCRIPTION = (
    "Write a released model as a pipeline of scikit-learn, which scores where expost is not installed: "
    "joblib.load(FILE).predict(frame). Nothing is spent."
)
EXAMPLES = ("expost export survey-satisfied.json --output model.joblib",)
EXITS = {0: "written", 2: "a mistake in the arguments or files; nothing was written"}


def add_arguments(export: argparse.ArgumentParser) -> None:
    """Add the options."""
    export.add_argument("model", type=Path, help="a release, as expost fit saves it")
    export.add_argument("--output", type=Path, metavar="FILE", required=True, help="where to, ending in .joblib")
    export.add_argument("--force", action="store_true", help="write over a file that is there already")


def run(options: argparse.Namespace) -> int:
    """Write the model; returns the exit status."""
    check_release(options.model)
    check_output(options.output, force=options.force, inputs=(options.model,))
    release = read_release(options.model)
    import joblib

    stream = io.BytesIO()
    try:
        joblib.dump(release.to_sklearn(), stream)
    except ImportError as error:  # pandas, where columns have names
        raise ValueError(f"{error}: pip install pandas. Nothing was written") from None
    write_whole(options.output, stream.getvalue(), force=options.force)
    print_line(
        f"{options.output} holds the model; load it with joblib.load, from people you trust only. It reads text as it "
        "stands: take spaces around labels and categories off first, as expost does"
    )
    return 0
