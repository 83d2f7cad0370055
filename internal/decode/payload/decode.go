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
	// maxElements is the agent's limit on the elements of an array or a map.
	maxElements = 500_000
	// maxDepth is the maximum nesting of a skipped value.
	maxDepth = 64
)

// ErrNilElement is the error for a nil bucket or group. The agent's decoder accepts it, but its handler
// panics and closes the connection.
var ErrNilElement = errors.New("a nil element, on which the agent panics")

// ErrLossy is the error of a Visitor for a payload of which it would lose a part: one with an unknown field or too
// many tags.
var ErrLossy = errors.New("the payload can't be decoded completely")

// Decode decodes a payload like the Datadog agent. Each field must have the expected type, but integers
// can have any width. Decode skips unknown fields, and ignores bytes after the payload.
func Decode(body []byte) (*Payload, error) {
	p := &Payload{}
	if err := newDecoder(body).decodeValue(reflect.ValueOf(p).Elem()); err != nil {
		return nil, fmt.Errorf("decode payload: %w", err)
	}
	return p, nil
}

// decoder decodes a payload with the library, but checks types as the agent does. The library alone
// would accept nil for every type, and convert between types.
type decoder struct {
	*msgpack.Decoder
	body   []byte
	reader *bytes.Reader // unread part of body

	// visit is called for each element of a list, and returns whether to store the element in the list. If
	// it is set, strings are slices of body, and unknown fields are an error. It is nil for Decode.
	visit func(element any) (isStored bool, err error)
}

// isVisitor reports whether the decoder belongs to a Visitor, and not to the function Decode.
func (d *decoder) isVisitor() bool { return d.visit != nil }

func newDecoder(body []byte) *decoder {
	r := bytes.NewReader(body)
	return &decoder{Decoder: msgpack.NewDecoder(r), body: body, reader: r}
}

// decodeValue decodes a MessagePack value into dst. It returns an error if the value is invalid or has
// another type than dst. Integers can have another size.
func (d *decoder) decodeValue(dst reflect.Value) error {
	firstByte, err := d.PeekCode()
	if err != nil {
		return err
	}
	kind := dst.Kind()
	isIntegerKind := dst.CanUint() || dst.CanInt()
	isBytes := dst.Type() == reflect.TypeFor[[]byte]()
	switch {
	case kind == reflect.String && msgpcode.IsString(firstByte):
		return d.decodeString(dst)
	case isBytes && msgpcode.IsBin(firstByte):
		b, err := d.decodeBytes()
		dst.SetBytes(b)
		return err
	case kind == reflect.Bool && isBool(firstByte):
		v, err := d.DecodeBool()
		dst.SetBool(v)
		return err
	case isIntegerKind && isInteger(firstByte):
		return d.decodeInteger(dst, firstByte)
	case kind == reflect.Struct && isMap(firstByte):
		return d.decodeStruct(dst)
	case kind == reflect.Slice && !isBytes && isArray(firstByte):
		return d.decodeSlice(dst)
	}
	return fmt.Errorf("lead byte %#x where %s is expected", firstByte, dst.Type())
}

// decodeString decodes a string into dst without copying it again.
func (d *decoder) decodeString(dst reflect.Value) error {
	text, err := d.decodeBytes()
	dst.SetString(unsafe.String(unsafe.SliceData(text), len(text))) // text is never modified
	return err
}

func isBool(lead byte) bool { return lead == msgpcode.True || lead == msgpcode.False }

func isInteger(lead byte) bool {
	return msgpcode.IsFixedNum(lead) || lead >= msgpcode.Uint8 && lead <= msgpcode.Int64
}

func isMap(lead byte) bool {
	return msgpcode.IsFixedMap(lead) || lead == msgpcode.Map16 || lead == msgpcode.Map32
}

func isArray(lead byte) bool {
	return msgpcode.IsFixedArray(lead) || lead == msgpcode.Array16 || lead == msgpcode.Array32
}

// decodeBytes decodes a string or binary data. If d decodes for a Visitor, the result refers to the
// body and must not be modified. Otherwise, it is a copy.
func (d *decoder) decodeBytes() ([]byte, error) {
	length, err := d.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if length > d.reader.Len() { // the number of unread bytes
		return nil, io.ErrUnexpectedEOF
	}
	pos := len(d.body) - d.reader.Len()
	end := pos + length
	content := d.body[pos:end:end]
	if !d.isVisitor() {
		content = bytes.Clone(content)
	}
	_, err = d.reader.Seek(int64(length), io.SeekCurrent)
	return content, err
}

// decodeInteger decodes an integer of any width into dst. lead is the first byte of the encoded
// integer, which is not read yet. decodeInteger returns an error if dst cannot represent the integer.
func (d *decoder) decodeInteger(dst reflect.Value, lead byte) error {
	bits, err := d.DecodeUint64()
	if err != nil {
		return err
	}
	hasHighBit := bits > math.MaxInt64
	isUnsigned := lead == msgpcode.Uint64   // no other encoding can exceed an int64
	isNegative := hasHighBit && !isUnsigned // bits is the two's complement
	exceedsInt64 := hasHighBit && isUnsigned
	fitsUint := dst.CanUint() && !isNegative && !dst.OverflowUint(bits)
	fitsInt := dst.CanInt() && !exceedsInt64 && !dst.OverflowInt(int64(bits))
	switch {
	case fitsUint:
		dst.SetUint(bits)
	case fitsInt:
		dst.SetInt(int64(bits))
	default:
		return fmt.Errorf("an integer that exceeds the range of %s", dst.Type())
	}
	return nil
}

// decodeSlice decodes an array into dst, and replaces the previous content of dst.
func (d *decoder) decodeSlice(dst reflect.Value) error {
	n, err := checkLength(d.DecodeArrayLen())
	if err != nil {
		return err
	}
	dst.SetZero()
	for i := range n {
		if err := d.decodeElement(dst); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return nil
}

// decodeElement decodes an array element and appends it to slice, unless d.visit returns false for the
// element. It returns ErrNilElement if the element should be a struct but is nil.
func (d *decoder) decodeElement(slice reflect.Value) error {
	element := reflect.New(slice.Type().Elem()).Elem() // a new variable, which decodeValue can set
	firstByte, err := d.PeekCode()
	if err != nil {
		return err
	}
	isStruct := element.Kind() == reflect.Struct
	if isStruct && firstByte == msgpcode.Nil {
		return ErrNilElement
	}
	if err := d.decodeValue(element); err != nil {
		return err
	}
	if d.isVisitor() {
		isStored, err := d.visit(element.Addr().Interface())
		if err != nil || !isStored {
			return err
		}
	}
	slice.Set(reflect.Append(slice, element))
	return nil
}

// decodeStruct decodes a MessagePack map, whose keys are field names in any order, into the struct dst. It
// skips the value of an unknown key. If d decodes for a Visitor, which must not lose data, decodeStruct instead
// returns an error that wraps ErrLossy.
func (d *decoder) decodeStruct(dst reflect.Value) error {
	n, err := checkLength(d.DecodeMapLen())
	if err != nil {
		return err
	}
	var name string
	nameValue := reflect.ValueOf(&name).Elem() // decodeValue sets name through it
	for range n {
		if err := d.decodeValue(nameValue); err != nil {
			return err
		}
		if err := d.decodeField(dst, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// decodeField decodes the value of the field with the given name into the struct dst. If dst has no such
// field, it skips the value. If d decodes for a Visitor, which must not lose data, decodeField instead returns
// ErrLossy.
func (d *decoder) decodeField(dst reflect.Value, name string) error {
	index, isKnown := fieldsByType[dst.Type()][name]
	if isKnown {
		return d.decodeValue(dst.FieldByIndex(index))
	}
	if d.isVisitor() {
		return ErrLossy
	}
	return d.skipValue(maxDepth)
}

// checkLength returns an error if an array or a map exceeds the agent's limit.
func checkLength(n int, err error) (int, error) {
	if err == nil && n > maxElements {
		err = fmt.Errorf("%d elements exceed the maximum of %d", n, maxElements)
	}
	return n, err
}

// fieldsByType maps the keys of each type in a payload to the indexes of its fields.
var fieldsByType = map[reflect.Type]map[string][]int{
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

// skipValue skips a value of any type. It returns an error if the value has more than maxLevels levels: a
// number has one, and an array of numbers has two. The method Skip of the library has no such limit.
func (d *decoder) skipValue(maxLevels int) error {
	lead, err := d.PeekCode()
	if err != nil {
		return err
	}
	if maxLevels == 0 {
		return errors.New("values are nested too deeply")
	}
	values := 0 // in the array or map
	switch {
	case isArray(lead):
		values, err = d.DecodeArrayLen()
	case isMap(lead):
		values, err = d.DecodeMapLen()
		values *= 2 // keys and values
	default:
		return d.Decoder.Skip()
	}
	for i := 0; i < values && err == nil; i++ {
		err = d.skipValue(maxLevels - 1)
	}
	return err
}
