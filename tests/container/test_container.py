"""The container of ci/Containerfile, as root and as any user; only the artifact is writable."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.container.conftest import Mount
from tests.shim.household import SERVER, deny, policy
from tests.trust.identity.test_pods import BOUND, token

AGENT = Path(__file__).parents[1] / "cli" / "running" / "agent.py"
USERS = [0, 12345]
pytestmark = pytest.mark.timeout(900)
KUBERNETES = {
    "namespace": ["prod"],
    "service_account": ["runner"],
    "labels": {"app": "agent", "tier": 'a "b"'},
}


class Job:
    """The files that are mounted for one run, and the directory for its evidence."""

    def __init__(self, tmp_path, user):
        self.user = user
        self.files, self.out = tmp_path / "job", tmp_path / "out"
        self.files.mkdir()
        self.out.mkdir()
        self.out.chmod(0o777)
        for file in (AGENT, Path(SERVER)):
            (self.files / file.name).write_bytes(file.read_bytes())
        tmp_path.chmod(0o755)

    def mounts(self):
        return [Mount(self.files, "/job"), Mount(self.out, "/out", "rw")]

    def policy(self, selectors):
        text = policy(deny("rm")).replace("selectors: {}", f"selectors: {json.dumps(selectors)}")
        (self.files / "policy.yaml").write_text(text)

    def agent(self, *tools):
        server = ["python3", "-I", "-S", "/job/echo_server.py", "/out/executed"]
        shim = ["sub", "shim", "stdio", "--server", "echo", "--", *server]
        return ["python3", "-I", "-S", "/job/agent.py", "exit=0", *tools, "--", *shim]

    def summary(self):
        return json.loads((self.out / "artifact" / "summary.json").read_text())


@pytest.fixture(params=USERS, ids=["root", "anybody"])
def job(tmp_path, request):
    return Job(tmp_path, request.param)


def test_the_builder_runs_it(image):
    said = image.buildah("run", "--isolation", "chroot", image.container, "--", "sub", "version")
    assert said


def test_the_root_is_read_only(image, job):
    done = image.run("sh", "-c", "touch /x /tmp/x /opt/subluminal/x", user=job.user)
    assert done.returncode != 0
    assert done.stderr.count("Read-only file system") == 3


@pytest.mark.parametrize(("tools", "code"), [(["echo"], 0), (["echo", "rm"], 3)])
def test_a_strict_run_leaves_its_evidence(image, job, tools, code):
    """Runs the script of ci/ without a home, a temporary directory or ledgerd."""
    job.policy({"env": ["ci"], "workload": {"repo": ["acme/x"]}})
    done = image.run(
        *["sub-ci", *job.agent(*tools)],
        user=job.user,
        mounts=job.mounts(),
        GITLAB_CI="true",
        CI_PROJECT_PATH="acme/x",
        SUBLUMINAL_POLICY="/job/policy.yaml",
        SUBLUMINAL_ARTIFACT="/out/artifact",
    )
    assert done.returncode == code, done.stderr
    assert job.summary()["totals"]["calls_total"] == len(tools)
    assert job.summary()["violations_total"] == len(tools) - 1
    assert len((job.out / "executed").read_text().split()) == 1
    assert sorted(path.name for path in job.out.iterdir()) == ["artifact", "executed"]
    verify = [sys.executable, "-m", "subluminal", "ledger", "verify", "--artifact"]
    proof = subprocess.run(
        [*verify, str(job.out / "artifact")], capture_output=True, text=True, check=False
    )
    assert proof.returncode == 0, proof.stderr


@pytest.mark.parametrize("where", ["prod", "test"])
def test_a_pod_is_known_by_what_kubernetes_mounts(image, job, tmp_path, where):
    """The files are at their real places. A policy for another namespace does not apply, so it fails."""
    info, account = tmp_path / "info", tmp_path / "account"
    info.mkdir()
    account.mkdir()
    (info / "labels").write_text('app="agent"\ntier="a \\"b\\""')
    (account / "namespace").write_text(where)
    (account / "token").write_text(token(BOUND))
    job.policy({"workload": KUBERNETES})
    done = image.run(
        *["sub", "run", "--strict", "--policy", "/job/policy.yaml"],
        *["--artifact", "/out/artifact", "--", *job.agent("rm")],
        user=job.user,
        mounts=[
            *job.mounts(),
            Mount(info, "/etc/podinfo"),
            # Debian's /var/run is a link to /run, and a mount may not follow it.
            Mount(account, "/run/secrets/kubernetes.io/serviceaccount"),
        ],
    )
    assert done.returncode == (3 if where == "prod" else 2), done.stderr
    if where == "prod":
        (start,) = (
            event
            for event in map(
                json.loads, (job.out / "artifact" / "events.jsonl").read_text().splitlines()
            )
            if event["type"] == "run_start"
        )
        assert start["workload"]["labels"] == KUBERNETES["labels"]
        assert start["workload"]["pod"] == "agent-7c9"
