// Package check validates settings. Its errors give the setting, the invalid value and the valid range, in the same
// form for all packages.
//
// Each package with a configuration has a Check method that joins the errors of this package for all of its settings,
// so that an operator can fix them all at once. A limit that depends on several settings is checked by the package
// with these settings.
//
// Concurrency: all functions are safe for concurrent use. They keep no state.
package check

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Number returns an error if n is not between least and most.
func Number(setting string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("check %s: %d is not between %d and %d", setting, n, least, most)
	}
	return nil
}

// Size returns an error if bytes is not between least and most.
func Size(setting string, bytes, least, most int) error {
	if bytes < least || bytes > most {
		return fmt.Errorf("check %s: %s is not between %s and %s", setting,
			memory.SizeText(bytes), memory.SizeText(least), memory.SizeText(most))
	}
	return nil
}

// AtMost returns an error if bytes is more than most. It is for a size whose minimum depends on other settings.
func AtMost(setting string, bytes, most int) error {
	if bytes > most {
		return fmt.Errorf("check %s: %s is more than %s", setting, memory.SizeText(bytes),
			memory.SizeText(most))
	}
	return nil
}

// Time returns an error if d is not between least and most.
func Time(setting string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("check %s: %s is not between %s and %s", setting, d, least, most)
	}
	return nil
}

// Address returns an error if address is not a valid TCP listen address.
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
