"""The cache of jars, with a fake Java: a script that acts like Ivy and records each start."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from heliograph.sandbox import SandboxError, classpath, fetch
from heliograph.sandbox.jars import cache_directory
from heliograph.sandbox.java import find_java
from waiting import until

WANTED = "org.example:thing:1.0"

STAND_IN = """#!/bin/sh
echo started >> "$NOTES"
[ -n "$BROKEN" ] && mkdir jars && touch jars/half.jar && echo "		:: $BROKEN" && exit 1
sleep 0.2
mkdir jars && touch jars/b.jar jars/a.jar
"""


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    java_home = tmp_path / "java"
    (java_home / "bin").mkdir(parents=True)
    (java_home / "bin" / "java").write_text(STAND_IN)
    (java_home / "bin" / "java").chmod(0o755)
    (java_home / "release").write_text('IMPLEMENTOR="Nobody"\nJAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    monkeypatch.setenv("HELIOGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    return tmp_path / "notes"


def test_jars_are_fetched_once_and_then_come_from_the_cache_without_java(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch(WANTED)
    assert [jar.name for jar in sorted(folder.iterdir())] == ["a.jar", "b.jar"]
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert fetch(WANTED) == folder
    assert notes.read_text() == "started\n"


def test_what_is_fetched_together_has_a_folder_of_its_own(notes: Path) -> None:
    assert len({fetch(WANTED), fetch(WANTED, "org.example:more:2"), fetch(WANTED, exclude=["log4j:*"])}) == 3


def test_several_processes_at_once_fetch_only_once(notes: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        assert len(set(pool.map(fetch, [WANTED] * 3, chunksize=1))) == 1
    assert notes.read_text() == "started\n"


def test_a_failed_fetch_says_why_in_one_line_and_leaves_nothing(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "org.example#thing;1.0: not found")
    with pytest.raises(SandboxError) as failure:
        fetch(WANTED)
    assert str(failure.value) == (
        f"could not fetch {WANTED}: org.example#thing;1.0: not found; nothing was left half-done"
    )
    assert [path.name for path in cache_directory().rglob("*")] == ["lock"]
    monkeypatch.delenv("BROKEN")
    assert len(list(fetch(WANTED).iterdir())) == 2


def test_a_fetch_that_is_killed_leaves_nothing(notes: Path) -> None:
    code = f"from heliograph.sandbox import fetch; fetch({WANTED!r})"
    notes.with_name("java").joinpath("bin/java").write_text('#!/bin/sh\necho $$ > "$NOTES"\nexec sleep 60\n')
    with subprocess.Popen([sys.executable, "-c", code]) as fetching:
        until(notes.exists)
        assert list(cache_directory().glob("unfinished-*"))
        fetching.kill()
    until(lambda: not list(cache_directory().glob("unfinished-*")))


def test_a_class_path_is_always_in_the_same_order(notes: Path) -> None:
    folder = fetch(WANTED)
    assert classpath(folder) == f"{folder}/a.jar:{folder}/b.jar"


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("HELIOGRAPH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_directory() == Path("/home/someone/.cache/heliograph")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_directory() == Path("/caches/heliograph")
    monkeypatch.setenv("HELIOGRAPH_CACHE", "~/kafkas")
    assert cache_directory() == Path("/home/someone/kafkas")


def test_a_java_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(SandboxError, match="Java 17 or newer, and JAVA_HOME is /nowhere, which has no bin/java"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="Java 17 or newer, and there is no `java` on the PATH"):
        find_java()


def test_a_java_that_is_too_old_is_named(notes: Path) -> None:
    home = notes.with_name("java")
    (home / "release").write_text('JAVA_VERSION="11.0.2"\n')
    with pytest.raises(SandboxError, match=r"bin/java is Java 11\.0\.2"):
        find_java()
    # Java 8 has no release file next to the java of its runtime.
    (home / "release").unlink()
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    with pytest.raises(SandboxError, match=r"bin/java is Java 1\.8\.0_392"):
        find_java()
