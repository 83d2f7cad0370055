package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// Text is the value of a flag that takes any text. The kind is what help calls that text.
func Text(value *string, kind string) pflag.Value { return text{value, kind} }

type text struct {
	value *string
	kind  string
}

func (t text) Set(given string) error { *t.value = given; return nil }
func (t text) String() string         { return *t.value }
func (t text) Type() string           { return t.kind }

// The kinds of text that a shell completes: as a file, as a directory.
const (
	Path      = "path"
	Directory = "directory"
)

// Choice sets a default, and returns the value of a flag that takes one of a few words, in lower
// or upper case.
func Choice[T ~string](value *T, from T, of ...T) pflag.Value {
	*value = from
	return choice[T]{value, from, of}
}

type choice[T ~string] struct {
	value *T
	from  T // the default
	of    []T
}

func (c choice[T]) Set(given string) error {
	word := T(strings.ToLower(given))
	if word != c.from && !slices.Contains(c.of, word) {
		return fmt.Errorf("%q is none of %s", given, c.list(", "))
	}
	*c.value = word
	return nil
}

func (c choice[T]) String() string { return string(*c.value) }
func (c choice[T]) Type() string   { return c.list("|") }

func (c choice[T]) list(between string) string {
	words := make([]string, len(c.of))
	for i, word := range c.of {
		words[i] = string(word)
	}
	return strings.Join(words, between)
}

// Parsed sets a default, where it is not empty, and returns the value of a flag whose text is read
// as soon as it is given, so that a mistake names the flag or the variable that made it.
func Parsed[T any](into *T, from, kind string, parse func(string) (T, error)) pflag.Value {
	p := &parsed[T]{into: into, kind: kind, parse: parse}
	if err := p.Set(from); err != nil && from != "" {
		panic("BUG: a default can't be used: " + err.Error())
	}
	return p
}

type parsed[T any] struct {
	into  *T
	kind  string
	parse func(string) (T, error)
	given string
}

func (p *parsed[T]) Set(given string) error {
	value, err := p.parse(given)
	if err == nil {
		*p.into, p.given = value, given
	}
	return err
}

func (p *parsed[T]) String() string { return p.given }
func (p *parsed[T]) Type() string   { return p.kind }

// Size is the value of a flag that takes a number of bytes: 16MiB or 16777216. It is shown in
// the largest unit that divides it.
func Size(bytes *int) pflag.Value { return (*size)(bytes) }

type size int

func (s *size) Set(given string) error {
	bytes, err := memory.ParseSize(given)
	if err == nil {
		*s = size(bytes)
	}
	return err
}

func (s *size) String() string { return memory.SizeText(int(*s)) }
func (*size) Type() string     { return "size" }
