#!/bin/sh
# Runs a program like a container runtime, with the tools of the machine: in
# its own mount namespace, in a read-only root, as the image's user, without
# capabilities or new privileges.
#
#   container.sh ROOT SHARED MOUNTPOINT program arguments...
set -eu
root=$1 shared=$2 mountpoint=$3
shift 3
if [ -z "${INSIDE:-}" ]; then
	INSIDE=1 exec unshare --mount --propagation private sh "$0" "$root" "$shared" "$mountpoint" "$@"
fi
unset INSIDE
mkdir -p "$root/$mountpoint"
mount --bind "$root" "$root"
mount --bind "$shared" "$root/$mountpoint"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+sys_chroot,+setuid,+setgid \
	chroot --userspec=65532:65532 --groups= "$root" "$@"
