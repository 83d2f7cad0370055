#!/bin/sh
# Installs the tracers of other languages into a folder of their own, for
# `make test-tracers`.
set -eu
dir=$1
[ -x "$dir/python/bin/python" ] || python3 -m venv "$dir/python"
"$dir/python/bin/pip" install --quiet ddtrace==4.16.0
mkdir -p "$dir/node"
npm install --silent --no-audit --no-fund --prefix "$dir/node" dd-trace@5.132.0
