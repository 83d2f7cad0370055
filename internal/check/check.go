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

// Number returns an error if n is less than least or more than most. setting is the name of the setting in the error.
func Number(setting string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("check %s: %d is not between %d and %d", setting, n, least, most)
	}
	return nil
}

// Size returns an error if bytes is less than least or more than most. The error contains all three as sizes such
// as 16 MiB. setting is the name of the checked setting in the error.
func Size(setting string, bytes, least, most int) error {
	if bytes < least || bytes > most {
		return fmt.Errorf("check %s: %s is not between %s and %s", setting,
			memory.SizeText(bytes), memory.SizeText(least), memory.SizeText(most))
	}
	return nil
}

// AtMost returns an error if a number of bytes is more than most. setting is the name of the setting in the error.
func AtMost(setting string, bytes, most int) error {
	if bytes > most {
		return fmt.Errorf("check %s: %s is more than %s", setting, memory.SizeText(bytes),
			memory.SizeText(most))
	}
	return nil
}

// Time returns an error if d is less than least or more than most. setting is the name of the setting in the error.
func Time(setting string, d, least, most time.Duration) error {
	if d < least || d > most {
		return fmt.Errorf("check %s: %s is not between %s and %s", setting, d, least, most)
	}
	return nil
}

// Address returns an error if address is not a valid TCP listen address, such as localhost:4318 or :4318. setting
// is the name of the checked setting in the error.
func Address(setting, address string) error {
	var err error
	if address == "" {
		err = errors.New("it is empty")
	} else {
		_, err = net.ResolveTCPAddr("tcp", address)
	}
	if err != nil {
		return fmt.Errorf("check %s: %w; use host:port or :port", setting, err)
	}
	return nil
}
