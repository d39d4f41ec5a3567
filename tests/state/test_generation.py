"""A number that processes share: it never returns to an old value, and a removed file is noticed."""

import os
import stat
import subprocess
import sys

import pytest

from subluminal.state.generation import Generation, move


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "kill" / "generation")


def test_a_move_of_another_process_is_seen_without_a_system_call(path):
    seen = Generation(path)
    before = seen.words[0]
    script = "import sys;from subluminal.state.generation import move;move(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert seen.words[0] > before
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_it_never_has_the_same_number_twice_even_in_a_new_file(path):
    numbers = [move(path) for _ in range(5)]
    os.unlink(path)
    numbers += [move(path) for _ in range(5)]
    assert numbers == sorted(set(numbers))


def test_moves_of_many_processes_are_all_different(path):
    script = "import sys;from subluminal.state.generation import move\n"
    script += "for _ in range(200): print(move(sys.argv[1]))"
    started = [
        subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    numbers = [int(word) for each in started for word in each.communicate()[0].split()]
    assert len(numbers) == len(set(numbers)) == 800


def test_nobody_waits_for_a_process_that_is_suspended_while_it_stores_a_number(path):
    os.makedirs(os.path.dirname(path))
    script = (
        "import fcntl, os, signal, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.lockf(fd, fcntl.LOCK_EX)\n"
        "print(flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        with pytest.raises(BlockingIOError):
            Generation(path)
        number = move(path)
        assert Generation(path).words[0] == number
        holder.kill()


def test_a_file_that_was_removed_or_replaced_is_not_current(path):
    seen = Generation(path)
    assert seen.is_current()
    os.unlink(path)
    assert not seen.is_current()
    move(path)
    assert not seen.is_current()


def test_a_link_is_not_followed(path, tmp_path):
    (tmp_path / "kill").mkdir()
    (tmp_path / "elsewhere").write_bytes(b"12345678")
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(OSError, match="symbolic"):
        Generation(path)
    with pytest.raises(OSError, match="symbolic"):
        move(path)
    assert (tmp_path / "elsewhere").read_bytes() == b"12345678"
