package commandline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// Kinds of text that a shell completes as a file or as a directory.
const (
	Path      = "path"
	Directory = "directory"
)

// value implements pflag.Value with functions. Help shows kind as the placeholder for the flag's
// value.
type value struct {
	set  func(given string) error
	text func() string
	kind string
}

func (v value) Set(given string) error { return v.set(given) }
func (v value) Type() string           { return v.kind }

func (v value) String() string {
	if v.text == nil { // pflag calls String on the zero value
		return ""
	}
	return v.text()
}

// Text returns a value that accepts any text, and stores it in target.
func Text(target *string, kind string) pflag.Value {
	set := func(given string) error {
		*target = given
		return nil
	}
	return value{set, func() string { return *target }, kind}
}

// switchWords maps the booleans, which flags with the values on and off accept too, to those
// values.
var switchWords = map[string]string{"true": "on", "1": "on", "false": "off", "0": "off"}

// Choice sets the target to a default, and returns a value that accepts one of a few words, in
// lower or upper case. The default does not have to be one of the words.
func Choice[T ~string](target *T, initial T, choices ...T) pflag.Value {
	*target = initial
	words := make([]string, len(choices))
	for i, word := range choices {
		words[i] = string(word)
	}
	set := func(given string) error {
		word := strings.ToLower(given)
		if alias, ok := switchWords[word]; ok {
			word = alias
		}
		if !slices.Contains(words, word) && word != string(initial) {
			return fmt.Errorf("%q is not one of %s", given, strings.Join(words, ", "))
		}
		*target = T(word)
		return nil
	}
	return value{set, func() string { return string(*target) }, strings.Join(words, "|")}
}

// Parsed sets the target to the default text, if it is valid, and returns a value that is parsed
// when it is set.
func Parsed[T any](target *T, initial, kind string, parse func(string) (T, error)) pflag.Value {
	text := ""
	set := func(given string) error {
		parsed, err := parse(given)
		if err == nil {
			*target, text = parsed, given
		}
		return err
	}
	if err := set(initial); err != nil && initial != "" {
		panic("BUG: a default is invalid: " + err.Error())
	}
	return value{set, func() string { return text }, kind}
}

// Size returns a value that accepts a number of bytes, such as 16MiB or 16777216. It is shown in
// the largest unit that divides it.
func Size(target *int) pflag.Value {
	set := func(given string) error {
		bytes, err := memory.ParseSize(given)
		if err == nil {
			*target = bytes
		}
		return err
	}
	return value{set, func() string { return memory.SizeText(*target) }, "size"}
}
