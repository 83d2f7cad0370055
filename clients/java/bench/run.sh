#!/bin/sh
# Builds the benchmark of the Java client and runs it with a daemon: run.sh PROGRAM. Installs a
# JDK and Maven if they are missing. Maven's output is redirected, so that it does not mix with
# the tables.
set -eu
java=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "missing: a JDK and Maven; install what Debian calls default-jdk-headless and maven" >&2
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jdk-headless maven >/dev/null
fi
mvn --quiet --batch-mode --file "$java/pom.xml" --activate-profiles bench --projects client,bench -Dmaven.test.skip=true package >&2
exec java -cp "$java/bench/target/classes:$java/bench/target/lib/*" io.github.spanstatsd.bench.Bench "$1"
