// Command chart updates the table of values in a chart's README. Order and defaults come from
// values.yaml, descriptions from values.schema.json.
//
//	chart deploy/helm/spanstatsd
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

const begin, end = "<!-- values.schema.json -->\n", "<!-- end -->\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the directory of a chart, got %q", args)
	}
	file := filepath.Join(args[0], "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read README: %w", err)
	}
	renewed, err := renew(args[0], text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, renewed, 0o644); err != nil {
		return fmt.Errorf("write README: %w", err)
	}
	return nil
}

// renew returns the README of a chart with an updated table.
func renew(chart string, readme []byte) ([]byte, error) {
	var all schema
	if err := parse(filepath.Join(chart, "values.schema.json"), json.Unmarshal, &all); err != nil {
		return nil, err
	}
	var values yaml.Node
	if err := parse(filepath.Join(chart, "values.yaml"), yaml.Unmarshal, &values); err != nil {
		return nil, err
	}
	table := bytes.NewBufferString(begin + "| value | default | meaning |\n| --- | --- | --- |\n")
	if err := all.rows(table, "", values.Content[0]); err != nil {
		return nil, err
	}
	before, rest, found := bytes.Cut(readme, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("the README has no place for the table, between %q and %q", begin, end)
	}
	table.WriteString(end)
	return bytes.Join([][]byte{before, after}, table.Bytes()), nil
}

func parse(file string, unmarshal func([]byte, any) error, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read chart: %w", err)
	}
	if err := unmarshal(text, into); err != nil {
		return fmt.Errorf("parse %s: %w", file, err)
	}
	return nil
}

// schema is the used part of a JSON schema.
type schema struct {
	Description *string           `json:"description"`
	Properties  map[string]schema `json:"properties"`
}

// rows writes a row for each described value, in the order of values.yaml.
func (s *schema) rows(dst *bytes.Buffer, path string, values *yaml.Node) error {
	for i := 0; i+1 < len(values.Content); i += 2 {
		name, value := values.Content[i].Value, values.Content[i+1]
		is, ok := s.Properties[name]
		switch {
		case !ok:
			return fmt.Errorf("%s%s has no schema", path, name)
		case is.Description == nil && value.Kind != yaml.MappingNode:
			return fmt.Errorf("%s%s has no description in the schema", path, name)
		case is.Description == nil:
			if err := is.rows(dst, path+name+".", value); err != nil {
				return err
			}
			continue
		}
		shown, err := text(value)
		if err != nil {
			return fmt.Errorf("%s%s: %w", path, name, err)
		}
		fmt.Fprintf(dst, "| `%s%s` | %s | %s |\n", path, name, shown, *is.Description)
	}
	return nil
}

// text formats a default for a table cell.
func text(value *yaml.Node) (string, error) {
	if value.Kind == yaml.ScalarNode {
		if value.Value == "" {
			return "", nil
		}
		return "`" + value.Value + "`", nil
	}
	var plain any
	if err := value.Decode(&plain); err != nil {
		return "", fmt.Errorf("decode default: %w", err)
	}
	line, err := json.Marshal(plain)
	if err != nil || bytes.ContainsAny(line, "|") {
		return "", errors.Join(err, errors.New("its default has no place in a table"))
	}
	return "`" + strings.ReplaceAll(string(line), "`", "'") + "`", nil
}
