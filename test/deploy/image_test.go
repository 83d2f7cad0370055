package deploy

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// imageRoot executes the steps of the container file on this machine.
func imageRoot(t *testing.T) string {
	t.Helper()
	context := t.TempDir()
	program := filepath.Join(context, "dist", "linux-"+runtime.GOARCH)
	if err := os.MkdirAll(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(binary, filepath.Join(program, "spanstatsd")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LICENSE", "THIRD_PARTY_LICENSES"} {
		if err := os.WriteFile(filepath.Join(context, name), readFile(t, "../../"+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.MkdirTemp("", "root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := filepath.Abs("../../deploy/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "run", "./image", "-f", file, "-context", context, "-arch", runtime.GOARCH,
		"-root", root)
	build.Dir, build.Stderr = "../../tools", os.Stderr
	if err := build.Run(); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestImage_HoldsNothingElse checks that the image contains the program, its license and those of its
// dependencies, but no shell, no library, and nothing that the program would load.
func TestImage_HoldsNothingElse(t *testing.T) {
	root := imageRoot(t)
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path[len(root):])
		}
		return err
	})
	if err != nil || !slices.Equal(files, []string{"/LICENSE", "/THIRD_PARTY_LICENSES", "/spanstatsd"}) {
		t.Errorf("the image holds %v, %v", files, err)
	}
	program, err := elf.Open(filepath.Join(root, "spanstatsd"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the program is linked dynamically: it has a segment %s", segment.Type)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "spanstatsd")); err != nil || info.Size() > 20<<20 {
		t.Errorf("the program is larger than 20 MiB: %v, %v", info, err)
	}
}
