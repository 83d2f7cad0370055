package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// mountSmallDisk mounts a file system on dir that is too small for a recovery file, until unmountDisk.
func mountSmallDisk(dir string) error {
	if err := syscall.Mount("kills", dir, "tmpfs", 0, "size=16k"); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	return nil
}

func unmountDisk(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) } // fails if dir is not mounted

// canMountDisk returns an error if this process can't mount a file system.
func canMountDisk(dir string) error {
	dir = filepath.Join(dir, "full")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer unmountDisk(dir)
	return mountSmallDisk(dir)
}
