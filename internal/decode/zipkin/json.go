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

var errValue = errors.New("a value has the wrong type for its field, or data follows the list")

// JSON decodes body, a JSON array of Zipkin spans, into r. It keeps only the span attributes in
// spanNames and the resource attributes in resourceNames. It returns an error if body is invalid or
// exceeds a limit.
func (d *Decoder) JSON(r *otlp.Request, body []byte, spanNames, resourceNames *spantable.Names) error {
	d.begin(r, body, spanNames, resourceNames)
	if err := d.readSpans(); err != nil {
		r.Fail(fmt.Errorf("%w; at byte %d: %w", ErrUnparsable, d.Pos, err))
	}
	return r.Err() //nolint:wrapcheck // contains the fix
}

// readSpans reads an array of spans. It returns an error if anything but white space follows.
func (d *Decoder) readSpans() error {
	err := d.readElements('[', ']', d.readSpan)
	d.Peek() // skips white space
	hasTrailingData := d.Pos < len(d.Body)
	if err == nil && hasTrailingData {
		return errValue
	}
	return err
}

func (d *Decoder) readSpan() error {
	d.beginSpan()
	if err := d.readObject(d.readSpanField); err != nil {
		return err
	}
	return d.endSpan()
}

// readElements reads an array or an object with the given brackets, and calls readElement to read each
// of its elements. It returns an error if the next byte is not opener, or if readElement returns an
// error.
func (d *Decoder) readElements(opener, closer byte, readElement func() error) error {
	if d.Peek() != opener {
		return errValue
	}
	return d.EachElement(closer, readElement) //nolint:wrapcheck // JSON wraps it
}

// readObject reads a JSON object. For each value except null, it calls readValue with the name of the
// value. readValue must read the value.
func (d *Decoder) readObject(readValue func(name []byte) error) error {
	return d.readElements('{', '}', func() error {
		name, err := d.ReadName()
		if err != nil {
			return err //nolint:wrapcheck // JSON wraps it
		}
		isNull := d.Peek() == 'n'
		if isNull {
			return d.ReadLiteral("null") //nolint:wrapcheck // JSON wraps it
		}
		nameText := d.storeString(name)
		return readValue(d.table.Bytes(nameText))
	})
}

// readSpanField reads the value of a field of a Zipkin span into the current span. name is the name of
// the field. It skips the value if the field is unknown.
func (d *Decoder) readSpanField(name []byte) (err error) {
	s := &d.span
	switch string(name) {
	case "traceId":
		d.extra.TraceHigh, d.extra.TraceLow, err = d.readID(32)
	case "id":
		_, s.ID, err = d.readID(16)
	case "parentId":
		_, s.Parent, err = d.readID(16)
	case "name":
		s.Name, err = d.readText()
	case "kind":
		s.Kind, err = d.readKind()
	case "timestamp":
		s.Start, err = d.readMicroseconds()
	case "duration":
		d.hasDuration = true
		s.Duration, err = d.readMicroseconds()
	case "localEndpoint":
		err = d.readEndpoint(&d.service)
	case "remoteEndpoint":
		err = d.readEndpoint(&d.peer)
	case "shared":
		d.isShared = d.isShared || d.Peek() == 't'
		err = d.skip()
	case "tags":
		err = d.readObject(func(name []byte) error {
			value, err := d.readText()
			d.applyTag(name, value)
			return err
		})
	default:
		err = d.skip()
	}
	return err
}

// readEndpoint reads an endpoint object, and stores the service name in service if there is one.
func (d *Decoder) readEndpoint(service *spantable.Text) error {
	return d.readObject(func(name []byte) (err error) {
		if string(name) == "serviceName" {
			*service, err = d.readText()
			return err
		}
		return d.skip()
	})
}

func (d *Decoder) skip() (err error) {
	d.table.Derived, err = d.SkipValue(d.table.Derived)
	return err //nolint:wrapcheck // JSON wraps it
}

// readText reads a string or a number, and returns its text.
func (d *Decoder) readText() (spantable.Text, error) {
	if d.Peek() == '"' {
		text, err := d.ReadString()
		return d.storeString(text), err //nolint:wrapcheck // JSON wraps it
	}
	start := uint32(d.Pos)
	number, err := d.ReadNumber()
	return spantable.Text{At: start, Len: uint32(len(number))}, err //nolint:wrapcheck // JSON wraps it
}

// storeString returns the value of a JSON string as a text, a position in the body. If the string has escape
// sequences, it appends the decoded value to d.table.Derived, and returns its position there.
func (d *Decoder) storeString(s jsonscan.String) spantable.Text {
	if s.IsPlain {
		return spantable.Text{At: uint32(s.Start), Len: uint32(len(s.Raw))}
	}
	start := len(d.table.Derived)
	d.table.Derived = s.AppendTo(d.table.Derived)
	return d.table.DerivedSince(start)
}

// readID reads an ID of at most maxDigits hexadecimal digits, and returns its upper and its lower 64 bits.
func (d *Decoder) readID(maxDigits int) (high, low uint64, err error) {
	const lowDigits = 16
	text, err := d.readText()
	digits := d.table.Bytes(text)
	if err != nil || len(digits) > maxDigits {
		return 0, 0, errors.Join(err, errValue)
	}
	highDigits := max(0, len(digits)-lowDigits)
	low, err = strconv.ParseUint(string(digits[highDigits:]), 16, 64)
	if err == nil && highDigits > 0 {
		high, err = strconv.ParseUint(string(digits[:highDigits]), 16, 64)
	}
	return high, low, err //nolint:wrapcheck // contains the invalid ID
}

// readMicroseconds reads a time in microseconds and returns it in nanoseconds.
func (d *Decoder) readMicroseconds() (uint64, error) {
	text, err := d.readText()
	if err != nil {
		return 0, err
	}
	micros, isInteger := jsonscan.ParseInteger(d.table.Bytes(text))
	if !isInteger {
		return 0, errValue
	}
	return nanoseconds(micros), nil
}

// readKind reads the name of a span kind. It returns an error if there is no such kind.
func (d *Decoder) readKind() (spantable.Kind, error) {
	name, err := d.readText()
	i := slices.Index(kindNames[:], d.table.String(name))
	isKnown := i > 0 // the first name is empty
	if !isKnown {
		return spantable.KindInternal, errors.Join(err, errValue)
	}
	return kinds[i], nil
}
