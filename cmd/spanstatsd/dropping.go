package main

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/door/datadog"
)

// dropping is the value of the flag for what becomes of unsampled traces. Without a value it is
// on.
type dropping datadog.Dropping

func (d *dropping) Set(given string) error {
	parsed, err := datadog.ParseDropping(given)
	if err != nil {
		return fmt.Errorf("%q is none of auto, on, off", given)
	}
	*d = dropping(parsed)
	return nil
}

func (d *dropping) String() string { return datadog.Dropping(*d).String() }

func (*dropping) Type() string { return "auto|on|off" }
