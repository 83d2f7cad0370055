// Package check says that a setting is not between what it must be between: which
// setting, what it is, and what it may be, in one sentence, the same for all rooms.
//
// Each room has a Check of its own configuration, and joins what this package says of each of
// its limits: one that is wrong does not hide the next, so an operator mends them all at once.
// A room checks limits that depend on several settings in its own words.
//
// Everything here is a function of its arguments, or of a file that a setting names, for any
// goroutine, and returns nil where there is nothing to say.
package check

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Number checks a count.
func Number(setting string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("check %s: %d is not between %d and %d", setting, n, least, most)
	}
	return nil
}

// Size checks a number of bytes.
func Size(setting string, bytes, least, most int) error {
	if bytes < least || bytes > most {
		return fmt.Errorf("check %s: %s is not between %s and %s", setting,
			memory.SizeText(bytes), memory.SizeText(least), memory.SizeText(most))
	}
	return nil
}

// AtMost checks a number of bytes whose least depends on others.
func AtMost(setting string, bytes, most int) error {
	if bytes > most {
		return fmt.Errorf("check %s: %s is more than %s", setting, memory.SizeText(bytes),
			memory.SizeText(most))
	}
	return nil
}

// Time checks a duration.
func Time(setting string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("check %s: %s is not between %s and %s", setting, d, least, most)
	}
	return nil
}

// Address checks what is to be listened on by TCP.
func Address(setting, address string) error {
	var err error
	if address == "" {
		err = errors.New("it is empty")
	} else {
		_, err = net.ResolveTCPAddr("tcp", address)
	}
	if err != nil {
		return fmt.Errorf("check %s: %w; give host:port or :port", setting, err)
	}
	return nil
}
