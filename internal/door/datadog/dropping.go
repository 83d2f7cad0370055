package datadog

import (
	"fmt"
	"strconv"
)

// Dropping says whether traces that sampling threw away stay here once they are counted.
type Dropping uint8

const (
	DropAuto Dropping = iota // where the agent says that it does without them
	DropOn                   // whatever the agent says
	DropOff
)

var droppingNames = [...]string{"auto", "on", "off"}

// String is the name on the command line.
func (d Dropping) String() string { return droppingNames[d] }

// ParseDropping reads it. What a switch may be is on or off.
func ParseDropping(text string) (Dropping, error) {
	for d, name := range droppingNames {
		if text == name {
			return Dropping(d), nil
		}
	}
	switch drops, err := strconv.ParseBool(text); {
	case err != nil:
		return 0, fmt.Errorf("parse drop-unsampled: %q is none of auto, on and off", text)
	case drops:
		return DropOn, nil
	}
	return DropOff, nil
}

// drops says what that comes to before an agent that does without them, or not.
func (d Dropping) drops(isSpared bool) bool { return d == DropOn || d == DropAuto && isSpared }
