package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

func main() {
	log.SetOutput(io.Discard) // net/http logs invalid responses
	if os.Getenv(taskVariable) != "" {
		if err := runHostile(); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(2)
		}
		return
	}
	duration := flag.Duration("time", 20*time.Minute, "duration of the soak")
	only := flag.String("only", "", "run only hostile shapes whose name contains this text")
	skipsDefects := flag.Bool("skip-defects", false, "skip shapes with a known defect")
	file := flag.String("log", os.DevNull, "file for the output of the daemons")
	flag.Parse()
	line, passed, err := buildAndRun(*duration, *file, func(shape string) bool {
		return strings.Contains(shape, *only) && !(*skipsDefects && knownDefects[shape] != "")
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
	fmt.Println(line)
	if !passed {
		os.Exit(1)
	}
}

// buildAndRun builds the daemon and runs a soak.
func buildAndRun(
	duration time.Duration, file string, isSelected func(shape string) bool,
) (line string, passed bool, err error) {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	program, err := built.Plain(dir, built.Daemon)
	if err != nil {
		return "", false, err
	}
	log, err := os.Create(file)
	if err != nil {
		return "", false, err
	}
	defer log.Close()
	return run(settings{
		program: program, duration: duration, log: log, messages: os.Stderr, isSelected: isSelected,
	})
}
