package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCompilerTime(t *testing.T) {
	for _, thread := range []struct {
		name string
		want time.Duration
	}{{"C2 CompilerThre\n", 1234}, {"C1 CompilerThre\n", 1234}, {"http-nio-8080-e\n", 0}} {
		dir := t.TempDir()
		for name, text := range map[string]string{"comm": thread.name, "schedstat": "1234 56 7\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := compilerTime(dir); got != thread.want || err != nil {
			t.Errorf("%q: %v, %v", thread.name, got, err)
		}
	}
	if _, err := compilerTime("/no-such-thread"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
