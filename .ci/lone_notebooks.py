"""Run notebooks of the archive as a reader has them: each alone in an empty folder, with the wheels and no checkout.

``python .ci/lone_notebooks.py _build/html/isonb-notebooks.zip`` runs thirty student copies with their smoke parameters,
as many side by side as there are cores. The libraries are those of this environment; isonb and isonb-lab come from the
wheels in the archive. Arguments after it are names of notebooks: ``student/foundations/barcodes``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MOST = 30
WHERE = "import isonb, isonb_lab; print(isonb.__file__, isonb_lab.__file__)"


def environment(folder: Path, wheels: list[Path]) -> Path:
    """The Python of an environment that has the wheels, and the libraries of this one after them."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", vars=paths))
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(site), *map(str, wheels)], check=True)
    return python


def run(python: Path, notebook: Path, folder: Path) -> tuple[str, float]:
    """What went wrong with a copy of a notebook in an empty folder, and the seconds that it took."""
    folder.mkdir(parents=True)
    copy = folder / notebook.name
    copy.write_bytes(notebook.read_bytes())
    smoke = json.loads(copy.read_text(encoding="utf-8"))["metadata"].get("isonb", {}).get("smoke", {})
    words = [word for name, value in smoke.items() for word in ("-p", name, str(value))]
    command = [str(python), "-m", "papermill", "--no-progress-bar", copy.name, "executed.ipynb", *words]
    start = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, check=False)
    return (done.stderr.strip()[-1500:] if done.returncode else ""), time.monotonic() - start


def clean() -> dict[str, str]:
    """The environment of this process without ways back to a checkout, and with one core."""
    dropped = ("PYTHONPATH", "ISONB_DATA", "ISONB_BOOK", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in dropped} | {"ISONB_CORES": "1"}


def main(archive: str, *names: str) -> int:
    with tempfile.TemporaryDirectory(prefix="isonb-lone-") as temporary:
        folder = Path(temporary)
        zipfile.ZipFile(archive).extractall(folder)
        (root,) = folder.iterdir()
        python = environment(folder / "environment", sorted(root.glob("*.whl")))
        told = subprocess.run(
            [python, "-c", WHERE], env=clean(), cwd=folder, capture_output=True, text=True, check=True
        )
        if not all(Path(file).is_relative_to(folder) for file in told.stdout.split()):
            print(f"isonb and isonb-lab must come from the wheels; got {told.stdout}", file=sys.stderr)
            return 1
        copies = [root / f"{name}.ipynb" for name in names] or sorted((root / "student").rglob("*.ipynb"))[:MOST]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = list(pool.map(lambda at: run(python, at[1], folder / f"alone-{at[0]}"), enumerate(copies)))
        for copy, (error, seconds) in zip(copies, runs, strict=True):
            print(f"{seconds:6.1f} s  {copy.relative_to(root)}{'  FAILED' if error else ''}\n{error}".rstrip())
        failed = sum(bool(error) for error, _ in runs)
        print(f"{len(copies)} notebooks ran alone, {failed} failed.")
        return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
