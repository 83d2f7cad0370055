package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// collectionLog is the path of a Java process's garbage collection log. Positions in the log mark
// times.
type collectionLog string

func (l collectionLog) length() (int, error) {
	written, err := os.ReadFile(string(l))
	if os.IsNotExist(err) {
		return 0, nil // not a Java process
	}
	if err != nil {
		return 0, fmt.Errorf("read log of collections: %w", err)
	}
	return len(written), nil
}

var pause = regexp.MustCompile(`Pause .* ([0-9.]+)ms\n`)

// between returns the number and total milliseconds of collections that paused the application.
func (l collectionLog) between(from, to int) (pauses int, ms float64, err error) {
	if to == 0 {
		return 0, 0, nil
	}
	written, err := os.ReadFile(string(l))
	if err != nil {
		return 0, 0, fmt.Errorf("read log of collections: %w", err)
	}
	for _, found := range pause.FindAllSubmatch(written[from:to], -1) {
		value, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read log of collections: %w", err)
		}
		pauses, ms = pauses+1, ms+value
	}
	return pauses, ms, nil
}
