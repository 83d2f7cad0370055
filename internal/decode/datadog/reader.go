package datadog

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// values reads the values of a body, each as its format writes it.
type values struct {
	msgpack.Reader
	body    []byte
	format  Format
	table   *spantable.Table
	names   *spantable.Names // of the tags that are kept
	strings strings          // of the formats that number them
}

// check ends the reading of a body that exceeds its limits.
func (d *values) check() {
	if d.table.Err() != nil {
		d.Fail()
	}
}
