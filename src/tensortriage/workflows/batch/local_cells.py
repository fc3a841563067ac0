"""Where cells run: a small border, with processes of this machine behind it; a cluster is another executor."""

import concurrent.futures
from types import TracebackType
from typing import Protocol, Self

from tensortriage.report.batch.batch_result import CellEnding
from tensortriage.runs.commands.process import Processes
from tensortriage.workflows.batch.run_cell import CellTask, run_cell


class CellExecutor(Protocol):
    """Runs cells. No result depends on the order in which they end."""

    def submit(self, task: CellTask, /) -> None:
        """Take a cell; never waits."""
        ...

    def running(self) -> int:
        """Return about how many cells run side by side."""
        ...

    def wait(self) -> list[tuple[CellTask, CellEnding]]:
        """Wait until at least one cell has ended, and return all that have."""
        ...

    def close(self) -> None:
        """End what is running, and start nothing new."""
        ...


class LocalCells:
    """Runs cells in processes of this machine.

    Args:
        jobs: Cells at once.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._processes = Processes()
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs, thread_name_prefix="cell")
        self._tasks: dict[concurrent.futures.Future[CellEnding], CellTask] = {}

    def submit(self, task: CellTask, /) -> None:
        """Take a cell."""
        self._tasks[self._pool.submit(run_cell, task, self._processes)] = task

    def running(self) -> int:
        """Return how many cells run side by side."""
        return min(self._jobs, len(self._tasks))

    def wait(self) -> list[tuple[CellTask, CellEnding]]:
        """Wait for cells that end.

        Raises:
            StoreError: As `tensortriage.workflows.batch.run_cell.run_cell`.
        """
        done, _ = concurrent.futures.wait(self._tasks, return_when=concurrent.futures.FIRST_COMPLETED)
        return [(self._tasks.pop(future), future.result()) for future in done]

    def close(self) -> None:
        """Kill what is running, and start nothing new."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._processes.close()
        self._pool.shutdown(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
