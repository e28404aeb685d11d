"""Several lanes, each a process elsewhere, as one: work shared out, what died done again.

A lane is spoken to by turns: it gets assignments and answers with messages. One that dies takes its
assignments with it; what these had delivered is kept, and the rest is done again: the first time as
it was, then page by page in a lane that has nothing else to do, so that the page that ends it for
the `MOST_DEATHS`th time is the one to blame. That one is failed.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ocria.batch.messages import (
    Assignment,
    Drawn,
    Finished,
    Message,
    Opened,
    PageRead,
    Refused,
    unread_pages,
)
from ocria.document import Generator
from ocria.errors import DeviceError

MOST_DEATHS = 3
Handle = TypeVar("Handle")


class LaneDied(Exception):
    """A lane ended without an answer; its words say how."""


@dataclass(slots=True)
class _Task:
    """An assignment with a lane, and what has come of it."""

    assignment: Assignment
    outer_key: int
    num_deaths: int = 0
    left: set[int] | None = None
    is_drawn: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether one more death fails it: it must be alone by then."""
        return self.num_deaths == MOST_DEATHS - 1


@dataclass(slots=True)
class _Member(Generic[Handle]):
    """A lane and the tasks that it holds, by their inner keys."""

    handle: Handle
    is_ready: bool = False
    tasks: dict[int, _Task] = field(default_factory=dict)
    unsent: list[Assignment] = field(default_factory=list)

    def takes(self, task: _Task, most_undrawn: int) -> bool:
        """Whether the lane could be given this one now."""
        if task.is_suspect:
            return not self.tasks
        has_suspect = any(held.is_suspect for held in self.tasks.values())
        return self.load[0] < most_undrawn and not has_suspect

    @property
    def load(self) -> tuple[int, int]:
        """Assignments that it has to draw, and all that it holds."""
        return sum(not task.is_drawn for task in self.tasks.values()), len(self.tasks)


class Crew(ABC, Generic[Handle]):
    """Lanes of one kind.

    Args:
        handles: the lanes; a lane's first answer is its greeting.
        jobs: documents that a lane draws side by side; it holds one more.

    Attributes:
        generator: what they read with.
    """

    def __init__(self, handles: Sequence[Handle], *, jobs: int) -> None:
        assert handles, "a crew has at least one lane"
        self._most_undrawn = jobs + 1
        self._members = [_Member(handle) for handle in handles]
        self.num_lanes = len(self._members)
        self._waiting: deque[_Task] = deque()
        self._num_open: dict[int, int] = {}
        self._announced: set[int] = set()
        self._next_key = 0
        self._num_deaths = 0
        self.generator = self._first_greeting()

    @property
    def num_assigned(self) -> int:
        """Assignments that are not finished."""
        return len(self._num_open)

    @property
    def wants_more(self) -> bool:
        """Whether a lane could begin with another assignment."""
        room = sum(self._most_undrawn - m.load[0] for m in self._members if m.is_ready)
        return len(self._waiting) < room

    def submit(self, assignment: Assignment) -> None:
        """Queues an assignment."""
        self._num_open[assignment.key] = 1
        self._waiting.append(_Task(assignment, assignment.key))

    def poll(self, wait_s: float) -> list[Message]:
        """Hands assignments out, and waits at most `wait_s` for answers."""
        self._hand_out()
        messages: list[Message] = []
        for member, answer in self._answers(wait_s):
            if isinstance(answer, LaneDied):
                messages += self._bury(member, answer)
            elif isinstance(answer, Generator):
                self._welcome(member, answer)
            else:
                for message in answer:
                    messages += self._hear(member, message)
                self._speak(member)
        return messages

    @abstractmethod
    def close(self) -> None:
        """Ends all lanes."""

    @abstractmethod
    def _ask(self, handle: Handle, assignments: Sequence[Assignment]) -> None:
        """Sends assignments; the answer comes out of `_wait`."""

    @abstractmethod
    def _wait(
        self, handles: Sequence[Handle], wait_s: float | None
    ) -> Iterable[tuple[Handle, Generator | Sequence[Message] | LaneDied]]:
        """Answers that came within `wait_s`; None waits for one."""

    @abstractmethod
    def _replace(self, handle: Handle) -> Handle:
        """A new lane in the place of a dead one."""

    def _first_greeting(self) -> Generator:
        while True:
            for member, answer in self._answers(None):
                if isinstance(answer, Generator):
                    self.generator = answer
                    self._welcome(member, answer)
                    return answer
                if isinstance(answer, LaneDied):
                    self._bury(member, answer)

    def _answers(
        self, wait_s: float | None
    ) -> Iterator[tuple[_Member[Handle], Generator | Sequence[Message] | LaneDied]]:
        by_handle = {id(member.handle): member for member in self._members}
        handles = [member.handle for member in self._members]
        for handle, answer in self._wait(handles, wait_s):
            yield by_handle[id(handle)], answer

    def _welcome(self, member: _Member[Handle], generator: Generator) -> None:
        if generator != self.generator:
            raise DeviceError(
                "the lanes do not read with the same model and program",
                hint="install the same version of OCRia and the same model on every machine",
            )
        member.is_ready = True
        self._speak(member)

    def _speak(self, member: _Member[Handle]) -> None:
        unsent, member.unsent = member.unsent, []
        self._ask(member.handle, unsent)

    def _hand_out(self) -> None:
        """Gives waiting tasks to whoever has least to do, in their order."""
        while self._waiting:
            task = self._waiting[0]
            able = [m for m in self._members if m.is_ready and m.takes(task, self._most_undrawn)]
            member = min(able, key=lambda m: m.load, default=None)
            if member is None:
                return
            self._next_key += 1
            del self._waiting[0]
            member.tasks[self._next_key] = task
            member.unsent.append(task.assignment._replace(key=self._next_key))

    def _hear(self, member: _Member[Handle], message: Message) -> Iterator[Message]:
        """Translates a lane's message; drops what the run has heard already."""
        task = member.tasks[message.key]
        outer = message._replace(key=task.outer_key)
        if isinstance(message, Opened):
            task.left = set() if message.is_split else set(message.left)
            if task.outer_key not in self._announced:
                self._announced.add(task.outer_key)
                yield outer
        elif isinstance(message, PageRead):
            assert task.left is not None, "pages come after their document was opened"
            task.left.discard(message.page.number)
            yield outer
        elif isinstance(message, Drawn):
            task.is_drawn = True
        else:
            del member.tasks[message.key]
            yield from self._settle(task, outer)

    def _settle(self, task: _Task, message: Message) -> Iterator[Message]:
        """A task is over: the assignment is, if it was the last of its tasks."""
        if isinstance(message, Refused) and task.left is not None:
            # Open before, gone now: its pages fail, the rest of the document is kept.
            yield from unread_pages(task.outer_key, task.left, message.message)
        self._num_open[task.outer_key] -= 1
        if not self._num_open[task.outer_key]:
            del self._num_open[task.outer_key]
            is_refused = isinstance(message, Refused) and task.outer_key not in self._announced
            self._announced.discard(task.outer_key)
            yield message if is_refused else Finished(task.outer_key)

    def _bury(self, member: _Member[Handle], death: LaneDied) -> list[Message]:
        """Replaces a dead lane; its tasks are done again, or given up."""
        self._num_deaths += 1
        if not member.is_ready and self._num_deaths > MOST_DEATHS * self.num_lanes:
            raise DeviceError(f"no lane can be kept alive: {death}", hint="see the log above")
        tasks = list(member.tasks.values())
        member.tasks.clear()
        member.unsent.clear()
        member.is_ready = False
        member.handle = self._replace(member.handle)
        return [message for task in tasks for message in self._again(task, death)]

    def _again(self, task: _Task, death: LaneDied) -> Iterator[Message]:
        task.num_deaths += 1
        is_last = task.num_deaths >= MOST_DEATHS
        if task.left is not None and not task.left:
            yield from self._settle(task, Finished(task.outer_key))
        elif task.left is None and not is_last:
            self._waiting.appendleft(task)
        elif task.left is None:
            reason = f"reading it ended {task.num_deaths} processes ({death})"
            yield from self._settle(task, Refused(task.outer_key, "crash", reason))
        elif is_last and len(task.left) == 1:
            reason = f"reading it ended {task.num_deaths} processes ({death})"
            yield from unread_pages(task.outer_key, task.left, reason)
            yield from self._settle(task, Finished(task.outer_key))
        elif task.num_deaths == 1:
            self._waiting.appendleft(_part(task, sorted(task.left)))
        else:
            self._num_open[task.outer_key] += len(task.left) - 1
            self._waiting.extendleft(_part(task, [number]) for number in sorted(task.left)[::-1])


def _part(task: _Task, numbers: Sequence[int]) -> _Task:
    """Some pages of a task, to be done again."""
    assignment = task.assignment._replace(numbers=tuple(numbers), split_above=None)
    return _Task(assignment, task.outer_key, task.num_deaths, set(numbers))
