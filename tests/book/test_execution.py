"""Running chapters: what runs again and what doesn't, failures, interruption, parameters."""

import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from conftest import plain_chapter
from support import interruptible

from isonb.pages import run
from isonb.pages.__main__ import main
from isonb.pages.chapters import Book
from isonb.pages.errors import ChapterError, ParameterError
from isonb.pages.run import Job


@pytest.fixture
def no_kernel(monkeypatch):
    """Fail when anything is run."""

    def refuse(job):
        raise AssertionError(f"{job.chapter.name} was run")

    monkeypatch.setattr(run, "_Process", refuse)


def job_of(book, name="sample", **parameters):
    chapter = book.pick([name])[0]
    return Job(book, chapter, chapter.validate(parameters))


def test_second_run_runs_nothing_and_gives_the_same_bytes(built, no_kernel):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (built.root / "book").glob("*.ipynb")}
    assert len(before) == 1
    assert main(["--root", str(built.root), "execute", "--quiet"]) == 0
    from isonb.pages.build import write_pages

    write_pages(Book(built.root), [job_of(Book(built.root))])
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_what_changes_the_key(book, monkeypatch):
    key = job_of(book).key
    source = book.root / "book" / "sample.md"
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("Much.", "Very much. And `code`."), encoding="utf-8")
    assert job_of(Book(book.root)).key == key, "an edit of prose"
    source.write_text(text.replace("2 + 2", "2 + 3"), encoding="utf-8")
    assert job_of(Book(book.root)).key != key, "an edit of code"
    source.write_text(text, encoding="utf-8")
    assert job_of(Book(book.root)).key == key
    assert job_of(book, n=20).key != key, "another parameter"
    (book.root / "requirements.txt").write_text("torch==1\n", encoding="utf-8")
    assert job_of(Book(book.root)).key != key, "another pin"


def test_an_edit_of_the_module_or_a_recorded_table_changes_the_key(book, tmp_path, monkeypatch):
    from isonb.pages import chapters

    package = tmp_path / "package"
    (package / "data").mkdir(parents=True)
    (package / "maths.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(chapters, "PACKAGE", package)
    keys = [Book(book.root).environment]
    (package / "maths.py").write_text("x = 2\n", encoding="utf-8")
    keys.append(Book(book.root).environment)
    (package / "data" / "sentences.txt").write_text("one\n", encoding="utf-8")
    keys.append(Book(book.root).environment)
    (book.root / "book" / "recorded").mkdir()
    (book.root / "book" / "recorded" / "table.csv").write_text("a\n1\n", encoding="utf-8")
    keys.append(Book(book.root).environment)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "maths.pyc").write_bytes(b"1")
    assert len(set(keys)) == 4
    assert Book(book.root).environment == keys[-1]


def test_a_failed_cell_is_reported_and_the_others_are_kept(book, capsys):
    book = plain_chapter(book, "broken", "x = 1", "print(x)\nraise RuntimeError('the tree fell over')")
    book = plain_chapter(book, "whole", "print(n)")
    arguments = ["--root", str(book.root), "execute", "broken", "whole", "--quiet", "--jobs", "1"]
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert "book/broken: code cell 3 failed with RuntimeError: the tree fell over" in told
    assert "raise RuntimeError" in told
    partial = job_of(book, "broken").partial
    assert str(partial) in told
    assert nbformat.read(partial, as_version=4).cells
    assert job_of(book, "whole").cached.is_file()
    assert not job_of(book, "broken").cached.exists()


def test_parameters_are_refused_before_a_kernel_starts(book, no_kernel, capsys):
    for name, value, message in [("m", "1", "no parameter is called m"), ("n", "seven", "must be int, 5..500")]:
        assert main(["--root", str(book.root), "execute", "sample", "-p", name, value]) == 1
        assert message in capsys.readouterr().err
    assert main(["--root", str(book.root), "execute", "nowhere"]) == 1
    assert "names 0 chapters. There are: book/sample" in capsys.readouterr().err


def test_one_run_with_a_parameter_goes_to_runs(book, capsys):
    book = plain_chapter(book, "quick", "print('n is', n)", "import sys; print('warned', file=sys.stderr)")
    source = (book.root / "book" / "quick.md").read_bytes()
    assert main(["--root", str(book.root), "execute", "quick", "-p", "n", "7", "--quiet"]) == 0
    target = book.root / capsys.readouterr().out.strip().removeprefix("Open: ")
    notebook = nbformat.read(target, as_version=4)
    assert [cell.outputs[0].text for cell in notebook.cells if cell.get("outputs")] == ["n is 7\n"]
    assert not any("injected" in str(cell.metadata) for cell in notebook.cells)
    assert notebook.metadata["isonb_run"]["parameters"] == {"n": 7}
    assert (book.root / "book" / "quick.md").read_bytes() == source
    assert not (book.root / "book" / "quick.ipynb").exists()
    assert (book.build / "executed" / "quick.stderr.txt").read_text(encoding="utf-8") == "warned\n"


def test_interrupting_keeps_what_has_finished_and_leaves_no_process(book):
    book = plain_chapter(book, "first", "print('done')")
    pids = book.root / "pid.txt"
    slow = f"import os, time\nopen({str(pids)!r}, 'w').write(str(os.getpid()))\ntime.sleep(100)"
    book = plain_chapter(book, "second", slow)
    command = [
        sys.executable,
        "-m",
        "isonb.pages",
        "--root",
        str(book.root),
        "execute",
        "first",
        "second",
        "--jobs",
        "2",
    ]
    child = subprocess.Popen(interruptible(command), stderr=subprocess.PIPE, text=True)
    finished = book.build / "executed"
    deadline = time.monotonic() + 60
    while not (list(finished.glob("*.ipynb")) and pids.is_file()) and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "Chapters that had finished are kept" in told
    assert len(list(finished.glob("*.ipynb"))) == 1
    kernel = int(pids.read_text(encoding="utf-8"))
    for _ in range(50):
        if not _alive(kernel):
            return
        time.sleep(0.2)
    raise AssertionError("the kernel of the interrupted chapter still runs")


def test_papermill_is_ended_politely_where_the_shell_ignores_interrupts(book):
    pids = book.root / "pid.txt"
    slow = f"import os, time\nopen({str(pids)!r}, 'w').write(str(os.getpid()))\ntime.sleep(100)"
    job = job_of(plain_chapter(book, "slow", slow), "slow")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with run._killing([]) as running:
            running.append(run._Process(job))
            deadline = time.monotonic() + 60
            while not pids.is_file() and time.monotonic() < deadline:
                time.sleep(0.1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert running[0].child.returncode == 1  # it ended its kernel and itself; -9 would leave the kernel to itself


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="utf-8") as status:
        return status.read().split()[2] != "Z"


def test_a_kernel_that_dies_is_a_failure_with_a_message(book):
    book = plain_chapter(book, "dying", "import os; os._exit(3)")
    with pytest.raises(ChapterError, match="book/dying"):
        run.execute([job_of(book, "dying")], progress=False)


def test_missing_pieces_are_named(book, tmp_path):
    (book.root / "book" / "sample.md").unlink()
    with pytest.raises(ChapterError, match=r"write book/sample\.md"):
        _ = Book(book.root).chapters[0].cells
    with pytest.raises(ChapterError, match=r"no _toc\.yml"):
        _ = Book(tmp_path / "elsewhere").pages
    book = plain_chapter(book, "two", "print(n)")
    source = book.root / "book" / "two.md"
    source.write_text(source.read_text(encoding="utf-8").replace(":tags: [parameters]\n", ""), encoding="utf-8")
    with pytest.raises(ParameterError, match="exactly one cell must be tagged parameters; got 0"):
        _ = Book(book.root).pick(["two"])[0].parameters
