package otlpanswer

import (
	"iter"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// Fields visits the fields of a message. It is here for the receivers; use protolite.Fields.
func Fields(message []byte) iter.Seq[protolite.Field] { return protolite.Fields(message) }
