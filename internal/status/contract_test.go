package status

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestStatus_Golden compares the JSON of a status with a value in every field with a golden file. Any change of the
// file changes a stable format: only add fields, and run the test with -update, or increment StatusSchema.
func TestStatus_Golden(t *testing.T) {
	var status Status
	fill(reflect.ValueOf(&status).Elem(), new(int))
	got, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "status.json")
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(got, '\n'), want) {
		t.Errorf("the status is not that of %s but\n%s", file, got)
	}
}

// fill sets each field to a different number, or to a string with a different number.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000+int64(*n), 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.SetMapIndex(reflect.ValueOf("reason").Convert(v.Type().Key()), value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + .5)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	default:
		panic("BUG: a status has a field of kind " + v.Kind().String())
	}
}

// TestDocs_ListEveryField checks that docs/status-api.md lists exactly the fields of Status, with list elements
// as [] and map values as {}.
func TestDocs_ListEveryField(t *testing.T) {
	program := map[string]bool{}
	paths(reflect.TypeFor[Status](), "", program)
	text, err := os.ReadFile("../../docs/status-api.md")
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		for _, path := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			document[path[1]] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(program)) {
		if !document[path] {
			t.Errorf("docs/status-api.md does not list %s", path)
		}
	}
	for path := range document {
		if !program[path] {
			t.Errorf("docs/status-api.md lists %s, which does not exist", path)
		}
	}
}

// paths returns the JSON paths of the leaf fields of a type.
func paths(t reflect.Type, at string, into map[string]bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		into[at] = true
	case t.Kind() == reflect.Pointer:
		paths(t.Elem(), at, into)
	case t.Kind() == reflect.Slice:
		paths(t.Elem(), at+"[]", into)
	case t.Kind() == reflect.Map:
		paths(t.Elem(), at+"{}", into)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Anonymous { // embedded fields have no name in JSON
				paths(t.Field(i).Type, at, into)
				continue
			}
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			paths(t.Field(i).Type, strings.TrimPrefix(at+"."+name, "."), into)
		}
	default:
		into[at] = true
	}
}

// TestStatus_ListsWithoutClients checks that all lists are present without any client, and not null.
func TestStatus_ListsWithoutClients(t *testing.T) {
	text, err := json.Marshal(startServer(t, Config{}).Status())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("null")) {
		t.Errorf("a list is null: %s", text)
	}
}
