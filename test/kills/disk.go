package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// fillUp makes a directory a disk of its own that has no room for a running file, until release.
func fillUp(dir string) error {
	if err := syscall.Mount("kills", dir, "tmpfs", 0, "size=16k"); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	return nil
}

func release(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) } // or it is none

// canFillUp says why there can be no full disk.
func canFillUp(dir string) error {
	dir = filepath.Join(dir, "full")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer release(dir)
	return fillUp(dir)
}
