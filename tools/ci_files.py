"""Generates GitLab's template, with ci/sub-ci.sh inside: a template cannot bring a second file."""

from pathlib import Path

CI = Path(__file__).parents[1] / "ci"
_MARK = "END_OF_SUB_CI"
_TEMPLATE = """\
# Generated from ci/sub-ci.sh by `make ci-files`; do not edit. Use it like this:
#
#   include:
#     - project: ORG/subluminal
#       file: ci/gitlab/subluminal.gitlab-ci.yml
#   fix:
#     extends: .subluminal
#     variables:
#       SUBLUMINAL_RUN: claude -p "fix the build"
#       SUBLUMINAL_POLICY: ci/policy.yaml
#
# The script below documents the variables.
.subluminal:
  image: python:3.13-slim
  variables:
    SUBLUMINAL_ARTIFACT: subluminal-artifact
  script:
    - |
      sub_ci=$(mktemp)
      cat >"$sub_ci" <<'{mark}'
{script}
      {mark}
      sh "$sub_ci"
  artifacts:
    when: always
    expire_in: 30 days
    paths:
      - $SUBLUMINAL_ARTIFACT
    reports:
      junit: $SUBLUMINAL_ARTIFACT/junit.xml
"""


def ci_files() -> dict[str, str]:
    """Returns the template by its path below the repository."""
    lines = (CI / "sub-ci.sh").read_text("utf-8").splitlines()
    script = "\n".join(f"      {line}".rstrip() for line in lines)
    text = _TEMPLATE.format(mark=_MARK, script=script)
    return {"ci/gitlab/subluminal.gitlab-ci.yml": text}
