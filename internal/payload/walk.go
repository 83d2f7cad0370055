package payload

import (
	"fmt"
	"reflect"
)

// Walk reads payloads a group at a time, for who adds them up: by the rules of Decode, but one
// of which anything would be lost is ErrLoses. An error of either function ends it.
type Walk struct {
	MaxTags int // of a payload, in all of its lists
	// Group is called with each group. Its texts and sketches are parts of the body.
	Group func(*Group) error
	// Bucket is called behind its groups, without them.
	Bucket func(*Bucket) error
}

// Decode reads a payload and returns it without its buckets. Its texts are parts of the body.
func (w Walk) Decode(body []byte) (*Payload, error) {
	p, d, tags := &Payload{}, newDecoder(body), 0
	d.visit = func(element any) (isKept bool, err error) {
		switch e := element.(type) {
		case *Group:
			return false, w.Group(e)
		case *Bucket:
			return false, w.Bucket(e)
		}
		if tags++; tags > w.MaxTags {
			return false, fmt.Errorf("more than %d tags: %w", w.MaxTags, ErrLoses)
		}
		return true, nil
	}
	if err := d.value(reflect.ValueOf(p).Elem()); err != nil {
		return nil, fmt.Errorf("walk payload: %w", err)
	}
	return p, nil
}
