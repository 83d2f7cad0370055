package ring

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"golang.org/x/sys/cpu"
)

const (
	// line is what one cache line of this processor holds.
	line = unsafe.Sizeof(cpu.CacheLinePad{})

	// apart is the distance between fields that different threads write. It is
	// two lines, because processors that fetch lines in pairs would otherwise
	// carry the neighbour along.
	apart = 2 * line
)

// aligned returns n zeroed elements whose first starts a cache line. E holds
// no pointers, so that memory allocated as bytes may carry it: the collector
// looks at neither.
func aligned[E any](n int) []E {
	var zero E
	raw := make([]byte, uintptr(n)*unsafe.Sizeof(zero)+line)
	base := unsafe.Pointer(unsafe.SliceData(raw))
	offset := -uintptr(base) & (line - 1)
	return unsafe.Slice((*E)(unsafe.Add(base, offset)), n)
}

// checkFlat says why a slot type can't be kept in a ring: it has no size, or it
// holds something that the garbage collector would have to follow.
func checkFlat(t reflect.Type) error {
	if t.Size() == 0 {
		return errors.New("it has no size; give a slot at least one field")
	}
	return checkField(t, t.String())
}

// checkField descends through arrays and structs to the numbers.
func checkField(t reflect.Type, path string) error {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return checkField(t.Elem(), path+"[]")
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if err := checkField(field.Type, path+"."+field.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s is a %s, which holds a pointer; keep only numbers, arrays and structs of them",
		path, t)
}
