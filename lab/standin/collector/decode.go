package collector

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// value is one encoded field of a message.
type value struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	word   uint64
}

// is reports whether the field has a number and a type.
func (v value) is(number protowire.Number, kind protowire.Type) bool {
	return v.number == number && v.kind == kind
}

var errUnknown = errors.New("no such field of that type")

// each calls read for each field of a message.
func each(name string, message []byte, read func(value) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return fmt.Errorf("%s: %w", name, protowire.ParseError(size))
		}
		message = message[size:]
		v := value{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			v.word, size = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			v.word, size = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			v.bytes, size = protowire.ConsumeBytes(message)
		default:
			return fmt.Errorf("%s: field %d of type %d: %w", name, number, kind, errUnknown)
		}
		if size < 0 {
			return fmt.Errorf("%s: field %d: %w", name, number, protowire.ParseError(size))
		}
		message = message[size:]
		if err := read(v); err != nil {
			return fmt.Errorf("%s: field %d of type %d: %w", name, number, kind, err)
		}
	}
	return nil
}

// text reads a string, which must be UTF-8.
func (v value) text(dst *string) error {
	if !utf8.Valid(v.bytes) {
		return fmt.Errorf("%q is no UTF-8", v.bytes)
	}
	*dst = string(v.bytes)
	return nil
}

// Decode decodes a request and rejects everything that the specification does not define.
func Decode(body []byte) (r Request, err error) {
	return r, each("request", body, func(v value) error {
		if !v.is(1, protowire.BytesType) {
			return errUnknown
		}
		resource, err := decodeResource(v.bytes)
		r = append(r, resource)
		return err
	})
}

func decodeResource(message []byte) (r Resource, err error) {
	return r, each("resource metrics", message, func(v value) error {
		switch {
		case v.is(1, protowire.BytesType):
			return each("resource", v.bytes, func(v value) error {
				if v.is(1, protowire.BytesType) {
					return appendAttribute(&r.Attributes, v.bytes)
				}
				return errUnknown
			})
		case v.is(2, protowire.BytesType):
			scope, err := decodeScope(v.bytes)
			r.Scopes = append(r.Scopes, scope)
			return err
		}
		return errUnknown
	})
}

func decodeScope(message []byte) (s Scope, err error) {
	return s, each("scope metrics", message, func(v value) error {
		switch {
		case v.is(1, protowire.BytesType):
			return each("scope", v.bytes, func(v value) error {
				switch {
				case v.is(1, protowire.BytesType):
					return v.text(&s.Name)
				case v.is(2, protowire.BytesType):
					return v.text(&s.Version)
				}
				return errUnknown
			})
		case v.is(2, protowire.BytesType):
			metric, err := decodeMetric(v.bytes)
			s.Metrics = append(s.Metrics, metric)
			return err
		}
		return errUnknown
	})
}

func decodeMetric(message []byte) (m Metric, err error) {
	return m, each("metric", message, func(v value) error {
		switch {
		case v.is(1, protowire.BytesType):
			return v.text(&m.Name)
		case v.is(2, protowire.BytesType):
			return v.text(&m.Description)
		case v.is(3, protowire.BytesType):
			return v.text(&m.Unit)
		case v.is(7, protowire.BytesType), v.is(10, protowire.BytesType):
			m.IsHistogram = v.number == 10
			return m.decodeData(v.bytes)
		}
		return errUnknown
	})
}

// decodeData reads a Sum or an ExponentialHistogram.
func (m *Metric) decodeData(message []byte) error {
	return each("data of "+m.Name, message, func(v value) error {
		switch {
		case v.is(1, protowire.BytesType):
			decode := decodeNumber
			if m.IsHistogram {
				decode = decodeHistogram
			}
			point, err := decode(v.bytes)
			m.Points = append(m.Points, point)
			return err
		case v.is(2, protowire.VarintType):
			m.Temporality = v.word
			return nil
		case v.is(3, protowire.VarintType) && !m.IsHistogram:
			m.IsMonotonic = protowire.DecodeBool(v.word)
			return nil
		}
		return errUnknown
	})
}

func decodeNumber(message []byte) (p Point, err error) {
	return p, each("number", message, func(v value) error {
		switch {
		case v.is(2, protowire.Fixed64Type):
			p.Start = v.word
		case v.is(3, protowire.Fixed64Type):
			p.End = v.word
		case v.is(6, protowire.Fixed64Type):
			p.Value = int64(v.word)
		case v.is(7, protowire.BytesType):
			return appendAttribute(&p.Attributes, v.bytes)
		default:
			return errUnknown
		}
		return nil
	})
}

func decodeHistogram(message []byte) (p Point, err error) {
	return p, each("histogram", message, func(v value) error {
		switch {
		case v.is(1, protowire.BytesType):
			return appendAttribute(&p.Attributes, v.bytes)
		case v.is(2, protowire.Fixed64Type):
			p.Start = v.word
		case v.is(3, protowire.Fixed64Type):
			p.End = v.word
		case v.is(4, protowire.Fixed64Type):
			p.Count = v.word
		case v.is(5, protowire.Fixed64Type):
			p.Sum = math.Float64frombits(v.word)
		case v.is(6, protowire.VarintType):
			p.Scale = int32(protowire.DecodeZigZag(v.word))
		case v.is(7, protowire.Fixed64Type):
			p.Zeros = v.word
		case v.is(8, protowire.BytesType):
			return p.decodeBuckets(v.bytes)
		case v.is(11, protowire.BytesType):
			return p.decodeExemplar(v.bytes)
		default:
			return errUnknown
		}
		return nil
	})
}

func (p *Point) decodeBuckets(message []byte) error {
	return each("buckets", message, func(v value) error {
		switch {
		case v.is(1, protowire.VarintType):
			p.Offset = int32(protowire.DecodeZigZag(v.word))
			return nil
		case v.is(2, protowire.BytesType):
			for packed := v.bytes; len(packed) > 0; {
				n, size := protowire.ConsumeVarint(packed)
				if size < 0 {
					return protowire.ParseError(size)
				}
				p.Counts, packed = append(p.Counts, n), packed[size:]
			}
			return nil
		}
		return errUnknown
	})
}

func (p *Point) decodeExemplar(message []byte) error {
	x := Exemplar{Value: math.NaN()} // NaN if the message has no value
	err := each("exemplar", message, func(v value) error {
		switch {
		case v.is(2, protowire.Fixed64Type):
			x.Time = v.word
		case v.is(3, protowire.Fixed64Type):
			x.Value = math.Float64frombits(v.word)
		case v.is(4, protowire.BytesType):
			x.Span = v.bytes
		case v.is(5, protowire.BytesType):
			x.Trace = v.bytes
		default:
			return errUnknown
		}
		return nil
	})
	p.Exemplars = append(p.Exemplars, x)
	return err
}

func appendAttribute(dst *[]Attribute, message []byte) error {
	var a Attribute
	err := each("attribute", message, func(v value) (err error) {
		switch {
		case v.is(1, protowire.BytesType):
			return v.text(&a.Key)
		case v.is(2, protowire.BytesType):
			a.Value, err = decodeValue(v.bytes)
			return err
		}
		return errUnknown
	})
	*dst = append(*dst, a)
	return err
}

// decodeValue reads an AnyValue.
func decodeValue(message []byte) (decoded any, err error) {
	return decoded, each("value", message, func(v value) error {
		switch {
		case v.is(1, protowire.BytesType):
			var text string
			err := v.text(&text)
			decoded = text
			return err
		case v.is(2, protowire.VarintType):
			decoded = protowire.DecodeBool(v.word)
			return nil
		case v.is(3, protowire.VarintType):
			decoded = int64(v.word)
			return nil
		case v.is(5, protowire.BytesType):
			list := []string{}
			decoded = list
			return each("list", v.bytes, func(v value) error {
				if !v.is(1, protowire.BytesType) {
					return errUnknown
				}
				element, err := decodeValue(v.bytes)
				text, isText := element.(string)
				if !isText {
					return errors.Join(err, errors.New("an element of a list is no text"))
				}
				list = append(list, text)
				decoded = list
				return err
			})
		}
		return errUnknown
	})
}
