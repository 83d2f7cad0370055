package payload

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

const (
	// maxElements is what the agent takes of one array or map.
	maxElements = 500_000
	// maxDepth bounds what is skipped under an unknown key.
	maxDepth = 64
)

// ErrNilElement is a nil bucket or group. The agent's decoder takes it, its
// handler panics on it, and the client sees the connection closed.
var ErrNilElement = errors.New("a nil element, on which the agent panics")

// Decode reads a payload by the agent's rules: a field has exactly its
// type, an integer any width, an unknown field is skipped, and bytes after the
// payload are ignored.
func Decode(body []byte) (*Payload, error) {
	p := &Payload{}
	if err := newDecoder(body).value(reflect.ValueOf(p).Elem()); err != nil {
		return nil, fmt.Errorf("decode payload: %w", err)
	}
	return p, nil
}

// decoder adds the agent's strictness to the library's decoder, which takes a
// nil for anything and converts between types.
type decoder struct {
	*msgpack.Decoder
	body *bytes.Reader
}

func newDecoder(body []byte) *decoder {
	r := bytes.NewReader(body)
	return &decoder{msgpack.NewDecoder(r), r}
}

// value reads one value into a field of a payload. It compares the value's lead
// byte with the field's type first.
func (d *decoder) value(to reflect.Value) error {
	lead, err := d.PeekCode()
	if err != nil {
		return err
	}
	kind, isBytes := to.Kind(), to.Type() == reflect.TypeFor[[]byte]()
	switch {
	case kind == reflect.String && msgpcode.IsString(lead), isBytes && msgpcode.IsBin(lead),
		kind == reflect.Bool && (lead == msgpcode.True || lead == msgpcode.False):
		return d.Decode(to.Addr().Interface())
	case (to.CanUint() || to.CanInt()) && isInteger(lead):
		return d.integer(to)
	case kind == reflect.Struct && isMap(lead):
		return d.object(to)
	case kind == reflect.Slice && !isBytes && isArray(lead):
		return d.list(to)
	}
	return fmt.Errorf("lead byte %#x where %s is expected", lead, to.Type())
}

func isInteger(lead byte) bool {
	return msgpcode.IsFixedNum(lead) || lead >= msgpcode.Uint8 && lead <= msgpcode.Int64
}

func isMap(lead byte) bool {
	return msgpcode.IsFixedMap(lead) || lead == msgpcode.Map16 || lead == msgpcode.Map32
}

func isArray(lead byte) bool {
	return msgpcode.IsFixedArray(lead) || lead == msgpcode.Array16 || lead == msgpcode.Array32
}

// integer reads an integer of any width. Scanning its digits refuses those that the
// field has no room for, and a sign where it has none.
func (d *decoder) integer(to reflect.Value) error {
	n, err := d.DecodeInterface()
	if err == nil {
		_, err = fmt.Sscan(fmt.Sprint(n), to.Addr().Interface())
	}
	return err
}

// list reads an array, in which neither a bucket nor a group may be nil.
func (d *decoder) list(to reflect.Value) error {
	n, err := d.length(d.DecodeArrayLen())
	if err != nil {
		return err
	}
	to.SetZero()
	for i := range n {
		element := reflect.New(to.Type().Elem()).Elem()
		if lead, _ := d.PeekCode(); lead == msgpcode.Nil && element.Kind() == reflect.Struct {
			return fmt.Errorf("[%d]: %w", i, ErrNilElement)
		}
		if err := d.value(element); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		to.Set(reflect.Append(to, element))
	}
	return nil
}

// object reads a map with text keys in any order.
func (d *decoder) object(to reflect.Value) error {
	n, err := d.length(d.DecodeMapLen())
	if err != nil {
		return err
	}
	for range n {
		var name string
		if err := d.value(reflect.ValueOf(&name).Elem()); err != nil {
			return err
		}
		if field, known := fields[to.Type()][name]; known {
			err = d.value(to.Field(field))
		} else {
			err = d.skip(maxDepth)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// length refuses more elements than the agent would read.
func (d *decoder) length(n int, err error) (int, error) {
	if err == nil && n > maxElements {
		err = fmt.Errorf("%d elements, at most %d are read", n, maxElements)
	}
	return n, err
}

// fields are the fields of what a payload is made of, by their keys on the wire.
var fields = map[reflect.Type]map[string]int{
	reflect.TypeFor[Payload](): fieldsOf[Payload](),
	reflect.TypeFor[Bucket]():  fieldsOf[Bucket](),
	reflect.TypeFor[Group]():   fieldsOf[Group](),
}

func fieldsOf[T any]() map[string]int {
	byKey := map[string]int{}
	for i, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		byKey[cmp.Or(field.Tag.Get("msgpack"), field.Name)] = i
	}
	return byKey
}

// skip passes over one value of any type. The library's Skip follows nested
// values as deep as they go, so arrays and maps are walked here.
func (d *decoder) skip(depth int) error {
	lead, err := d.PeekCode()
	if err != nil {
		return err
	}
	values := 0
	switch {
	case depth == 0:
		return errors.New("values are nested too deeply")
	case isArray(lead):
		values, err = d.DecodeArrayLen()
	case isMap(lead):
		values, err = d.DecodeMapLen()
		values *= 2
	default:
		return d.Skip()
	}
	for i := 0; i < values && err == nil; i++ {
		err = d.skip(depth - 1)
	}
	return err
}
