package datadog

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Decode reads a body into a table, which is valid until the body is used again. names are the
// tags that are kept, the first of which are TraceTags. With an error the body is left to the
// agent.
func (d *Decoder) Decode(format Format, body []byte, names *spantable.Names, t *spantable.Table) error {
	d.reset(format, body, names, t)
	switch format {
	case FormatV04:
		v04{named{d}}.read()
	case FormatV05:
		v05{d}.read()
	case FormatV07:
		v07{named{d}}.read()
	default:
		v1{d}.read()
	}
	if d.Failed() {
		t.Fail(ErrUnread)
	}
	return t.Err() //nolint:wrapcheck // it is the decoder's own, or the table's limit
}

// Format is that of the last body.
func (d *Decoder) Format() Format { return d.format }

// List is where the traces of the last body lie.
func (d *Decoder) List() List { return d.list }

// Strings are those that the last body has numbered, by number.
func (d *Decoder) Strings() []spantable.Text { return d.strings.texts }

// keptStrings bounds the memory that is kept from one body to the next.
const keptStrings = 1 << 16

// Release lets go of the last body, and of the memory that only a very large one needed.
func (d *Decoder) Release() {
	d.Reader, d.body, d.table = msgpack.Reader{}, nil, nil
	if cap(d.strings.texts) > keptStrings {
		d.strings = strings{}
	}
}
