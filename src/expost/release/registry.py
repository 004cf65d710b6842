"""An entry for the public registry of deployments of differential privacy that OpenDP keeps, as a YAML file.

The registry (github.com/opendp/deployments-registry-data) knows three tiers of detail; this is one of tier 3, with its
fields of 2026. What a release costs is an *ex-post* loss, for which the registry has no name of its own: the variant is
"Custom" and its privacy relation is written out, with the guarantee that was settled beforehand beside it. What neither
the release nor the project says is left blank and marked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from expost.release.project import SECTORS, Project
from expost.release.words import require_model, subject, to_compare, weighed
from expost.shown import up, visible

if TYPE_CHECKING:
    from expost.release.release import Release

_BLANK = "  # to fill in"


def registry_entry(release: Release, project: Project | None = None) -> str:
    """Return the entry, as a draft for its author to complete and to send.

    Raises
    ------
    ValueError
        If the release holds no model, or is no private one.

    Examples
    --------
    >>> from expost import Release
    >>> made = Release("released", "fixed", 0.5, epsilon_worst_case=2.0, hypothesis=[1.0], target="kwh")
    >>> print(registry_entry(made).splitlines()[1], registry_entry(made).count("to fill in") > 3)
    status: "Draft" True
    """
    require_model(release)
    if release.hypothesis is None:
        raise ValueError(f"release {release.id} was refused: it holds no model, so there is nothing to register")
    if not release.secure:
        raise ValueError(f"release {release.id} is a simulation from a seed: it protects nobody and is not registered")
    if math.isinf(release.epsilon):
        raise ValueError(f"release {release.id} has no noise: it is not private and is not registered")
    return "\n".join(_lines(_entry(release, project or Project()))) + "\n"


def _lines(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    """Write YAML. A text is written as JSON writes it, which YAML reads as the same text: nothing in it can end it."""
    for name, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{name}:"
            yield from _lines(item, indent + "  ")
        elif isinstance(item, list):
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {_text(part)}" for part in item)
        elif item is None:  # one of a list that has no blank
            yield f"{indent}# {name}: one of {', '.join(SECTORS)}{_BLANK}"
        else:
            yield f"{indent}{name}: {_text(item)}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    return json.dumps(visible(value), ensure_ascii=False) + ("" if value else _BLANK)


def _entry(release: Release, project: Project) -> dict[str, Any]:
    what = release.target or "a target"
    day = release.date or ""
    slug = re.sub(r"[^a-z0-9]+", "_", f"{project.curator} {what} {day[:4]}".lower()).strip("_") or "release"
    unit = release.unit
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": f"Model of {what}" + (f" from {project.data_set}" if project.data_set else ""),
                "data_curators": [project.curator],
                "intended_use": project.purpose,
                "data_product_type": "Machine learning model",
                "data_product_region": project.region,
                "description": _described(release),
                "publication_date": day,
                "data_product_sector": project.sector or None,
            },
            "dp_variant": {
                "variant_name": "Custom",
                "data_domain": f"Tables of the published schema, the number of rows public: {subject(release)}. "
                "Values are moved into bounds, and categories into lists, that were stated from public knowledge.",
                "unprotected_quantities": "The number of rows and the schema, which are public. "
                + " ".join(f"{line[:1].upper()}{line[1:]}." for line in release.not_covered),
            },
            "privacy_loss": {
                "privacy_unit": unit,
                "privacy_unit_details": release.neighbours,
                "privacy_parameters": {
                    "epsilon": float(up(release.epsilon, 6)),
                    **({"delta": release.delta} if release.delta else {}),
                },
                "privacy_parameters_details": _loss(release),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "The curator holds the rows as they were collected and runs the library on them.",
                "actors": _actors(project),
                "release_type": "One release",
                "release_type_details": "",
                "data_source_type": "Static",
                "data_source_type_details": "One table as it was on the day of the release.",
                "access_type": "Non-interactive",
                "access_type_details": "The model is published as it is; using it costs no privacy.",
            },
            "accounting": {
                "post_processing": "Coefficients are restated in the units of the table; predictions, pictures and "
                "bands are computed from the published numbers alone.",
                "composition": "All that this search released, looks at the table, tests and models, adds up to the "
                "stated loss"
                + (
                    f"; {release.unit}s for tests and for models were disjoint, so the larger counts. "
                    if release.held_out
                    else ". "
                )
                + "Releases about the same rows add up.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Bounds, categories and names of columns come from public "
                "knowledge, not from the rows. Noise and regularization were searched by the library, level by level; "
                "every level and every test is in the stated loss.",
                "mechanisms": _mechanisms(release, project),
                "justification": project.decision,
            },
            "administrative": {
                "sources": project.sources,
                "notes": f"Release {release.id}. Stated by the curator and not checked by the library: "
                f"{'; '.join(release.claims) or 'nothing further'}.",
                "registry_authors": [project.author],
            },
        },
    }


def _described(release: Release) -> str:
    compared = to_compare(release)
    return (
        f"A linear model: {subject(release)}. Promised: {release.promise.statement}."
        + (f" To compare: {compared}." if compared else "")
        + (f" Weighted: {weighed(release)}." if weighed(release) else "")
    )


def _loss(release: Release) -> str:
    """Write the privacy relation out, and the guarantee beforehand."""
    paid, most = up(release.epsilon, 6), release.epsilon_worst_case
    unit = release.unit
    if release.delta:
        said = (
            f"Ex-post privacy loss at delta = {up(release.delta, 6)}, settled beforehand: for every ordered pair of "
            f"tables that differ in one {unit}, the chance that the outcome is more than e^epsilon(outcome) times as "
            f"likely for the one as for the other is at most delta. epsilon is that of the outcome published, {paid}; "
            f"in the usual sense of (epsilon, delta) it is {up(release.epsilon_usual, 6)}."
        )
    else:
        said = (
            f"Ex-post privacy loss (Ligett, Neel, Roth, Waggoner, Wu 2017, Accuracy First): for tables that differ "
            f"in one {unit}, the outcome that was published has probabilities, or densities, whose ratio is at most "
            f"e^epsilon, epsilon = {paid}. It is the loss of this outcome, known after the run."
        )
    if math.isinf(most):
        return f"{said} Before the run there was no bound."
    kind = "pure" if not release.delta else f"approximate (delta = {up(release.delta, 6)})"
    return (
        f"{said} Before the run it was settled that no outcome costs more than {up(most, 6)}: the search as a whole "
        f"has {kind} differential privacy with epsilon = {up(most, 6)}."
    )


def _actors(project: Project) -> str:
    to = f"Recipient of the model: {project.recipient}. " if project.recipient else ""
    return f"{to}The curator is trusted with the rows. Whoever sees the release may know all other rows and the method."


def _mechanisms(release: Release, project: Project) -> str:
    named = ", ".join(part for part in (release.method, release.perturbation, release.calibration) if part)
    version = release.versions.get("expost", "of unknown version")
    floats = (
        "Noise is drawn exactly, by integer arithmetic, from a cryptographic source."
        if release.noise == "exact"
        else "Noise of tests is drawn exactly; noise in the fit is continuous and analysed over the reals, so its "
        "rounding is not covered. Both come from a cryptographic source."
    )
    return (
        f"Library expost {version}; method {named}. {floats} Running time is not covered: the release says no time of "
        f"day. Safeguards of the rows: {project.security or '(to fill in)'}"
    )
