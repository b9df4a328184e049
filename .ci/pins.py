"""``make pins``: the newest version of every package, with the hashes of its files, for Python 3.11 to 3.13.

``requirements.txt`` is what the book needs and ``requirements-dev.txt`` what the tests and lint need beyond it. All
packages are resolved together, so the two never disagree. PyPI lists every hash but those of torch without CUDA
(2.x+cpu): they are named where pip is set up to see such builds (``PIP_EXTRA_INDEX_URL``, ``PIP_FIND_LINKS``).
"""

import json
import re
import subprocess
import sys
from pathlib import Path

BOOK, DEV = Path("requirements.txt"), Path("requirements-dev.txt")
BUILD = Path("_build/pins")
TORCH_BUILDS = [(python, machine) for python in ("3.11", "3.12", "3.13") for machine in ("x86_64", "aarch64")]
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def resolve(extra: str, constraints: str) -> dict[str, list[str]]:
    """What an extra needs, with what installs a checkout: the hashes of each pin."""
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11.5"]
    told = ["--generate-hashes", "--no-annotate", "--no-header", "--no-strip-extras"]
    BUILD.mkdir(parents=True, exist_ok=True)
    needs = BUILD / "needs.txt"
    needs.write_text(f"./book[{extra}]\n.\n", encoding="utf-8")
    wanted = ["--group", "checkout", "--constraints", "-", str(needs)]
    done = subprocess.run([*uv, *told, *wanted], input=constraints, stdout=subprocess.PIPE, text=True, check=True)
    return {pin: hashes for pin, hashes in pins_of(done.stdout).items() if "==" in pin}


def pins_of(lock: str) -> dict[str, list[str]]:
    """Hashes by pin, as ``name==version`` with its markers."""
    entries = [line for line in lock.replace("\\\n", " ").splitlines() if line[:1].isalnum()]
    return {entry.partition("--hash")[0].strip(): HASH.findall(entry) for entry in entries}


def hashes_here(torch: str) -> list[str]:
    """Hashes of the files of torch that pip would take on each system, wherever it is set up to look."""
    found = []
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--report", "-", "--no-deps"]
    for python, machine in TORCH_BUILDS:
        system = ["--only-binary", ":all:", "--platform", f"manylinux_2_28_{machine}", "--python-version", python]
        target = ["--target", "_build/pins/none", f"torch=={torch}"]
        done = subprocess.run([*pip, *system, *target], stdout=subprocess.PIPE, text=True, check=True)
        (file,) = json.loads(done.stdout)["install"]
        found.append(f"--hash=sha256:{file['download_info']['archive_info']['hashes']['sha256']}")
    return found


def write(path: Path, pins: dict[str, list[str]]) -> None:
    """The pins below the opening lines that the file has."""
    opening = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    entries = [" \\\n    ".join([pin, *hashes]) for pin, hashes in pins.items()]
    path.write_text("\n".join([*opening, *entries]) + "\n", encoding="utf-8")


def main(torch: str) -> None:
    """Write both files."""
    pin = f"torch=={torch}"
    everything = resolve("dev", pin)
    # Builds that PyPI doesn't list: those named before, while torch stays, and those that pip sees from here.
    kept = pins_of(BOOK.read_text(encoding="utf-8")).get(pin, [])
    everything[pin] = sorted({*everything[pin], *kept, *hashes_here(torch)})
    book = resolve("book", "\n".join(everything))
    book[pin] = everything[pin]
    write(BOOK, book)
    write(DEV, {name: hashes for name, hashes in everything.items() if name not in book})


if __name__ == "__main__":
    main(sys.argv[1])
