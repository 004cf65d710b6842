"""For the documentation site: roles such as :class:`Release` in docstrings become plain code, which they are about."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

ROLE = re.compile(r":(?:class|func|meth|attr|data|mod|exc):`~?([^`]+)`")


class DocstringRoles(Extension):
    """Write roles as code."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
