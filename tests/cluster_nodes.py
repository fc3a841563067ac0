"""A Ray cluster of several nodes on this machine, in a process of its own that says its address and obeys lines.

``kill`` ends the node that was added last, as a machine that loses its power; the end of stdin ends all of it.
"""

import contextlib
import os
import secrets
import subprocess
import sys

SECRET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}


@contextlib.contextmanager
def cluster(folder, *, nodes, cpus):
    """Give the process and the environment of commands that find the cluster with ``--cluster auto``.

    Args:
        folder: For its files; its path must be short.
        nodes: Nodes besides the head, which runs nothing.
        cpus: Checks at once on each.
    """
    environment = {**os.environ, **SECRET, "RAY_TMPDIR": str(folder)}
    command = [sys.executable, __file__, str(nodes), str(cpus)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        address = running.stdout.readline().strip()
        try:
            yield running, {**environment, "RAY_ADDRESS": address}
        finally:
            running.stdin.close()


def kill_one(running):
    """End a node; return when it is gone."""
    running.stdin.write("kill\n")
    running.stdin.flush()
    assert running.stdout.readline().strip() == "killed"


def tell(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main():
    from ray.cluster_utils import Cluster

    nodes, cpus = int(sys.argv[1]), int(sys.argv[2])
    quiet = {"include_dashboard": False, "object_store_memory": 100 << 20}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
    workers = [made.add_node(num_cpus=cpus, object_store_memory=100 << 20) for _ in range(nodes)]
    tell(made.address)
    for _ in sys.stdin:
        made.remove_node(workers.pop(), allow_graceful=False)
        tell("killed")
    made.shutdown()


if __name__ == "__main__":
    main()
