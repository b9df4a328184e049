"""Running chapters: what runs again and what doesn't, failures, interruption, parameters."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import pytest
from plain import plain_chapter
from support import interruptible
from waiting import gone, hang, until

from isonb_lab.pages import build as building
from isonb_lab.pages import chapters, run
from isonb_lab.pages.__main__ import EXAMPLES, main, parser
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.errors import ChapterError
from isonb_lab.pages.run import Job


@pytest.fixture
def no_kernel(monkeypatch):
    """Fail when anything is run."""

    def refuse(job, *_):
        raise AssertionError(f"{job.chapter.name} was run")

    monkeypatch.setattr(run, "_run", refuse)


def job_of(book, name="sample", **parameters):
    chapter = book.pick([name])[0]
    return Job(book, chapter, chapter.validate(parameters))


def test_second_run_runs_nothing_and_gives_the_same_bytes(built, no_kernel):
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (built.root / "book").glob("*.ipynb")}
    assert len(before) == 1
    assert main(["--root", str(built.root), "execute", "--quiet"]) == 0
    from isonb_lab.pages.build import write_pages

    write_pages(Book(built.root), [job_of(Book(built.root))])
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_what_makes_a_chapter_run_again(book, tmp_path, monkeypatch):
    """Its code and parameters, the package, and what lies beside the pages; no prose, and nothing that tools leave."""
    monkeypatch.setattr(chapters, "PACKAGE", tmp_path / "package")
    source = (book.root / "book" / "sample.md").read_text(encoding="utf-8")

    def key_after(place, text):
        path = (tmp_path if place.startswith("package") else book.root) / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return job_of(Book(book.root)).key

    keys = [job_of(book, n=20).key, job_of(book).key]
    keys += [key_after("package/maths.py", "x = 1\n"), key_after("package/maths.py", "x = 2\n")]
    keys += [key_after("package/data/sentences.txt", "one\n"), key_after("book/recorded/table.csv", "a\n1\n")]
    keys += [key_after("book/experiments/grid.yaml", f"seed: {seeds}\n") for seeds in ("[0]", "[0, 1]")]
    keys += [key_after("requirements.txt", "torch==1\n"), key_after("book/sample.md", source.replace("2 + 2", "2 + 3"))]
    assert len(set(keys)) == len(keys) == 10
    prose = source.replace("2 + 2", "2 + 3").replace("Much.", "Very much. And `code`.")
    assert key_after("book/sample.md", prose) == keys[-1]
    left = ("sample.ipynb", ".ipynb_checkpoints/sample.md", "__pycache__/x.pyc", "references.bib", "intro.md")
    assert {key_after(f"book/{name}", "{}") for name in left} == {keys[-1]}


def test_a_failed_cell_is_reported_and_the_others_are_kept(book, capsys):
    book = plain_chapter(book, "broken", "x = 1", "print(x)\nraise RuntimeError('the tree fell over')")
    book = plain_chapter(book, "whole", "print(n)")
    arguments = ["--root", str(book.root), "execute", "broken", "whole", "--quiet", "--jobs", "1"]
    assert main(arguments) == 1
    output = capsys.readouterr().err
    assert "book/broken: code cell 3 failed with RuntimeError: the tree fell over" in output
    assert "raise RuntimeError" in output
    partial = job_of(book, "broken").partial
    assert str(partial) in output
    assert nbformat.read(partial, as_version=4).cells
    assert job_of(book, "whole").cached.is_file()
    assert not job_of(book, "broken").cached.exists()


def test_parameters_are_refused_before_a_kernel_starts(book, no_kernel, capsys):
    for name, value, message in [("m", "1", "no parameter is called m"), ("n", "seven", "must be int from 5 to 500")]:
        assert main(["--root", str(book.root), "execute", "sample", "-p", name, value]) == 1
        assert message in capsys.readouterr().err
    assert main(["--root", str(book.root), "execute", "nowhere"]) == 1
    assert "names 0 chapters. There are: book/sample" in capsys.readouterr().err


def test_the_examples_of_the_help_do_what_they_say():
    """Each line parses, names a chapter of the book and gives it a parameter that it takes."""
    real = Book(Path(__file__).resolve().parents[2])
    lines = [line.split("  ")[1].strip() for line in EXAMPLES.splitlines()[1:]]
    assert len(lines) == 7
    for line in lines:
        arguments = parser().parse_args(line.removeprefix("python -m isonb_lab.pages ").split())
        for chapter in real.pick(getattr(arguments, "chapters", [])):
            chapter.validate(dict(getattr(arguments, "p", [])))


def test_one_run_with_a_parameter_goes_to_runs(book, capsys):
    book = plain_chapter(book, "quick", "print('n is', n)", "import sys; print('warned', file=sys.stderr)")
    source = (book.root / "book" / "quick.md").read_bytes()
    assert main(["--root", str(book.root), "execute", "quick", "-p", "n", "7", "--quiet"]) == 0
    output = capsys.readouterr()
    target = book.root / output.out.strip().removeprefix("Open: ")
    notebook = nbformat.read(target, as_version=4)
    assert [cell.outputs[0].text for cell in notebook.cells if cell.get("outputs")] == ["n is 7\n"]
    assert not any("injected" in str(cell.metadata) for cell in notebook.cells)
    assert notebook.metadata["isonb_run"]["parameters"] == {"n": 7}
    assert (book.root / "book" / "quick.md").read_bytes() == source
    assert not (book.root / "book" / "quick.ipynb").exists()
    warned = re.fullmatch(r"book/quick warned: see (\S+)\n", output.err).group(1)
    assert (book.root / warned).read_text(encoding="utf-8") == "warned\n"


@pytest.fixture
def command(book, tmp_path):
    """Start a command of the book in a process of its own; what is left of it is killed after the test."""
    started = []
    temporary = tmp_path / "temporary"
    temporary.mkdir()

    def start(*arguments):
        options = {"env": {**os.environ, "TMPDIR": str(temporary)}, "stderr": subprocess.PIPE, "text": True}
        line = interruptible([sys.executable, "-m", "isonb_lab.pages", "--root", book.root, *arguments])
        started.append(subprocess.Popen(line, **options))
        return started[-1]

    start.temporary = temporary
    yield start
    for process in started:
        process.kill()
        process.communicate()


def hanging(book, name):
    """A chapter that writes the ids of its kernel, and of a process that this has started, and waits."""
    pids = book.root / f"{name}.pids"
    return plain_chapter(book, name, hang(pids)), pids


def leaves_nothing_running(path, temporary):
    until(lambda: all(gone(int(pid)) for pid in path.read_text().split()), 10)
    until(lambda: not list(temporary.iterdir()), 5)


def test_interrupting_keeps_what_has_finished_and_leaves_no_process(book, command):
    book = plain_chapter(book, "first", "print('done')")
    book, pids = hanging(book, "second")
    process = command("execute", "first", "second", "--jobs", "2")
    until(lambda: list((book.build / "executed").glob("*.ipynb")) and pids.is_file())
    process.send_signal(signal.SIGINT)
    _, report = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Chapters that had finished are kept" in report
    assert len(list((book.build / "executed").glob("*.ipynb"))) == 1
    leaves_nothing_running(pids, command.temporary)
    assert list((book.build / "running").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_no_chapter_outlives_the_command(book, command, number):
    book, pids = hanging(book, "slow")
    process = command("execute", "slow", "--quiet")
    until(pids.is_file)
    process.send_signal(number)
    process.communicate(timeout=30)
    leaves_nothing_running(pids, command.temporary)


@contextlib.contextmanager
def interrupted(condition):
    """Ctrl-C, wherever we are, as soon as the condition holds."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    def watch():
        until(condition)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        watcher.join()
        signal.signal(signal.SIGUSR1, before)


def test_no_sphinx_outlives_a_build(book, monkeypatch):
    pid = book.root / "pid"
    wait = f"import os, time; os.symlink(str(os.getpid()), {str(pid)!r}); time.sleep(600)"
    monkeypatch.setattr(building, "JUPYTER_BOOK", wait)
    with interrupted(pid.is_symlink):
        building.html(book)
    assert gone(int(os.readlink(pid)))


def test_two_executions_share_the_work(book):
    """Both are asked for the same chapters; each chapter runs once, and its outputs are whole."""
    journal = book.root / "journal"
    cell = f"import time; time.sleep(0.05); open({str(journal)!r}, 'a').write('x'); print('here')"
    names = ["one", "two"]
    for name in names:
        book = plain_chapter(book, name, *[cell] * 3)
    both = [
        threading.Thread(
            target=run.execute, args=([job_of(book, name) for name in names],), kwargs={"workers": 2, "progress": False}
        )
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(120)
    assert journal.read_text() == "x" * 3 * len(names)
    for name in names:
        notebook = nbformat.read(job_of(book, name).cached, as_version=4)
        assert sum(bool(cell.get("outputs")) for cell in notebook.cells) == 3
    assert list((book.build / "running").iterdir()) == []


def test_an_interrupted_second_execution_leaves_the_first_alone(book, capsys):
    began, go = book.root / "began", book.root / "go"
    begin = f"import os, time\nopen({str(began)!r}, 'w').close()"
    wait = f"while not os.path.exists({str(go)!r}):\n    time.sleep(0.05)\nprint('went')"
    book = plain_chapter(book, "slow", begin, wait, "print('end')")
    first = threading.Thread(target=run.execute, args=([job_of(book, "slow")],), kwargs={"progress": False})
    first.start()
    until(began.is_file)
    report = time.monotonic() + 1
    with interrupted(lambda: time.monotonic() > report):
        run.execute([job_of(book, "slow")])
    assert "another process is at work" in capsys.readouterr().err
    go.touch()
    first.join(60)
    cells = nbformat.read(job_of(book, "slow").cached, as_version=4).cells
    assert [cell.outputs[0].text for cell in cells if cell.get("outputs")] == ["went\n", "end\n"]


def test_half_a_notebook_is_never_kept_as_whole(book, monkeypatch):
    """Whatever ends papermill early and makes it look well: a cell that hasn't run is noticed."""
    book = plain_chapter(book, "short", "print(1)", "print(2)")
    job = job_of(book, "short")
    saved = run._save

    def cut(*options):
        executed = nbformat.read(job.partial, as_version=4)
        executed.cells[-1].outputs, executed.cells[-1].metadata.papermill.status = [], "pending"
        nbformat.write(executed, job.partial)
        return saved(*options)

    monkeypatch.setattr(run, "_save", cut)
    with pytest.raises(ChapterError, match="failed outside its cells"):
        run.execute([job], progress=False)
    assert not job.cached.exists()


def test_missing_pieces_are_named(book, tmp_path):
    (book.root / "book" / "sample.md").unlink()
    with pytest.raises(ChapterError, match=r"write book/sample\.md"):
        _ = Book(book.root).chapters[0].cells
    with pytest.raises(ChapterError, match=r"no _toc\.yml"):
        _ = Book(tmp_path / "elsewhere").pages
