#!/bin/sh
# Builds both jars of clients/java and installs the dependencies of `make test-java`, in pinned
# versions, into a folder, and a JDK and Maven if they are missing.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
clients="$here/../../clients/java"

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

need 'command -v javac && command -v mvn' default-jdk-headless maven
mvn --quiet --batch-mode --file "$clients/pom.xml" verify

for app in shop oracle; do
	if ! cmp -s "$here/apps/$app/pom.xml" "$dir/$app/pom.xml"; then
		rm -rf "${dir:?}/$app"
		mvn --quiet --batch-mode --file "$here/apps/$app/pom.xml" dependency:copy-dependencies -Djars="$dir/$app/lib"
		cp "$here/apps/$app/pom.xml" "$dir/$app/"
	fi
done
echo "e43a270df53c6f423e0ab157be9c27ccc01d5dc3232e162fe54777573db2f149  $dir/oracle/lib/opentelemetry-javaagent.jar" | sha256sum --check --quiet

javac -parameters -d "$dir/shop/classes" -cp "$dir/shop/lib/*" "$here/apps/shop/Shop.java"
javac -d "$dir/oracle/classes" -cp "$dir/oracle/lib/*" "$here/apps/oracle/Oracle.java"
mkdir -p "$dir/oracle/classes/META-INF/services"
echo oracle.Oracle >"$dir/oracle/classes/META-INF/services/io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider"
jar --create --file "$dir/oracle/oracle.jar" -C "$dir/oracle/classes" .

rm -rf "$dir/clients" && mkdir -p "$dir/clients"
cp "$clients"/client/target/spanstatsd-client-*.jar "$clients"/opentelemetry/target/spanstatsd-opentelemetry-*.jar "$clients/opentelemetry/target/spanstatsd.jar" "$dir/clients/"
javac -d "$dir/library" -cp "$dir/oracle/lib/*:$dir/clients/*" "$here/apps/library/Library.java"
