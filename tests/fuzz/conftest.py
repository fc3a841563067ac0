"""What the fuzzers share: a server of forks, and the counts that the summary tells."""

import pytest

from hostile.fork_server import ForkServer
from hostile.tally import SEED, Tally

_tally = Tally()


@pytest.fixture(scope="session")
def commands(tmp_path_factory):
    server = ForkServer(tmp_path_factory.mktemp("forks"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def tally():
    print(f"FUZZ_SEED={SEED}", flush=True)  # noqa: T201 - at once, for whoever watches a long run
    return _tally


@pytest.fixture(autouse=True)
def _counted(request):
    _tally.clear()
    yield
    request.node.user_properties.append(("fuzz", {"seed": SEED, "counts": dict(_tally.counts)}))
    assert not _tally.findings, "\n\n".join(_tally.findings)
