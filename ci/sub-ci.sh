#!/bin/sh
# Runs an agent in CI under a policy, and leaves the evidence where the CI system shows it.
#
#   sh sub-ci.sh                  runs the text of $SUBLUMINAL_RUN with sh
#   sh sub-ci.sh COMMAND [ARG…]   runs a command
#
# Everything else is set by variables, so that no input is ever pasted into a shell:
#
#   SUBLUMINAL_POLICY     policy file; default: the repository's .subluminal/policy.yaml
#   SUBLUMINAL_AGENT_ID   the agent's name, for selectors; default: SUB_AGENT_ID, or the job's name
#   SUBLUMINAL_STRICT     true (default): a refused call, or a server that was not seen, fails the
#                         job; throttle: so does a throttled call; false: none of them does
#   SUBLUMINAL_FAIL_ON    info, warn or critical: any decision that serious fails the job
#   SUBLUMINAL_ALLOW_SILENT  servers of the agent that need not be seen, one on each line
#   SUBLUMINAL_ARTIFACT   directory for the evidence; default subluminal-artifact
#   SUBLUMINAL_PACKAGE    the package that pip installs if `sub` is missing; default subluminal
#
# The exit codes are those of `sub run`: the agent's own, or 3 if the run broke its policy.
set -eu

die() {
  echo "error: $1" >&2
  echo "hint: $2" >&2
  exit 2
}

newline='
'
artifact=${SUBLUMINAL_ARTIFACT:-subluminal-artifact}
case $artifact in
*"$newline"*) die "the name of the artifact directory contains a line break" "set SUBLUMINAL_ARTIFACT" ;;
esac
if [ $# -eq 0 ]; then
  [ -n "${SUBLUMINAL_RUN:-}" ] || die "there is nothing to run" "set SUBLUMINAL_RUN, or give a command"
  set -- sh -e -c "$SUBLUMINAL_RUN"
fi

if ! command -v sub >/dev/null; then
  tools=$(mktemp -d)
  python3 -m venv "$tools"
  "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "${SUBLUMINAL_PACKAGE:-subluminal}"
  PATH=$tools/bin:$PATH
  export PATH
fi

set -- --artifact "$artifact" -- "$@"
[ -n "${SUB_ENV:-}" ] || set -- --env ci "$@"
[ -z "${SUBLUMINAL_POLICY:-}" ] || set -- --policy "$SUBLUMINAL_POLICY" "$@"
agent_id=${SUBLUMINAL_AGENT_ID:-${SUB_AGENT_ID:-${GITHUB_JOB:-${CI_JOB_NAME:-}}}}
[ -z "$agent_id" ] || set -- --agent-id "$agent_id" "$@"
[ -z "${SUBLUMINAL_FAIL_ON:-}" ] || set -- --fail-on "$SUBLUMINAL_FAIL_ON" "$@"
while IFS= read -r server; do
  [ -z "$server" ] || set -- --allow-silent "$server" "$@"
done <<EOF
${SUBLUMINAL_ALLOW_SILENT:-}
EOF
case ${SUBLUMINAL_STRICT:-true} in
true) set -- --strict "$@" ;;
throttle) set -- --strict=throttle "$@" ;;
false) ;;
*) die "SUBLUMINAL_STRICT must not be \`$SUBLUMINAL_STRICT\`" "use true, throttle or false" ;;
esac

# GitHub must not take lines that the agent prints for commands to the runner.
token=
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$token"
fi
code=0
sub run "$@" || code=$?
if [ -n "$token" ]; then
  # On a line of its own, whatever the agent printed last.
  printf '\n::%s::\n' "$token"
fi

case $code in
0) outcome=passed ;;
3) outcome=violated ;;
*) outcome=failed ;;
esac
field() {
  [ ! -f "$artifact/summary.json" ] || sed -n "s/^  \"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$artifact/summary.json"
}
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  {
    echo "exit-code=$code"
    echo "outcome=$outcome"
    echo "artifact=$artifact"
    echo "run-id=$(field run_id)"
    echo "violations=$(field violations_total)"
  } >>"$GITHUB_OUTPUT"
fi
# GitHub limits the summary of a job to one megabyte.
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$artifact/summary.md" ]; then
  head -c 1000000 "$artifact/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
if [ -n "$token" ] && [ "$outcome" = violated ]; then
  echo "::error title=Subluminal::the agent's run violated its policy; see the summary and the artifact"
fi
exit "$code"
