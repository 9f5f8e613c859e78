"""When so many records are given up that the fault is not theirs. Pure."""

from collections import deque


class GivenUp:
    """Counts records that were given up against those that were completed.

    Args:
        max_consecutive: in a row, None for no bound.
        max_ratio: of the last `window` records, None for no bound.
        window: records.
    """

    def __init__(self, max_consecutive: int | None, max_ratio: float | None, window: int) -> None:
        self._max_consecutive = max_consecutive
        self._most_in_window = None if max_ratio is None else max(1, int(max_ratio * window))
        self._window = window
        self._run = 0
        self._completed_before = -1
        self._places: deque[int] = deque()
        self._given_up = 0

    @property
    def recent(self) -> int:
        """How many of those that were given up are still looked at; no more than the window has records."""
        return len(self._places)

    def note(self, completed: int) -> str | None:
        """Note that one more record is about to be given up; return why to stop instead, None to go on.

        Args:
            completed: records completed so far, those given up not counted.
        """
        run = self._run + 1 if completed == self._completed_before else 1
        if self._max_consecutive is not None and run >= self._max_consecutive:
            return f"{run} records in a row failed for good"
        place = completed + self._given_up
        while self._places and self._places[0] <= place - self._window:
            self._places.popleft()
        if self._most_in_window is not None and len(self._places) + 1 >= self._most_in_window:
            return f"{len(self._places) + 1} of the last {self._window} records failed for good"
        self._run, self._completed_before = run, completed
        self._given_up += 1
        self._places.append(place)
        return None
