package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// The kinds of text that a shell completes as a file or as a directory.
const (
	Path      = "path"
	Directory = "directory"
)

// value is a pflag.Value of functions. Help shows its kind as the flag's placeholder.
type value struct {
	set  func(given string) error
	text func() string
	kind string
}

func (v value) Set(given string) error { return v.set(given) }
func (v value) Type() string           { return v.kind }

func (v value) String() string {
	if v.text == nil { // pflag asks the zero value
		return ""
	}
	return v.text()
}

// Text returns a value that takes any text.
func Text(into *string, kind string) pflag.Value {
	set := func(given string) error {
		*into = given
		return nil
	}
	return value{set, func() string { return *into }, kind}
}

// switchWords are the booleans that flags with the words on and off accept as well.
var switchWords = map[string]string{"true": "on", "1": "on", "false": "off", "0": "off"}

// Choice sets a default, and returns a value that takes one of a few words, in lower or upper case.
func Choice[T ~string](into *T, from T, of ...T) pflag.Value {
	*into = from
	words := make([]string, len(of))
	for i, word := range of {
		words[i] = string(word)
	}
	set := func(given string) error {
		word := strings.ToLower(given)
		if alias, ok := switchWords[word]; ok {
			word = alias
		}
		if !slices.Contains(words, word) && word != string(from) {
			return fmt.Errorf("%q is none of %s", given, strings.Join(words, ", "))
		}
		*into = T(word)
		return nil
	}
	return value{set, func() string { return string(*into) }, strings.Join(words, "|")}
}

// Parsed sets a default, if it is not empty, and returns a value whose text is parsed when it is given.
func Parsed[T any](into *T, from, kind string, parse func(string) (T, error)) pflag.Value {
	text := ""
	set := func(given string) error {
		parsed, err := parse(given)
		if err == nil {
			*into, text = parsed, given
		}
		return err
	}
	if err := set(from); err != nil && from != "" {
		panic("BUG: a default is invalid: " + err.Error())
	}
	return value{set, func() string { return text }, kind}
}

// Size returns a value that takes a number of bytes, as 16MiB or 16777216. It is shown in the largest unit
// that divides it.
func Size(into *int) pflag.Value {
	set := func(given string) error {
		bytes, err := memory.ParseSize(given)
		if err == nil {
			*into = bytes
		}
		return err
	}
	return value{set, func() string { return memory.SizeText(*into) }, "size"}
}
