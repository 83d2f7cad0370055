#!/bin/sh
# Builds the packages of the clients for other languages into dist/. The same commit gives the same
# bytes: the build tools are pinned, and files have fixed times. Needs Python 3 with pip, and Node.js
# with npm, which download the build tools. dist.sh sets EPOCH.
set -eu
python3 -m pip --version >/dev/null 2>&1 || {
	echo "build the Python client: python3 -m pip is missing; install Python 3 with pip" >&2
	exit 1
}
npm --version >/dev/null 2>&1 || {
	echo "build the client for Node.js: npm is missing; install Node.js" >&2
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

source=dist/parts/node
npm="npm --no-audit --no-fund --no-update-notifier --loglevel=error"
rm -rf "$source" dist/spanstatsd-opentelemetry-*.tgz
mkdir -p "$source"
(cd clients/node && cp -R src esm package.json package-lock.json tsconfig.json README.md CHANGELOG.md LICENSE "$OLDPWD/$source/")
chmod -R u=rwX,go=rX "$source"
(cd "$source" && $npm ci --ignore-scripts && node_modules/.bin/tsc && $npm pack --pack-destination ../.. >/dev/null)
