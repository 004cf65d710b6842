"""Attacks that try to show a claimed ε wrong, for anybody to repeat: ``expost audit``.

The functions that ``fit`` calls are run on neighbouring data sets and lower bounds on what they let out are put beside
what they claim: by counting outcomes, by transcripts whose densities are known, by how far one row moves what gets
noise, and on tiny domains exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from expost.lazy import public_names

if TYPE_CHECKING:
    from expost.audit.attack import Attack as Attack, Found as Found, Setting as Setting
    from expost.audit.run import Audited as Audited, attacks as attacks, run_audit as run_audit

__getattr__, __all__ = public_names(__name__)
