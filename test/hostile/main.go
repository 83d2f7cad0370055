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
	log.SetOutput(io.Discard) // net/http complains there of odd answers
	if os.Getenv(crowdVariable) != "" {
		if err := beCrowd(); err != nil {
			fmt.Fprintln(os.Stderr, "hostile:", err)
			os.Exit(2)
		}
		return
	}
	length := flag.Duration("time", 20*time.Minute, "how long it takes")
	only := flag.String("only", "", "try the hostile shapes whose name has this text")
	isMended := flag.Bool("mended", false, "leave out shapes that show what is not mended yet")
	file := flag.String("log", os.DevNull, "file for what the daemons write")
	flag.Parse()
	line, isGood, err := soakFor(*length, *file, func(shape string) bool {
		return strings.Contains(shape, *only) && !(*isMended && unmended[shape] != "")
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
	}
	fmt.Println(line)
	if !isGood {
		os.Exit(1)
	}
}

// soakFor builds the daemon and runs a soak.
func soakFor(
	length time.Duration, file string, isTried func(shape string) bool,
) (line string, isGood bool, err error) {
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
		program: program, length: length, log: log, notes: os.Stderr, isTried: isTried,
	})
}
