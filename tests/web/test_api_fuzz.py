"""Whatever is asked, the API answers or refuses as its OpenAPI document says: no 500."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from support.served import Served, city, later_city, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

NUMBERS = st.one_of(
    st.floats(8, 13).map(str),
    st.floats(47, 49).map(str),
    st.integers(-3, 20).map(str),
    st.sampled_from(["nan", "-inf", "1e308", "1e999", "-1e308", "0", "", "1_0", "٣", "1e-320"]),
)
LISTS = st.lists(NUMBERS, max_size=5).map(",".join)
COORDINATES = st.recursive(
    st.one_of(
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(10.95, 11.05),
        st.integers(),
        st.none(),
        st.text(max_size=3),
    ),
    lambda part: st.lists(part, max_size=4),
    max_leaves=12,
)
RINGS = st.lists(
    st.tuples(st.floats(10.9, 11.1), st.floats(48.4, 48.6)).map(list), min_size=3, max_size=8
).map(lambda ring: [[*ring, ring[0]]])
GEOMETRIES = st.one_of(
    st.fixed_dictionaries({"type": st.just("Polygon"), "coordinates": RINGS}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(
                ["Point", "LineString", "Polygon", "MultiPoint", "MultiPolygon", "Circle"]
            ),
            "coordinates": COORDINATES,
        }
    ),
    st.none(),
)
FEATURES = st.fixed_dictionaries(
    {"type": st.sampled_from(["Feature", "feature"]), "geometry": GEOMETRIES},
    optional={"properties": st.one_of(st.none(), st.dictionaries(st.text(max_size=4), st.text()))},
)


@pytest.fixture(scope="module")
def served() -> Served:
    with serving({"city": city(), "later": later_city()}) as found:
        yield found


def test_every_route_answers_as_the_document_says():
    """Half of the cases are of a release that is here: a random text is never its id."""
    with serving({"city": city(), "later": later_city()}, names=("testserver",)) as served:
        schema = schemathesis.openapi.from_asgi("/openapi.json", served.client.app)
        operations = [found.ok() for found in schema.get_all_operations()]
        assert len(operations) >= 15
        for operation in operations:
            answers_as_documented(operation, served)


def answers_as_documented(operation, served):
    @given(operation.as_strategy(), st.booleans())
    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    def holds(case, is_here):
        if is_here and "id" in case.path_parameters:
            case.path_parameters["id"] = served.ids[0]
        case.call_and_validate(checks=CHECKS)

    holds()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "cells": LISTS,
            "bbox": LISTS,
            "point": LISTS,
            "radius": NUMBERS,
            "coords": st.one_of(
                LISTS.map(lambda text: f"POLYGON(({text}))"),
                LISTS.map(lambda text: f"LINESTRING({text.replace(',', ' ')}, 11 48.5)"),
                st.text(max_size=20),
            ),
            "crs": st.sampled_from(["EPSG:4326", "EPSG:3857", "EPSG:32632", "EPSG:5041", "none"]),
            "snap": st.sampled_from(["drawn", "touched", "enclosing"]),
            "confidence": NUMBERS,
        },
    )
)
@settings(max_examples=150)
def test_numbers_of_any_kind_are_answered_or_refused(served, params):
    response = served.client.get(served.at("count"), params=params)
    assert response.status_code in (200, 400, 422), (params, response.text)
    if response.status_code == 200:
        found = response.json()
        assert found["outside"] or 0 <= found["low"] <= found["count"] <= found["high"]


@given(
    st.one_of(
        FEATURES,
        st.fixed_dictionaries(
            {"type": st.just("FeatureCollection"), "features": st.lists(FEATURES, max_size=3)}
        ),
        COORDINATES,
    ),
    st.sampled_from(["drawn", "touched", "enclosing"]),
)
@settings(max_examples=150)
def test_bodies_of_any_kind_are_answered_or_refused(served, body, snap):
    response = served.post(body, snap=snap)
    assert response.status_code in (200, 400, 422), (body, response.text)
