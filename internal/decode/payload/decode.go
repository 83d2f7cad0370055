package payload

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"unsafe"

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
	bytes []byte
	body  *bytes.Reader // of them
	// visit, unless it is nil, is handed each element of a list and says whether it is kept.
	// Then texts are parts of the body, and an unknown field is ErrLossy.
	visit func(element any) (isKept bool, err error)
}

func newDecoder(body []byte) *decoder {
	r := bytes.NewReader(body)
	return &decoder{Decoder: msgpack.NewDecoder(r), bytes: body, body: r}
}

// ErrLossy is what would lose something of a payload that is visited.
var ErrLossy = errors.New("there is no place for it")

// value reads one value into a field of a payload. It compares the value's lead
// byte with the field's type first.
func (d *decoder) value(to reflect.Value) error {
	lead, err := d.PeekCode()
	if err != nil {
		return err
	}
	kind, isBytes := to.Kind(), to.Type() == reflect.TypeFor[[]byte]()
	switch {
	case kind == reflect.String && msgpcode.IsString(lead):
		text, err := d.raw()
		to.SetString(unsafe.String(unsafe.SliceData(text), len(text)))
		return err
	case isBytes && msgpcode.IsBin(lead):
		raw, err := d.raw()
		to.SetBytes(raw)
		return err
	case kind == reflect.Bool && (lead == msgpcode.True || lead == msgpcode.False):
		is, err := d.DecodeBool()
		to.SetBool(is)
		return err
	case (to.CanUint() || to.CanInt()) && isInteger(lead):
		return d.integer(to, lead)
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

// raw is a string or bytes: where they lie in the body, or for who keeps them a copy.
func (d *decoder) raw() ([]byte, error) {
	n, err := d.DecodeBytesLen()
	if err == nil && n > d.body.Len() {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	at := len(d.bytes) - d.body.Len()
	raw := d.bytes[at : at+n : at+n]
	if d.visit == nil {
		raw = bytes.Clone(raw)
	}
	_, err = d.body.Seek(int64(n), io.SeekCurrent)
	return raw, err
}

// integer reads an integer of any width, but none that the field has no room for. The library
// has a negative one as its two's complement.
func (d *decoder) integer(to reflect.Value, lead byte) error {
	n, err := d.DecodeUint64()
	isNegative := int64(n) < 0 && lead != msgpcode.Uint64
	switch {
	case err != nil:
	case to.CanUint() && !isNegative && !to.OverflowUint(n):
		to.SetUint(n)
	case to.CanInt() && (isNegative || n <= math.MaxInt64) && !to.OverflowInt(int64(n)):
		to.SetInt(int64(n))
	default:
		err = fmt.Errorf("the integer %d where %s is expected", int64(n), to.Type())
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
		err := d.value(element)
		isKept := true
		if err == nil && d.visit != nil {
			isKept, err = d.visit(element.Addr().Interface())
		}
		if err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
		if isKept {
			to.Set(reflect.Append(to, element))
		}
	}
	return nil
}

// object reads a map with text keys in any order.
func (d *decoder) object(to reflect.Value) error {
	n, err := d.length(d.DecodeMapLen())
	if err != nil {
		return err
	}
	var name string
	fields := fields[to.Type()]
	for range n {
		if err := d.value(reflect.ValueOf(&name).Elem()); err != nil {
			return err
		}
		field, known := fields[name]
		switch {
		case known:
			err = d.value(to.FieldByIndex(field))
		case d.visit != nil:
			err = ErrLossy
		default:
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
var fields = map[reflect.Type]map[string][]int{
	reflect.TypeFor[Payload](): fieldsOf[Payload](),
	reflect.TypeFor[Bucket]():  fieldsOf[Bucket](),
	reflect.TypeFor[Group]():   fieldsOf[Group](),
}

func fieldsOf[T any]() map[string][]int {
	byKey := map[string][]int{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if !field.Anonymous {
			byKey[cmp.Or(field.Tag.Get("msgpack"), field.Name)] = field.Index
		}
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
