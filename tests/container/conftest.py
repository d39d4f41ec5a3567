"""Builds the image of ci/Containerfile on a Debian that we make ourselves, and runs commands in it.

Only packages of Debian and Python are downloaded. mmdebstrap makes the base, a bare Debian, which is
kept below `.work`. The builder is buildah, whose chroot isolation needs no daemon and no namespaces.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BASE = ROOT / ".work" / "container" / "bookworm.tar"
PYTHON = "3.11"
"""The version in Debian bookworm."""
WITHIN_S = 600
IN_THERE = """
set -eu
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
for name in null zero full random urandom; do
  [ -e "$root/dev/$name" ] || touch "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --bind "$1" "$root$2"
  [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user:$user" "$root" "$@"
"""
"""Mounts everything, makes the root read-only and runs a command, in namespaces that end with it."""


class Mount(NamedTuple):
    """A directory of the host and its place in the container."""

    source: Path
    target: str
    mode: str = "ro"


class Image:
    """The built image and a container of it."""

    def __init__(self, work):
        self.work = work
        self.container = ""

    def buildah(self, *words):
        """Runs buildah with a store of its own. Returns what it printed."""
        store = ["--root", str(self.work / "store"), "--runroot", str(self.work / "run")]
        done = subprocess.run(
            ["buildah", *store, "--storage-driver", "vfs", *map(str, words)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, f"{words[:2]}: {done.stdout[-3000:]}"
        return done.stdout.strip().rpartition("\n")[2]

    def build(self):
        wheels = self.work / "wheels"
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes"]
        for name in ("container", "container-build"):
            run([
                *[*download, "--only-binary=:all:", "--python-version", PYTHON],
                *["--dest", wheels, "-r", ROOT / "requirements" / f"{name}.txt"],
            ])  # fmt: skip
        base = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", base, debian(), "/")
        self.buildah("commit", "--quiet", "--rm", base, "base")
        self.buildah(
            *["bud", "--isolation", "chroot", "--volume", f"{wheels}:/wheels:ro"],
            *["--build-arg", "BASE=localhost/base", "--build-arg", "PIP_NO_INDEX=1"],
            *["--build-arg", "PIP_FIND_LINKS=/wheels"],
            *["--file", "ci/Containerfile", "--tag", "sub", "."],
        )
        self.container = self.buildah("from", "sub")
        self.path = Path(self.buildah("mount", self.container))

    def run(self, *command, user=0, mounts=(), **env):
        """Runs a command on a read-only root, without our environment."""
        words = [word for mount in mounts for word in map(str, mount)]
        clean = ["env", "-i", f"PATH={self.search_path()}", *(f"{k}={v}" for k, v in env.items())]
        return subprocess.run(
            [
                *["unshare", "--mount", "--pid", "--ipc", "--fork", "sh", "-c", IN_THERE, "sh"],
                *[str(self.path), str(user), *words, "--", *clean, *map(str, command)],
            ],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    def search_path(self):
        text = self.buildah(
            *["inspect", "--type", "image", "--format"],
            *["{{range .OCIv1.Config.Env}}{{.}} {{end}}", "localhost/sub"],
        )
        return dict(each.split("=", 1) for each in text.split())["PATH"]

    def remove(self):
        self.buildah("rm", "--all")
        self.buildah("rmi", "--all", "--force")


def run(words):
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def debian():
    """Returns a bare Debian with Python, which is made once."""
    if not BASE.exists():
        BASE.parent.mkdir(parents=True, exist_ok=True)
        made = BASE.with_suffix(f".{os.getpid()}.tar")
        # dpkg's fsync takes most of the time, and a power cut would do no harm here.
        options = ["--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io"]
        run(["mmdebstrap", *options, "--include=python3,python3-venv", "bookworm", made])
        made.replace(BASE)
    return BASE


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    made = Image(tmp_path_factory.mktemp("image"))
    made.build()
    yield made
    made.remove()
    shutil.rmtree(made.work, ignore_errors=True)
