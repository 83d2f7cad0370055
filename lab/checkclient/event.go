package checkclient

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// event describes one message, or the end of a connection.
type event struct {
	connection int
	name       string
	entry
}

// entry describes one thing to the author of the client: facts, which are alternating names and
// values; nested parts; and notes.
type entry struct {
	facts []any
	parts []*entry
	notes []note
}

func (e *entry) add(facts ...any) { e.facts = append(e.facts, facts...) }

type note struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Kinds of notes. A note of one of the first three makes the connection fail.
const (
	noteMalformed  = "malformed"
	noteDropped    = "dropped"
	noteKept       = "kept"
	noteNormalized = "normalized"
	noteAdvice     = "advice"
)

// text returns the event in human-readable form: one line, followed by one for each note and
// part. Texts from the client are quoted, so that they cannot control the terminal or reverse the
// line.
func (e *event) text() string {
	return fmt.Sprintf("#%d %-9s ", e.connection, e.name) + e.entry.text("   ")
}

func (t *entry) text(indent string) string {
	var pairs []string
	for i := 0; i < len(t.facts); i += 2 {
		verb := "%s %v"
		switch t.facts[i+1].(type) {
		case string, []string:
			verb = "%s %q"
		}
		pairs = append(pairs, fmt.Sprintf(verb, t.facts[i:i+2]...))
	}
	lines := strings.Join(pairs, ", ") + "\n"
	for _, n := range t.notes {
		lines += fmt.Sprintf("%s%s: %s\n", indent, n.Kind, n.Text)
	}
	for _, part := range t.parts {
		if len(part.facts) > 0 {
			lines += indent + part.text(indent+"   ")
		}
	}
	return lines
}

// json returns the event as an object on one line, escaped as in text.
func (e *event) json() string {
	e.add("connection", e.connection, "event", e.name)
	line, err := json.Marshal(&e.entry)
	if err != nil {
		panic("BUG: an event can't be encoded: " + err.Error()) // the encoded values are texts, numbers and lists of both
	}
	return string(sanitize.JSON(line)) + "\n"
}

func (t *entry) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	for i := 0; i < len(t.facts); i += 2 {
		object[t.facts[i].(string)] = t.facts[i+1]
	}
	if len(t.notes) > 0 {
		object["notes"] = t.notes
	}
	if len(t.parts) > 0 {
		object["parts"] = t.parts
	}
	return json.Marshal(object)
}

// head returns a text, truncated if it is long. So the output does not grow with the input.
func head(text string) string {
	const longest = 120
	if len(text) <= longest {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:longest], len(text))
}

// hexAround returns the bytes around an offset in hexadecimal, with the byte at the offset in
// brackets.
func hexAround(b []byte, at int) string {
	from, to := max(0, at-12), min(len(b), at+13)
	if at == len(b) {
		return fmt.Sprintf("% x [end]", b[from:])
	}
	return strings.TrimSpace(fmt.Sprintf("% x [%02x] % x", b[from:at], b[at], b[at+1:to]))
}
