"""Which product gets which format, from what each loses alone and what its bytes cost."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ocria.calibration.rounding import Format

BITS: Mapping[Format, float] = {"nvfp4": 4.5, "fp8": 8.0, "bf16": 16.0}
_COLUMNS = ("site", "weights", "kl_nats", "agreement", "fp8_ratio", "format")
_STREAMED_COLUMNS = ("site", "weights", "noise_share", "fp8_ratio", "format")


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """What one product loses in NVFP4 while all others stay as they are.

    Attributes:
        site: the product's name.
        num_weights: weights of the product.
        kl: nats by which the next-token distribution moves, a mean over held-out places; of a
            checkpoint that was streamed, a share of noise (`ocria.calibration.survey`).
        agreement: share of places where the same token would be written; None if not measured.
        fp8_ratio: squared rounding error of FP8 over that of NVFP4. Small errors move the
            distribution by their square, so `kl` times this is what FP8 would lose.
    """

    site: str
    num_weights: int
    kl: float
    agreement: float | None
    fp8_ratio: float

    def kl_in(self, format: Format) -> float:
        """Loss in a format, nats."""
        return self.kl * {"nvfp4": 1.0, "fp8": self.fp8_ratio, "bf16": 0.0}[format]

    def num_bytes(self, format: Format) -> int:
        """Bytes of the product in a format, without row and global scales."""
        return round(self.num_weights * BITS[format] / 8)


def allocate(
    losses: Sequence[Loss], *, budget_bytes: int | None, max_loss: float | None
) -> dict[str, Format]:
    """Formats by site: all NVFP4, then upgrades in the order of loss saved for each byte.

    The losses of products are taken to add up.

    Args:
        losses: one for each site.
        budget_bytes: most bytes of all products together; None does not limit them.
        max_loss: upgrading stops at this summed KL in nats; None goes on while bytes last.
    """
    plan: dict[str, Format] = {loss.site: "nvfp4" for loss in losses}
    spent = sum(loss.num_bytes("nvfp4") for loss in losses)
    lost = sum(loss.kl for loss in losses)
    while max_loss is None or lost > max_loss:
        room = None if budget_bytes is None else budget_bytes - spent
        upgrades = [upgrade for loss in losses for upgrade in _upgrades(loss, plan, room)]
        if not upgrades:
            break
        _, site, format, gain, cost = max(upgrades)
        plan[site] = format
        spent, lost = spent + cost, lost - gain
    return plan


def _upgrades(
    loss: Loss, plan: Mapping[str, Format], room: int | None
) -> list[tuple[float, str, Format, float, int]]:
    """Nats saved a byte, site, format, nats saved and bytes more of each wider format."""
    now, found = plan[loss.site], []
    wider: Sequence[Format] = [format for format in BITS if BITS[format] > BITS[now]]
    for format in wider:
        cost = loss.num_bytes(format) - loss.num_bytes(now)
        gain = loss.kl_in(now) - loss.kl_in(format)
        if gain > 0 and (room is None or cost <= room):
            found.append((gain / cost, loss.site, format, gain, cost))
    return found


def write_table(path: Path, losses: Sequence[Loss], plan: Mapping[str, Format]) -> None:
    """The losses and the formats chosen as CSV, the largest loss first."""
    measured = all(loss.agreement is not None for loss in losses)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS if measured else _STREAMED_COLUMNS)
        for loss in sorted(losses, key=lambda loss: -loss.kl):
            same = () if loss.agreement is None else (f"{loss.agreement:.4f}",)
            figures = (f"{loss.kl:.6f}", *same, f"{loss.fp8_ratio:.3f}")
            writer.writerow((loss.site, loss.num_weights, *figures, plan[loss.site]))
