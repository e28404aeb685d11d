"""Cross-compiles every kernel for an architecture, no GPU needed: one PTX file each.

python -m ocria.kernels.lowering --arch sm_90 --out DIR
"""

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from ocria.kernels.specimen import Specimen

FOLDERS = (
    "small_gemm",
    "gated_delta",
    "gated_norm",
    "block_attention",
    "draft_block",
    "draft_choice",
    "head",
)
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
# At run time Triton sees by itself that pointers and strides are multiples of 16.
_ALIGNED = [["tt.divisibility", 16]]


def specimens() -> Iterator[Specimen]:
    """Every kernel as the shipped model and larger ones launch it."""
    for folder in FOLDERS:
        yield from import_module(f"ocria.kernels.{folder}.triton_impl").specimens()


def lower(specimen: Specimen, arch: str) -> dict[str, str | bytes]:
    """Triton's stages (`ttgir`, `ptx`, `cubin`, …) of one kernel for `sm_NN`."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = specimen.kernel.arg_names
    signature = {name: specimen.types.get(name, "constexpr") for name in names}
    constants = {(names.index(name),): value for name, value in specimen.constants.items()}
    aligned = {
        (names.index(name),): _ALIGNED
        for name, kind in specimen.types.items()
        if kind[0] == "*" or name.startswith("stride")
    }
    source = ASTSource(specimen.kernel, signature, constexprs=constants, attrs=aligned)
    options = {"num_warps": specimen.num_warps, "num_stages": specimen.num_stages}
    target = GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)
    return dict(triton.compile(source, target=target, options=options | specimen.options).asm)


def main(arguments: list[str] | None = None) -> int:
    """Writes one PTX a kernel; the exit status counts kernels that did not compile."""
    parser = argparse.ArgumentParser(prog="python -m ocria.kernels.lowering", description=__doc__)
    parser.add_argument("--arch", choices=ARCHITECTURES, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for specimen in specimens():
        if chosen.only not in specimen.name:
            continue
        try:
            stages = lower(specimen, chosen.arch)
        except Exception as error:
            failed += 1
            print(f"{specimen.name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        ptx = str(stages["ptx"])
        (chosen.out / f"{specimen.name}.ptx").write_text(ptx, encoding="utf-8")
        print(f"{specimen.name}: {len(ptx.splitlines())} lines of PTX")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
