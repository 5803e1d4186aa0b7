"""A release's card for a registry: what a deployment of differential privacy says of itself.

In the field names of the OpenDP deployments registry, as a draft: what a release cannot know (what
it is for, when it was published) is left empty for its owner. Public values alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpregions.crs import degrees_of, unit_label
from dpregions.errors import PrivacyError
from dpregions.lengths import shown_area, shown_degrees
from dpregions.releases.in_words import spent

if TYPE_CHECKING:
    from dpregions.releases.published import Release


def registry_card(release: Release) -> dict[str, Any]:
    """Return the card, in the registry's nested fields."""
    if not release.private:
        raise PrivacyError("this is a study's release, not private: it is no deployment")
    said = dict(release.sign_off)
    facts = dict(release.declared)
    return {
        "status": "Draft",
        "deployment": {
            "product": _product(release, facts),
            "dp_flavor": {
                "name": "Pure DP",
                "input_metric": release.privacy_unit.describe(),
                "data_domain": f"One convex region for each {release.unit}"
                + (f", of: {facts['source']}" if "source" in facts else ""),
                "unprotected_quantities": _unprotected(release),
            },
            "privacy_loss": {
                "privacy_unit": f"{release.unit.capitalize()}-level",
                "privacy_unit_description": release.privacy_unit.describe(),
                "privacy_parameters": {"epsilon": release.epsilon},
                "privacy_parameters_description": spent(release),
            },
            "model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Noisy counts are made whole and consistent, and queries are "
                "answered from them; neither sees the data again.",
                "composition": f"{_composition(release)} {_account(release)}",
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": said.get("settings", ""),
                "mechanisms": f"Method {release.method!r} of dpregions {release.version}: "
                f"{release.noise}. {_software(release)}",
                "justification": said.get("epsilon", ""),
            },
            "resources": {"sources": "", "registry_authors": []},
        },
    }


def _product(release: Release, facts: dict[str, str]) -> dict[str, Any]:
    dataset = "" if release.ledger_entry is None else release.ledger_entry.split("/")[1]
    grid = release.grid
    place = "" if grid.crs is None else shown_area(grid)
    extent = None if grid.crs is None else degrees_of(grid.bounds, grid.crs)
    where = place if extent is None else f"{place}, {shown_degrees(extent)}"
    return {
        "name": dataset,
        "data_curators": [facts["owner"]] if "owner" in facts else [],
        "intended_use": "",
        "data_product_type": "Summary statistics",
        "data_product_region": where,
        "description": f"Counts of the {release.unit}s' regions that touch any area"
        + (f", {facts['period']}" if "period" in facts else "")
        + f", on {grid.cells_in_words}.",
        "publication_date": "",
        "data_product_sector": "",
    }


def _unprotected(release: Release) -> str:
    longer = {"shrink": "shrunk to it", "drop": "left out"}[release.oversize]
    return (
        f"Public parameters, chosen without looking at the data: the area and its cells "
        f"({release.grid.cells_in_words}), the largest diameter of a region "
        f"({release.max_diameter:g} {unit_label(release.grid.crs)}; longer ones are {longer}), "
        f"epsilon. Nothing that was counted is published without noise."
    )


def _composition(release: Release) -> str:
    beside = release.is_of_groups and len(release.spending) == 1
    of, together = (
        (" of each group", ", as much as all groups cost together") if beside else ("", "")
    )
    return (
        f"Basic composition: the shares of all measurements{of} add up to "
        f"epsilon = {release.budget}{together}."
    )


def _account(release: Release) -> str:
    if release.ledger_entry is None:
        return "Whether there are other releases of the same data is not recorded."
    return f"Paid from a ledger that adds up all releases of the data set: {release.ledger_entry}."


def _software(release: Release) -> str:
    drawn = ", ".join(f"{name} {version}" for name, version in release.software)
    return (
        f"Noise in exact integer arithmetic, from the operating system's randomness, by {drawn}."
        if drawn and release.private
        else ""
    )
