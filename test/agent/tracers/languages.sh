#!/bin/sh
# Installs the tracers for other languages, Datadog's test agent, and the languages themselves if they
# are missing, into a folder for `make test-tracers`.
set -eu
dir=$1
apps=$(cd "$(dirname "$0")/apps" && pwd)

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
"$dir/python/bin/pip" install --quiet ddtrace==4.16.0 ddapm-test-agent==1.69.1

need 'command -v node && command -v npm' nodejs npm
mkdir -p "$dir/node"
npm install --silent --no-audit --no-fund --prefix "$dir/node" dd-trace@5.132.0

# The version is that in the application's pom.xml.
need 'command -v javac && command -v mvn' default-jdk-headless maven
java="$dir/java"
agent="86c97c1348277bb024f6185c4fd15a5567c50ab648f88277dffc429adb4bf927  $java/dd-java-agent.jar"
if ! cmp -s "$apps/java/pom.xml" "$java/pom.xml" || ! echo "$agent" | sha256sum --check --status 2>/dev/null; then
	rm -rf "$java"
	mvn --quiet --batch-mode --file "$apps/java/pom.xml" dependency:copy-dependencies -Djars="$java/lib"
	mv "$java/lib/dd-java-agent.jar" "$java/"
	echo "$agent" | sha256sum --check --quiet
	cp "$apps/java/pom.xml" "$java/"
fi
javac -d "$java/classes" -cp "$java/lib/*" "$apps/java/Shop.java" "$apps/java/Seen.java"
