package registry

import (
	"fmt"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Masking is which values of resources and endpoints have a mask in their place.
type Masking uint8

const (
	MaskOverBudget Masking = iota // those that would be lost
	MaskAlways                    // all of them
	MaskNever
)

var maskings = [...]string{MaskOverBudget: "over-budget", MaskAlways: "always", MaskNever: "never"}

// String is its name on the command line.
func (m Masking) String() string { return maskings[m] }

// Set makes it the one of that name.
func (m *Masking) Set(name string) error {
	at := slices.Index(maskings[:], name)
	if at < 0 {
		return fmt.Errorf("parse mask-names: %q is none of over-budget, always and never", name)
	}
	*m = Masking(at)
	return nil
}

// Type is what the help of the command line says of its values.
func (*Masking) Type() string { return "over-budget|always|never" }

// maskedLabels are the labels whose values may be masked.
var maskedLabels = [...]span.Label{span.LabelResource, span.LabelHTTPEndpoint}

func isMaskable(l span.Label) bool { return slices.Contains(maskedLabels[:], l) }
