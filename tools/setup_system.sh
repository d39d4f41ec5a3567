#!/bin/sh
# Installs the system packages that the tests need, if they are missing and we may install them: a
# Secret Service (gnome-keyring) on a D-Bus of its own, a PostgreSQL server, and a checker for shell
# scripts. With the argument `container`, also a builder of images.
set -eu

missing=""
if [ "${1:-}" = container ]; then
  command -v buildah >/dev/null || missing="$missing buildah"
  command -v mmdebstrap >/dev/null || missing="$missing mmdebstrap"
fi
command -v dbus-daemon >/dev/null || missing="$missing dbus"
command -v gnome-keyring-daemon >/dev/null || missing="$missing gnome-keyring"
command -v secret-tool >/dev/null || missing="$missing libsecret-tools"
command -v gdbus >/dev/null || missing="$missing libglib2.0-bin"
command -v shellcheck >/dev/null || missing="$missing shellcheck"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "some tests need:$missing" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# The tests start a server of their own. Debian's package would start one for the whole machine.
case $missing in
  *postgresql*)
    mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/no-main-cluster.conf
    ;;
esac
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null; }
