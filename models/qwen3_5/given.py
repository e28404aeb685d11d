"""What the host gives a pass of a fixed size: a table of sequences and numbers, in one copy.

Shape legend: B sequences.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ocria.kernels.sequence_table import NUM_COLUMNS, Place, SequenceTable, host_rows


class Given:
    """Room on the host and on the device, the same at each pass, so that a pass can be captured.

    Args:
        idle: the part of a sequence without rows; all are such until `put`.
        num_sequences: B.
        num_numbers: int64 beside the table.
        max_rows: of a sequence.
        total_rows: of the pass.
        device: where it runs.

    Attributes:
        host_numbers: to be written between `wait` and `put`.
        numbers: what the device sees of them.
        table: the sequences that were put last.
    """

    def __init__(
        self,
        idle: Place,
        *,
        num_sequences: int,
        num_numbers: int,
        max_rows: int,
        total_rows: int,
        device: torch.device,
    ) -> None:
        pinned = device.type == "cuda"
        # The table first: kernels want its address aligned.
        size = num_sequences * NUM_COLUMNS
        self._host = torch.zeros(size + num_numbers, dtype=torch.int64, pin_memory=pinned)
        self._given: Tensor = self._host.to(device)
        self._host_rows_BF = self._host[:size].view(num_sequences, NUM_COLUMNS)
        self._copied = torch.cuda.Event() if pinned else None
        self._idle = idle
        self.host_numbers, self.numbers = self._host[size:], self._given[size:]
        self.table = SequenceTable(
            rows_BF=self._given[:size].view(num_sequences, NUM_COLUMNS),
            memory=(idle.memory,) * num_sequences,
            max_rows=max_rows,
            total_rows=total_rows,
        )
        self.put(())

    def wait(self) -> None:
        """Until the host's room may be written: the device reads it when it comes to it."""
        if self._copied is not None and not self._copied.query():
            self._copied.synchronize()

    def put(self, places: Sequence[Place]) -> None:
        """Sends sequences and numbers on this stream; those that are fewer than B are idle."""
        first = places[0] if places else self._idle
        idle = first._replace(start=0, num_rows=0, rope_delta=0)
        filled = [*places, *[idle] * (len(self._host_rows_BF) - len(places))]
        self._host_rows_BF.copy_(host_rows(filled))
        self._given.copy_(self._host, non_blocking=True)
        if self._copied is not None:
            self._copied.record()
        # Kernels go by the addresses alone, references by these.
        self.table = self.table._replace(memory=tuple(place.memory for place in filled))
