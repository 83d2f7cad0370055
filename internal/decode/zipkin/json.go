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
	d.readSpans()
	if err := d.Err(); err != nil {
		r.Fail(fmt.Errorf("%w; at byte %d: %w", ErrUnparsable, d.Pos, err))
	}
	return r.Err() //nolint:wrapcheck // already says what to do
}

// readSpans reads an array of spans. It is an error if anything but white space follows.
func (d *Decoder) readSpans() {
	d.enter('[')
	for d.NextElement(']') {
		d.readSpan()
	}
	d.Peek() // skips white space
	hasTrailingData := d.Pos < len(d.Body)
	if hasTrailingData {
		d.Fail(errValue)
	}
}

func (d *Decoder) readSpan() {
	d.beginSpan()
	d.enter('{')
	for d.NextElement('}') {
		name, isNull := d.readName()
		if !isNull {
			d.readSpanField(name)
		}
	}
	if d.Err() != nil {
		return
	}
	if err := d.endSpan(); err != nil {
		d.Fail(err)
	}
}

// enter reads the opening bracket of an array or object. It is an error if the next byte is not opener.
func (d *Decoder) enter(opener byte) {
	if d.Peek() != opener {
		d.Fail(errValue)
		return
	}
	d.Enter()
}

// readName reads the name of an object member. If the value is null, it also reads the value.
func (d *Decoder) readName() (name []byte, isNull bool) {
	name = d.table.Bytes(d.storeString(d.ReadName()))
	isNull = d.Peek() == 'n'
	if isNull {
		d.ReadLiteral("null")
	}
	return name, isNull
}

// Maximum numbers of hexadecimal digits of IDs.
const (
	traceIDDigits = 32
	spanIDDigits  = 16
)

// readSpanField reads the value of a field of a Zipkin span into the current span. name is the name of
// the field. It skips the value if the field is unknown.
func (d *Decoder) readSpanField(name []byte) {
	s := &d.span
	switch string(name) {
	case "traceId":
		d.extra.TraceHigh, d.extra.TraceLow = d.readID(traceIDDigits)
	case "id":
		_, s.ID = d.readID(spanIDDigits)
	case "parentId":
		_, s.Parent = d.readID(spanIDDigits)
	case "name":
		s.Name = d.readText()
	case "kind":
		s.Kind = d.readKind()
	case "timestamp":
		s.Start = d.readMicroseconds()
	case "duration":
		d.hasDuration = true
		s.Duration = d.readMicroseconds()
	case "localEndpoint":
		d.readEndpoint(&d.service)
	case "remoteEndpoint":
		d.readEndpoint(&d.peer)
	case "shared":
		if d.Peek() == 't' {
			d.isShared = true
		}
		d.skip()
	case "tags":
		d.readTags()
	default:
		d.skip()
	}
}

// readTags reads an object whose members are the tags of the current span.
func (d *Decoder) readTags() {
	d.enter('{')
	for d.NextElement('}') {
		name, isNull := d.readName()
		if !isNull {
			d.applyTag(name, d.readText())
		}
	}
}

// readEndpoint reads an endpoint object, and stores the service name in service if there is one.
func (d *Decoder) readEndpoint(service *spantable.Text) {
	d.enter('{')
	for d.NextElement('}') {
		name, isNull := d.readName()
		switch {
		case isNull:
		case string(name) == "serviceName":
			*service = d.readText()
		default:
			d.skip()
		}
	}
}

func (d *Decoder) skip() { d.table.Derived = d.SkipValue(d.table.Derived) }

// readText reads a string or a number, and returns its text.
func (d *Decoder) readText() spantable.Text {
	if d.Peek() == '"' {
		return d.storeString(d.ReadString())
	}
	start := uint32(d.Pos)
	number := d.ReadNumber()
	return spantable.Text{Start: start, Len: uint32(len(number))}
}

// storeString returns the position and the length of a JSON string in the body. A string with escape sequences
// is decoded first, and the decoded text is stored in d.table.Derived.
func (d *Decoder) storeString(s jsonscan.String) spantable.Text {
	if s.IsPlain {
		return spantable.Text{Start: uint32(s.Start), Len: uint32(len(s.Raw))}
	}
	start := len(d.table.Derived)
	d.table.Derived = s.AppendTo(d.table.Derived)
	return d.table.DerivedSince(start)
}

// readID reads an ID of at most maxDigits hexadecimal digits, and returns its upper and its lower 64 bits.
func (d *Decoder) readID(maxDigits int) (high, low uint64) {
	const lowDigits = 16 // of 64 bits
	digits := d.table.Bytes(d.readText())
	if len(digits) > maxDigits {
		d.Fail(errValue)
		return 0, 0
	}
	highDigits := max(0, len(digits)-lowDigits)
	low, err := strconv.ParseUint(string(digits[highDigits:]), 16, 64)
	if err == nil && highDigits > 0 {
		high, err = strconv.ParseUint(string(digits[:highDigits]), 16, 64)
	}
	if err != nil {
		d.Fail(err) // contains the invalid ID
	}
	return high, low
}

// readMicroseconds reads a time in microseconds and returns it in nanoseconds.
func (d *Decoder) readMicroseconds() uint64 {
	micros, isInteger := jsonscan.ParseInteger(d.table.Bytes(d.readText()))
	if !isInteger {
		d.Fail(errValue)
	}
	return nanoseconds(micros)
}

// readKind reads the name of a span kind. It is an error if there is no such kind.
func (d *Decoder) readKind() spantable.Kind {
	name := d.table.String(d.readText())
	i := slices.Index(kindNames[:], name)
	isKnown := i > 0 // the first name is empty
	if !isKnown {
		d.Fail(errValue)
		return spantable.KindInternal
	}
	return kinds[i]
}
