#!/bin/sh
# Installs Zipkin reporters, and their languages if they are missing, into a folder for `make
# test-zipkin`.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)

# need 'CHECK' PACKAGES... installs Debian packages if CHECK fails.
need() {
	check=$1
	shift
	if eval "$check" >/dev/null 2>&1; then return; fi
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "missing: $check; install what Debian calls $*" >&2
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

need 'python3 -c "import ensurepip, venv"' python3 python3-venv
[ -x "$dir/python/bin/pip" ] || python3 -m venv "$dir/python"
"$dir/python/bin/pip" install --quiet --disable-pip-version-check \
	--requirement "$here/reporters/requirements.txt"

# The versions are those in the reporter's pom.xml.
need 'command -v javac && command -v mvn' default-jdk-headless maven
java="$dir/java"
[ -d "$java/jars" ] || mvn --quiet --batch-mode --file "$here/reporters/java/pom.xml" \
	dependency:copy-dependencies -Djars="$java/jars"
javac -cp "$java/jars/*" -d "$java/classes" "$here/reporters/java/Report.java"
