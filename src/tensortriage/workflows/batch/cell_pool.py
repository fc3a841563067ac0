"""Where cells run: threads that wait for commands, on this machine with its GPUs or on a cluster."""

import concurrent.futures
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tensortriage.engines.process.gpus import Gpus
from tensortriage.report.batch.batch_result import CellEnding
from tensortriage.runs.commands.process import RunsCommands
from tensortriage.workflows.batch.run_cell import CellTask, run_cell


class CellPool:
    """Runs cells; no result depends on the order in which they end.

    Args:
        jobs: Cells at once.
        commands: Gives where the command of a cell runs.
        gpus: Those of this machine, where it runs here.
    """

    def __init__(self, jobs: int, commands: Callable[[CellTask], RunsCommands], gpus: Gpus) -> None:
        self._jobs = jobs
        self._commands = commands
        self._gpus = gpus
        self._used: list[RunsCommands] = []
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs, thread_name_prefix="cell")
        self._tasks: dict[concurrent.futures.Future[CellEnding], CellTask] = {}

    def submit(self, task: CellTask, /) -> None:
        """Take a cell."""
        where = self._commands(task)
        if where not in self._used:
            self._used.append(where)
        self._tasks[self._pool.submit(self._run, task, where)] = task

    def _run(self, task: CellTask, where: RunsCommands) -> CellEnding:
        with self._gpus.taken(max(task.gpus, int(task.on_gpu))):
            return run_cell(task, where)

    def running(self) -> int:
        """Return how many cells run side by side."""
        return min(self._jobs, len(self._tasks))

    def wait(self) -> list[tuple[CellTask, CellEnding]]:
        """Wait until at least one cell has ended, and return all that have.

        Raises:
            StoreError: As `tensortriage.workflows.batch.run_cell.run_cell`.
        """
        done, _ = concurrent.futures.wait(self._tasks, return_when=concurrent.futures.FIRST_COMPLETED)
        return [(self._tasks.pop(future), future.result()) for future in done]

    def close(self) -> None:
        """Kill what is running, and start nothing new."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for commands in self._used:
            commands.close()
        self._pool.shutdown(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
