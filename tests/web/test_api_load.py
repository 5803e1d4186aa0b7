"""Many at once on loopback: each is answered rightly, or told to come back; none is forgotten."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import shapely
import uvicorn

from dpregions.web.app import make_app
from dpregions.web.settings import Limits, Settings
from support.served import city, collection, feature

AREA = feature(shapely.geometry.mapping(shapely.Point(11, 48.49).buffer(0.02)))


@contextmanager
def listening(**limits):
    """A server with real connections, and the address below which its release is asked."""
    app = make_app({"city": city()}, settings=Settings(limits=Limits(**limits)))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_config=None))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            at = f"http://127.0.0.1:{bound.getsockname()[1]}"
            while not (server.started and json.load(urlopen(f"{at}/healthz"))["ready"]):
                time.sleep(0.02)
            yield f"{at}/api/v1/releases/{next(iter(app.state.serving.shelf))}"
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive(), "it ends when it is told to"


def asked(url, body=None):
    """The status of an answer, and what it says."""
    headers = {"Content-Type": "application/geo+json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, headers), timeout=60) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_rectangles_and_shapes_of_many_clients_are_answered_as_of_one():
    cells, shape = (2, 7, 3, 9), shapely.geometry.shape(AREA["geometry"])
    rectangle = city().count(*city().grid.cell_bounds(*cells))
    drawn = city().count(shape, crs=4326)

    def client(number):
        if number % 3:
            status, found = asked(f"{at}/count?cells=2,7,3,9")
            return status, found["count"] == rectangle
        status, found = asked(f"{at}/count", AREA)
        return status, found["properties"]["dpregions"]["count"] == drawn

    with listening() as at, ThreadPoolExecutor(24) as clients:
        answers = list(clients.map(client, range(120)))
    assert Counter(answers) == {(200, True): 120}


def test_a_crowd_with_long_requests_is_told_to_come_back_and_look_ups_go_on():
    many = collection(*[AREA] * 30)
    with listening(at_work=2, waiting=2, seconds=60) as at, ThreadPoolExecutor(16) as clients:
        long = [clients.submit(asked, f"{at}/count", many) for _ in range(12)]
        quick = [asked(f"{at}/count?cells=0,1,0,1")[0] for _ in range(20)]
        statuses = Counter(one.result()[0] for one in long)
        assert set(quick) == {200}
        assert statuses.keys() <= {200, 429} and statuses[200] >= 4
        assert asked(f"{at}/count", AREA)[0] == 200, "there is room again"
