#!/bin/sh
# Installs what the applications of `make bench-pod` need beside their tracers, in pinned
# versions, into the folder that languages.sh has made.
set -eu
dir=$1
apps=$(cd "$(dirname "$0")/apps" && pwd)

"$dir/python/bin/pip" install --quiet flask==3.1.3 waitress==3.0.2

if ! cmp -s "$apps/spring/pom.xml" "$dir/spring/pom.xml"; then
	rm -rf "$dir/spring"
	mvn --quiet --batch-mode --file "$apps/spring/pom.xml" dependency:copy-dependencies -Djars="$dir/spring/lib"
	cp "$apps/spring/pom.xml" "$dir/spring/"
fi
javac -parameters -d "$dir/spring/classes" -cp "$dir/spring/lib/*" "$apps/spring/Shop.java"
