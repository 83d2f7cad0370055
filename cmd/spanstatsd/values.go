package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// text is the value of a flag that takes any text. The kind is what help calls that text.
type text struct {
	value *string
	kind  string
}

func (t text) Set(given string) error { *t.value = given; return nil }
func (t text) String() string         { return *t.value }
func (t text) Type() string           { return t.kind }

// The kinds of text that a shell completes: as a file, as a directory.
const (
	pathKind      = "path"
	directoryKind = "directory"
)

// choice is the value of a flag that takes one of a few words, in lower or upper case.
type choice struct {
	value *string
	from  string // the default
	of    []string
}

// choose sets a default, and returns the value of a flag that takes one of these words.
func choose(value *string, from string, of ...string) choice {
	*value = from
	return choice{value, from, of}
}

func (c choice) Set(given string) error {
	word := strings.ToLower(given)
	if word != c.from && !slices.Contains(c.of, word) {
		return fmt.Errorf("%q is none of %s", given, strings.Join(c.of, ", "))
	}
	*c.value = word
	return nil
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return strings.Join(c.of, "|") }

// parsed is the value of a flag whose text is read as soon as it is given, so that a mistake
// names the flag or the variable that made it.
type parsed[T any] struct {
	into  *T
	kind  string
	parse func(string) (T, error)
	given string
}

// parse sets a default where it is not empty, and returns the value of a flag that is read so.
func parse[T any](into *T, from, kind string, read func(string) (T, error)) *parsed[T] {
	p := &parsed[T]{into: into, kind: kind, parse: read}
	if err := p.Set(from); err != nil && from != "" {
		panic("BUG: a default can't be used: " + err.Error())
	}
	return p
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

// size is the value of a flag that takes a number of bytes: 16MiB or 16777216. It is shown in
// the largest unit that divides it.
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
