package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

var errNoJava = errors.New("javac of Java 17 is missing; install a JDK")

// buildJava compiles the Java client and a program that publishes with it.
func buildJava(dir string) (classes string, err error) {
	if output, err := exec.Command("javac", "--release", "17", "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", errNoJava, output)
	}
	_, here, _, _ := runtime.Caller(0)
	source := filepath.Join(filepath.Dir(here), "../../clients/java/client/src/main")
	publisher := filepath.Join(filepath.Dir(here), "java/Publisher.java")
	args := []string{"--release", "17", "-nowarn", "-d", dir, publisher}
	obsolete := filepath.Join(source, "java/io/github/spanstatsd/client/UnixSocket.java") // for Java versions before 16
	err = filepath.WalkDir(source, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".java") && path != obsolete {
			args = append(args, path)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if output, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile Java client: %w\n%s", err, output)
	}
	return dir, nil
}

// publishJava publishes with the Java client, in a separate process.
func (e *episode) publishJava(ctx context.Context, a *account, rate int) error {
	return e.publishProcess(ctx, a, rate, "java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
		e.classes, "Publisher")
}

// publishProcess publishes with a program that ends when its standard input does, and prints its
// statistics.
func (e *episode) publishProcess(ctx context.Context, a *account, rate int, command ...string) error {
	command = append(command, e.daemon.socket(), a.name, strconv.Itoa(rate), strconv.Itoa(e.maxKept()),
		strconv.FormatInt(e.maxAge.Milliseconds(), 10), strconv.FormatInt(e.maxBackoff.Milliseconds(), 10))
	process := exec.Command(command[0], command[1:]...)
	process.Stderr = e.messages
	stdin, err := process.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	go func() {
		<-ctx.Done()
		stdin.Close() // makes the process end
	}()
	kill := context.AfterFunc(ctx, func() {
		time.AfterFunc(2*closeTimeout, func() { _ = process.Process.Kill() })
	})
	defer kill()
	var result struct {
		Published             map[string]uint64
		Ambiguous, Died, Lost uint64
	}
	err = json.NewDecoder(stdout).Decode(&result)
	if err := errors.Join(err, process.Wait()); err != nil {
		return fmt.Errorf("publish from %s: %w", command[0], err)
	}
	for name, spans := range result.Published {
		a.published[slot{a.name, name}] = spans
	}
	a.ambiguous, a.died, a.lost = result.Ambiguous, result.Died, result.Lost
	return nil
}
