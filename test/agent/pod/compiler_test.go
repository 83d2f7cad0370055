package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestIsWarm(t *testing.T) {
	a := app{warm: 12 * time.Second}
	for _, at := range []struct {
		warmed, compiled time.Duration
		want             bool
	}{
		{9 * time.Second, 0, false},
		{12 * time.Second, slice/10 - 1, true},
		{12 * time.Second, slice / 10, false},
		{33 * time.Second, slice / 10, false},
		{36 * time.Second, slice, true},
	} {
		if got := a.isWarm(at.warmed, at.compiled); got != at.want {
			t.Errorf("%+v: %v", at, got)
		}
	}
}

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
