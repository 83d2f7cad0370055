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
	set  func(text string) error
	text func() string
	kind string
}

func (v value) Set(text string) error { return v.set(text) }
func (v value) Type() string          { return v.kind }

func (v value) String() string {
	if v.text == nil { // pflag calls String on the zero value
		return ""
	}
	return v.text()
}

// Text returns a flag value that accepts any text and stores it in target. Help shows kind as the placeholder of the
// value. A shell completes file names if kind is Path, and directories if kind is Directory.
func Text(target *string, kind string) pflag.Value {
	set := func(text string) error {
		*target = text
		return nil
	}
	return value{set: set, text: func() string { return *target }, kind: kind}
}

// synonyms maps the other words for on and off to on and off.
var synonyms = map[string]string{"true": "on", "1": "on", "false": "off", "0": "off"}

// Choice returns a flag value that accepts defaultWord and the words in choices, ignoring case, and stores the word
// in target. It stores defaultWord immediately. For on and off, it also accepts true, 1, false and 0.
func Choice[T ~string](target *T, defaultWord T, choices ...T) pflag.Value {
	*target = defaultWord
	listed := make([]string, len(choices)) // in the help and in errors, without defaultWord
	for i, word := range choices {
		listed[i] = string(word)
	}
	set := func(text string) error {
		word := strings.ToLower(text)
		if replacement, isSynonym := synonyms[word]; isSynonym {
			word = replacement
		}
		isValid := word == string(defaultWord) || slices.Contains(listed, word)
		if !isValid {
			return fmt.Errorf("%q is not one of %s", text, strings.Join(listed, ", "))
		}
		*target = T(word)
		return nil
	}
	return value{set: set, text: func() string { return string(*target) }, kind: strings.Join(listed, "|")}
}

// Parsed returns a flag value that accepts the texts that parse accepts, and stores the results of parse in
// target. It immediately stores the result for defaultText, which parse must accept even if it is empty. Help
// shows kind as the placeholder of the value.
func Parsed[T any](target *T, defaultText, kind string, parse func(string) (T, error)) pflag.Value {
	acceptedText := ""
	set := func(text string) error {
		parsed, err := parse(text)
		if err != nil {
			return err
		}
		*target = parsed
		acceptedText = text
		return nil
	}
	if err := set(defaultText); err != nil {
		panic("BUG: a default is invalid: " + err.Error())
	}
	return value{set: set, text: func() string { return acceptedText }, kind: kind}
}

// Size returns a flag value that accepts a number of bytes, such as 16MiB or 16777216, and stores it in target.
func Size(target *int) pflag.Value {
	set := func(text string) error {
		bytes, err := memory.ParseSize(text)
		if err != nil {
			return err
		}
		*target = bytes
		return nil
	}
	return value{set: set, text: func() string { return memory.SizeText(*target) }, kind: "size"}
}
