#!/bin/sh
# Builds the packages of the clients for other languages into dist/. The same commit gives the same
# bytes: the build tools are pinned, and files have the time of the commit. Needs Python 3 with pip,
# which downloads the build tools. dist.sh sets EPOCH.
set -eu
python3 -m pip --version >/dev/null 2>&1 || {
	echo "build the Python client: python3 -m pip is missing; install Python 3 with pip" >&2
	exit 1
}
source=dist/parts/python
rm -rf "$source" dist/spanstatsd_opentelemetry-*.whl
mkdir -p "$source"
(cd clients/python && cp -R src pyproject.toml README.md LICENSE "$OLDPWD/$source/")
find "$source" -name __pycache__ -prune -exec rm -rf {} +
chmod -R u=rwX,go=rX "$source"
SOURCE_DATE_EPOCH=$EPOCH python3 -m pip --disable-pip-version-check --quiet wheel --no-deps --no-cache-dir \
	--wheel-dir dist "./$source"
