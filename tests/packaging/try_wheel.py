"""Installs the built wheel in a clean environment and tries it there, away from the checkout.

Run as `python tests/packaging/try_wheel.py DIST CONSTRAINTS EXAMPLE`; ends with an error if the
wheel brings another top-level name than `ocria`, lacks the linked rooms, or cannot read EXAMPLE.
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

# Folders without modules of their own: only a file inside shows that the link was followed.
ROOM_OF_LINK = ("ocria.kernels.gated_delta", "ocria.models.registry")
LEFT_OUT = "ocria/models/recipes/"
WEIGHTS = "ocria/models/checkpoints/ocria-nano/"


def main(dist: Path, constraints: Path, example: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    check_contents(wheel)
    with tempfile.TemporaryDirectory(prefix="ocria-wheel-") as folder:
        venv.create(Path(folder) / "env", with_pip=True)
        binaries = Path(folder) / "env" / "bin"
        python = str(binaries / "python")
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([python, *install, "--constraint", str(constraints), str(wheel)], folder)
        for module in ROOM_OF_LINK:
            run([python, "-c", f"import {module} as m; print(m.__file__)"], folder)
        print(run([str(binaries / "ocria"), "--version"], folder))
        markdown = run([str(binaries / "ocria"), "parse", str(example)], folder)
    assert markdown.strip(), f"the wheel read nothing from {example}"
    print(f"{wheel.name}: installed and read {example.name}, {len(markdown)} characters")


def check_contents(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"ocria"}, f"top-level names in the wheel: {sorted(tops)}"
    recipes = [name for name in names if name.startswith(LEFT_OUT)]
    assert not recipes, f"recipes in the wheel: {recipes[:3]}"
    for file in ("config.json", "drafter/config.json", "drafter/model.safetensors"):
        assert WEIGHTS + file in names, f"not in the wheel: {file}"
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 2**20:.1f} MiB")


def run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:]))
