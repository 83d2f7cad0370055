#!/bin/sh
# Installs the OpenTelemetry SDK for browsers into a folder and bundles the page's script with it, for
# `make test-web`.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)

command -v npm >/dev/null || {
	echo "missing: npm; install what Debian calls nodejs and npm" >&2
	exit 1
}
mkdir -p "$dir"
npm install --silent --no-audit --no-fund --prefix "$dir" \
	@opentelemetry/api@1.9.0 @opentelemetry/resources@2.12.1 @opentelemetry/sdk-trace-web@2.12.0 \
	@opentelemetry/exporter-trace-otlp-http@0.223.1 @opentelemetry/exporter-trace-otlp-proto@0.223.1 \
	esbuild@0.28.2
NODE_PATH="$dir/node_modules" "$dir/node_modules/.bin/esbuild" "$here/app.js" --bundle --minify \
	--log-level=warning --outfile="$dir/page.js"
