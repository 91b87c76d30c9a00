#!/usr/bin/env bash
# Makes sure that PostgreSQL's server binaries are there, for the private
# clusters of the tests. On Debian-like systems, as root, it installs the
# package; elsewhere it says what to install. No server is started.
set -euo pipefail

found() {
  local dir
  for dir in /usr/lib/postgresql/*/bin; do
    [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return 0
  done
  local initdb
  initdb=$(command -v initdb) && [ -x "$(dirname "$(readlink -f "$initdb")")/postgres" ]
}

found && exit 0
if [ -n "${ENGINE_TEST_DSN:-}" ]; then exit 0; fi

if ! command -v apt-get >/dev/null; then
  echo "PostgreSQL's server binaries (initdb, postgres) are missing: install your system's PostgreSQL server package, version 14 or later." >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "PostgreSQL's server binaries are missing: run 'apt-get install postgresql' as root." >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# postgresql-common first: told so, it makes no default cluster, so that there
# is nothing that could be started.
apt-get install -y -qq --no-install-recommends postgresql-common >/dev/null
mkdir -p /etc/postgresql-common
if ! grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf; then
  echo 'create_main_cluster = false' >>/etc/postgresql-common/createcluster.conf
fi
apt-get install -y -qq --no-install-recommends postgresql >/dev/null
found || { echo "PostgreSQL was installed, but initdb and postgres are not where they are expected." >&2; exit 1; }
