#!/bin/sh
# Installs the OpenTelemetry SDKs for other languages, and the languages themselves if they are
# missing, into a folder for `make test-otel`.
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
"$dir/python/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/apps/requirements.txt"
[ -x "$dir/models/bin/pip" ] || python3 -m venv "$dir/models"
"$dir/models/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/apps/requirements-models.txt"

need 'command -v node && command -v npm' nodejs npm
mkdir -p "$dir/node"
npm install --silent --no-audit --no-fund --prefix "$dir/node" \
	@opentelemetry/api@1.10.0 @opentelemetry/auto-instrumentations-node@0.82.0 express@5.3.0 \
	@opentelemetry/context-async-hooks@3.0.0 @opentelemetry/core@3.1.1 @opentelemetry/resources@3.1.1 \
	@opentelemetry/sdk-trace@3.0.0 @opentelemetry/exporter-trace-otlp-proto@0.300.0 \
	@opentelemetry/instrumentation-http@0.300.0 @opentelemetry/sampler-composite@0.222.0

# The version is that in the application's pom.xml.
need 'command -v javac && command -v mvn' default-jdk-headless maven
java="$dir/java"
agent="e43a270df53c6f423e0ab157be9c27ccc01d5dc3232e162fe54777573db2f149  $java/opentelemetry-javaagent.jar"
if ! echo "$agent" | sha256sum --check --status 2>/dev/null; then
	mvn --quiet --batch-mode --file "$here/apps/java/pom.xml" dependency:copy-dependencies -Djars="$java"
	echo "$agent" | sha256sum --check --quiet
fi
javac -d "$java/classes" "$here/apps/java/Shop.java"
rm -rf "$java/sdk" # or jars of another version would stay
mvn --quiet --batch-mode --file "$here/apps/javachain/pom.xml" dependency:copy-dependencies -Djars="$java/sdk"
javac -cp "$java/sdk/*" -d "$java/classes" "$here/apps/javachain/Chain.java"
