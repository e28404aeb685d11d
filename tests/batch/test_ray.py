"""The same batch on a Ray cluster, with actors and whole nodes that are lost."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stand_in
from documents import mixed_folder, pdf
from runs import Witness, go, journals, options_of, results

from ocria.batch import BatchOptions
from ocria.batch.ray_crew import RayCrew
from ocria.batch.session import run_batch
from ocria.document import Page
from ocria.errors import DeviceError, ExitCode
from ocria.options import ParseOptions

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow,
    # Ray leaves files and sockets to the interpreter's end.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(autouse=True)
def travelling_stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Actors get the stand-in model by value: they cannot import the tests."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    ray.cloudpickle.register_pickle_by_value(stand_in)
    yield
    ray.cloudpickle.unregister_pickle_by_value(stand_in)
    ray.shutdown()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    mixed_folder(folder, 60)
    (folder / "long.pdf").write_bytes(pdf(90, 99))
    return folder


@pytest.fixture
def clean(source: Path) -> dict[str, bytes]:
    options = options_of(source, out_dir=source.parent / "clean")
    assert go(options)[0] == ExitCode.OK
    return results(options)


def on_ray(source: Path, address: str = "local") -> BatchOptions:
    parse = ParseOptions(model="stand-in", device="cpu")
    return options_of(source, ray=address, jobs=1, parse=parse)


class Disturber(Witness):
    """Does something to the cluster once, after some pages."""

    def __init__(self, after: int, disturb: Any) -> None:
        super().__init__()
        self.crew: RayCrew | None = None
        self.is_done = False
        self._after, self._disturb = after, disturb

    def page_read(self, name: str, page: Page) -> None:
        super().page_read(name, page)
        if len(self.pages) >= self._after and not self.is_done:
            self.is_done = True
            self._disturb(self.crew)


def run(options: BatchOptions, witness: Witness) -> ExitCode:
    def open_crew(options: BatchOptions) -> RayCrew:
        crew = RayCrew(options, stand_in.open_lane)
        if isinstance(witness, Disturber):
            witness.crew = crew
        return crew

    return run_batch(options, witness, open_lanes=open_crew)[0]


def check(options: BatchOptions, witness: Witness, clean: dict[str, bytes]) -> None:
    assert results(options) == clean and journals(options) == []
    assert len(witness.pages) == len(set(witness.pages)), "a page that had come back was read again"


def test_a_local_cluster_writes_what_one_process_writes(
    source: Path, clean: dict[str, bytes]
) -> None:
    options, witness = on_ray(source), Witness()
    assert run(options, witness) == ExitCode.OK
    check(options, witness, clean)


def test_a_killed_actor(source: Path, clean: dict[str, bytes]) -> None:
    def kill(crew: RayCrew) -> None:
        actor = crew._members[0].handle.actor
        os.kill(ray.get(actor.__ray_call__.remote(lambda self: os.getpid())), signal.SIGKILL)

    options, witness = on_ray(source), Disturber(30, kill)
    assert run(options, witness) == ExitCode.OK and witness.is_done
    check(options, witness, clean)


def test_a_lost_node(source: Path, clean: dict[str, bytes]) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        options = on_ray(source, cluster.address)
        witness = Disturber(30, lambda crew: cluster.remove_node(node, allow_graceful=False))
        started = time.monotonic()
        assert run(options, witness) == ExitCode.OK and witness.is_done
        assert time.monotonic() - started < 240
        check(options, witness, clean)
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_cluster_that_is_not_there(source: Path) -> None:
    with pytest.raises(DeviceError, match="no Ray cluster"):
        RayCrew(on_ray(source, "127.0.0.1:1"), stand_in.open_lane)
