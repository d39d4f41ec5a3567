"""The action and the template name only what exists, and paste no input into a script."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "ci" / "sub-ci.sh"
ACTION = yaml.safe_load((ROOT / "ci" / "github" / "action.yml").read_text())
TEMPLATE = yaml.safe_load((ROOT / "ci" / "gitlab" / "subluminal.gitlab-ci.yml").read_text())
STEPS = ACTION["runs"]["steps"]


def texts(value):
    """Yields every string in a nested value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def named(pattern, value):
    return {name for text in texts(value) for name in re.findall(pattern, text)}


def test_every_input_is_used_and_every_used_one_is_declared():
    assert ACTION["runs"]["using"] == "composite"
    assert named(r"inputs\.([\w-]+)", STEPS) == set(ACTION["inputs"])
    assert all(each["description"] for each in ACTION["inputs"].values())
    assert all("default" in each or each["required"] for each in ACTION["inputs"].values())


def test_outputs_are_those_that_the_script_writes():
    written = set(re.findall(r'echo "([\w-]+)=', SCRIPT.read_text()))
    assert set(ACTION["outputs"]) == written
    assert named(r"steps\.run\.outputs\.([\w-]+)", [ACTION["outputs"], STEPS]) == written
    assert [step["id"] for step in STEPS if "run" in step] == ["run"]


def test_no_expression_is_pasted_into_a_script():
    for step in STEPS:
        assert "${{" not in step.get("run", "")


def test_the_step_calls_the_script():
    (step,) = (step for step in STEPS if "run" in step)
    path = re.fullmatch(r'exec sh "\$GITHUB_ACTION_PATH/(.+)"', step["run"])[1]
    assert (ROOT / "ci" / "github" / path).resolve() == SCRIPT


def test_every_variable_of_the_step_is_one_of_the_script():
    (step,) = (step for step in STEPS if "run" in step)
    used = set(re.findall(r"\$\{?(SUBLUMINAL_\w+)", SCRIPT.read_text()))
    assert set(step["env"]) == used
    documented = set(re.findall(r"#.*?(SUBLUMINAL_\w+)", SCRIPT.read_text()))
    assert documented == used
    assert set(TEMPLATE[".subluminal"]["variables"]) <= used


def test_evidence_is_kept_however_the_run_ends():
    uploads = [step for step in STEPS if "uses" in step]
    assert uploads
    assert all(step["if"].startswith("always()") for step in uploads)
    assert TEMPLATE[".subluminal"]["artifacts"]["when"] == "always"


def test_the_same_shell_is_in_both():
    """GitLab's template writes the bytes of the script into a file and runs it."""
    (text,) = TEMPLATE[".subluminal"]["script"]
    inside = re.search(r"<<'(\w+)'\n(.*)\n\1\nsh \"\$sub_ci\"\n$", text, re.S)[2] + "\n"
    assert inside == SCRIPT.read_text()


def test_the_builder_is_sent_what_the_container_copies():
    """`make container` builds the image; this check needs no builder."""
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copies = [
        [word for word in line.split()[1:-1] if not word.startswith("--")]
        for line in (ROOT / "ci" / "Containerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
    ]
    copied = {word for words in copies for word in words}
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / path).exists() for path in copied)
