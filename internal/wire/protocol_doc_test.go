package wire

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func readProtocol(t *testing.T) string {
	t.Helper()
	return readPage(t, "protocol.md")
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatalf("read documentation: %v", err)
	}
	return string(page)
}

// TestDocs_BytesAreTheVectors compares the hex in docs/write-a-client.md with the vectors that it names.
func TestDocs_BytesAreTheVectors(t *testing.T) {
	frames := map[string]string{}
	for _, v := range loadVectors(t) {
		frames[v.Name] = v.Frame
	}
	comment := regexp.MustCompile(`(?m)#.*$|\s`)
	hex := regexp.MustCompile("(?ms)^```hex (\\w+)\n(.*?)^```$")
	blocks := hex.FindAllStringSubmatch(readPage(t, "write-a-client.md"), -1)
	if len(blocks) != 7 {
		t.Errorf("found %d blocks of bytes, want 7", len(blocks))
	}
	for _, block := range blocks {
		name, got := block[1], comment.ReplaceAllString(block[2], "")
		if got != frames[name] {
			t.Errorf("bytes of %s:\n got %s\nwant %s", name, got, frames[name])
		}
	}
}

func TestDocs_HaveEveryName(t *testing.T) {
	doc := readProtocol(t)
	var names []string
	for kind := TypeHello; kind.isKnown(); kind++ {
		names = append(names, kind.String())
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[span.Origin]()) {
		name, _ := fieldName(field)
		names = append(names, name)
	}
	for _, v := range coldVectors {
		for name := range v.Meaning {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("%s is not in docs/protocol.md", name)
		}
	}
}

// The budgets in the documentation are the defaults of the labels.
func TestDocs_BudgetsAreTheDefaults(t *testing.T) {
	doc := readProtocol(t)
	for label := range span.WholeKey {
		if says := fmt.Sprintf("`%s` %d", label, label.Budget()); !strings.Contains(doc, says) {
			t.Errorf("%q is not in docs/protocol.md", says)
		}
	}
}
