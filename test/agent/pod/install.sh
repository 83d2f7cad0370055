#!/bin/sh
# Installs the dependencies of the applications of `make bench-pod` besides their tracers, in pinned
# versions, into the folder created by languages.sh, and builds the extension for the Java agent.
set -eu
dir=$1
apps=$(cd "$(dirname "$0")/apps" && pwd)
top=$(cd "$(dirname "$0")/../../.." && pwd)

"$dir/python/bin/pip" install --quiet flask==3.1.3 waitress==3.0.2

if ! cmp -s "$apps/spring/pom.xml" "$dir/spring/pom.xml"; then
	rm -rf "$dir/spring"
	mvn --quiet --batch-mode --file "$apps/spring/pom.xml" dependency:copy-dependencies -Djars="$dir/spring/lib"
	cp "$apps/spring/pom.xml" "$dir/spring/"
fi
javac -parameters -d "$dir/spring/classes" -cp "$dir/spring/lib/*" "$apps/spring/Shop.java"

otel="e43a270df53c6f423e0ab157be9c27ccc01d5dc3232e162fe54777573db2f149  $dir/otel/opentelemetry-javaagent.jar"
if ! echo "$otel" | sha256sum --check --status 2>/dev/null; then
	mvn --quiet --batch-mode --file "$top/test/otel/apps/java/pom.xml" dependency:copy-dependencies -Djars="$dir/otel"
	echo "$otel" | sha256sum --check --quiet
fi
mvn --quiet --batch-mode --file "$top/clients/java/pom.xml" -Dmaven.test.skip=true package
