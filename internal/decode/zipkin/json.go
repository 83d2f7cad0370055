package zipkin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

var errShape = errors.New("a value is not what its name says, or something follows the list")

// JSON decodes a list of spans in JSON.
func (d *Decoder) JSON(r *otlp.Request, body []byte, ofSpans, ofResources *spantable.Names) error {
	d.begin(r, body, ofSpans, ofResources)
	err := d.visit('[', ']', func() error {
		d.beginSpan()
		if err := d.object(d.field); err != nil {
			return err
		}
		return d.endSpan()
	})
	if d.Next(); err == nil && d.At < len(body) {
		err = errShape
	}
	if err != nil {
		r.Fail(fmt.Errorf("%w; at byte %d: %w", ErrUnread, d.At, err))
	}
	return r.Err() //nolint:wrapcheck // it says what to do
}

// visit visits the elements of a list or an object.
func (d *Decoder) visit(open, shut byte, element func() error) error {
	if d.Next() != open {
		return errShape
	}
	return d.Each(shut, element) //nolint:wrapcheck // JSON does
}

// object visits the fields of an object. One that is null is not there.
func (d *Decoder) object(field func(name []byte) error) error {
	return d.visit('{', '}', func() error {
		name, err := d.Name()
		switch {
		case err != nil:
			return err //nolint:wrapcheck // JSON does
		case d.Next() == 'n':
			return d.Word("null") //nolint:wrapcheck // the same
		}
		return field(d.table.Bytes(d.keep(name)))
	})
}

func (d *Decoder) field(name []byte) (err error) {
	s := &d.span
	switch string(name) {
	case "traceId":
		d.place.TraceHigh, d.place.TraceLow, err = d.id(32)
	case "id":
		_, s.ID, err = d.id(16)
	case "parentId":
		_, s.Parent, err = d.id(16)
	case "name":
		s.Name, err = d.text()
	case "kind":
		s.Kind, err = d.kind()
	case "timestamp":
		s.Start, err = d.time()
	case "duration":
		d.isFinished = true
		s.Duration, err = d.time()
	case "localEndpoint":
		err = d.endpoint(&d.service)
	case "remoteEndpoint":
		err = d.endpoint(&d.peer)
	case "tags":
		err = d.object(func(name []byte) error {
			value, err := d.text()
			d.tag(name, value)
			return err
		})
	default:
		d.isShared = d.isShared || string(name) == "shared" && d.Next() == 't'
		err = d.skip()
	}
	return err
}

func (d *Decoder) endpoint(service *spantable.Text) error {
	return d.object(func(name []byte) (err error) {
		if string(name) == "serviceName" {
			*service, err = d.text()
			return err
		}
		return d.skip()
	})
}

func (d *Decoder) skip() (err error) {
	d.table.Derived, err = d.Skip(d.table.Derived)
	return err //nolint:wrapcheck // JSON does
}

// text reads a text, or a number as one.
func (d *Decoder) text() (spantable.Text, error) {
	if d.Next() == '"' {
		said, err := d.Text()
		return d.keep(said), err //nolint:wrapcheck // JSON does
	}
	at := uint32(d.At)
	number, err := d.Number()
	return spantable.Text{At: at, Len: uint32(len(number))}, err //nolint:wrapcheck // the same
}

// keep is where a text lies: in the body, or without its escapes among what is made.
func (d *Decoder) keep(said jsonscan.Quoted) spantable.Text {
	if said.IsPlain {
		return spantable.Text{At: uint32(said.At), Len: uint32(len(said.Raw))}
	}
	start := len(d.table.Derived)
	d.table.Derived = said.AppendTo(d.table.Derived)
	return d.table.DerivedSince(start)
}

// id reads an id of so many hexadecimal digits at most.
func (d *Decoder) id(most int) (high, low uint64, err error) {
	said, err := d.text()
	digits := d.table.Bytes(said)
	if err != nil || len(digits) > most {
		return 0, 0, errors.Join(err, errShape)
	}
	above := max(0, len(digits)-16)
	if low, err = strconv.ParseUint(string(digits[above:]), 16, 64); err == nil && above > 0 {
		high, err = strconv.ParseUint(string(digits[:above]), 16, 64)
	}
	return high, low, err //nolint:wrapcheck // it quotes what is none
}

func (d *Decoder) time() (uint64, error) {
	said, err := d.text()
	n, isOne := jsonscan.Integer(d.table.Bytes(said))
	if err == nil && !isOne {
		err = errShape
	}
	return nanoseconds(n), err
}

func (d *Decoder) kind() (spantable.Kind, error) {
	said, err := d.text()
	number := slices.Index(kindNames[:], d.table.String(said))
	if number < 1 {
		return spantable.KindInternal, errors.Join(err, errShape)
	}
	return kinds[number], nil
}
