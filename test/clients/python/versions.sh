#!/bin/sh
# Runs the tests of the library of clients/python with other interpreters, each in a virtual environment in the folder DIR.
#
#	versions.sh DIR PYTHON...
set -eu
dir=$1
client=$(cd "$(dirname "$0")/../../../clients/python" && pwd)
shift
for python; do
	if ! "$python" --version >/dev/null 2>&1; then
		echo "NOT RUN: the tests of clients/python with $python, which is not installed"
		continue
	fi
	venv=$dir/$(basename "$python")
	[ -x "$venv/bin/pytest" ] || { "$python" -m venv "$venv" && "$venv/bin/pip" --disable-pip-version-check --quiet install pytest opentelemetry-sdk; }
	"$venv/bin/python" --version
	(cd "$client" && "$venv/bin/python" -m pytest -q)
done
