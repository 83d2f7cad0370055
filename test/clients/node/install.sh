#!/bin/sh
# Installs published frameworks and instrumentations, and the client for OpenTelemetry's JavaScript SDK from its packed
# tarball. The folder has a copy of clients/node for its tests as well.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../.." && pwd)
client=$dir/clients/node
npm="npm --no-audit --no-fund --no-update-notifier --loglevel=error"

# install FOLDER installs what the lockfile names, unless that is done.
install() {
	if ! cmp -s "$1/package-lock.json" "$1/installed.json"; then
		(cd "$1" && $npm ci --ignore-scripts)
		cp "$1/package-lock.json" "$1/installed.json"
	fi
}

mkdir -p "$client" "$dir/applications"
ln -sfn "$repository/internal" "$dir/internal" # with the vectors that all clients share
(cd "$client" && rm -rf src esm tests dist)
(cd "$repository/clients/node" && cp -R src esm tests package.json package-lock.json tsconfig.json biome.json README.md \
	CHANGELOG.md LICENSE "$client")
install "$client"
(cd "$client" && rm -f ./*.tgz && node_modules/.bin/tsc && $npm pack --pack-destination "$dir" >/dev/null)

cp "$here/package.json" "$here/package-lock.json" "$dir/applications"
install "$dir/applications"
unpacked=$dir/applications/node_modules/@spanstatsd/opentelemetry
rm -rf "$unpacked"
mkdir -p "$unpacked"
tar -xzf "$dir"/spanstatsd-opentelemetry-*.tgz -C "$unpacked" --strip-components 1
cp "$here"/*.cjs "$here"/*.mjs "$dir/applications"
