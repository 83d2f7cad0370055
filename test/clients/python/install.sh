#!/bin/sh
# Installs published frameworks and instrumentations into a virtual environment, and the client for OpenTelemetry's
# Python SDK from its built wheel.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
client=$here/../../../clients/python
pip="$dir/venv/bin/pip --disable-pip-version-check --quiet"

[ -x "$dir/venv/bin/pip" ] || python3 -m venv "$dir/venv"
if ! cmp -s "$here/requirements.txt" "$dir/installed.txt"; then
	$pip install --requirement "$here/requirements.txt"
	cp "$here/requirements.txt" "$dir/installed.txt"
fi

# The build leaves files next to the sources, so it works on a copy.
rm -rf "$dir/source" "$dir/dist"
mkdir -p "$dir/source"
cp -R "$client/src" "$client/pyproject.toml" "$client/README.md" "$client/LICENSE" "$dir/source"
$pip wheel --no-deps --no-build-isolation --wheel-dir "$dir/dist" "$dir/source"
$pip install --no-deps --force-reinstall "$dir"/dist/spanstatsd_opentelemetry-*.whl
