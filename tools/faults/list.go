package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fault is a row of the document.
type fault struct {
	what    string
	promise string
	folder  string // package folder, relative to the root
	test    string // name as in the output of go test, with a slash before each subtest
}

func (f *fault) key() string { return f.folder + " " + f.test }

// document is the list of faults, relative to the root.
const document = "docs/faults.md"

// readFaults reads the rows that contain the text only, from all tables whose first column is
// called "fault".
func readFaults(root, only string) (faults []fault, err error) {
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		return nil, fmt.Errorf("read list: %w", err)
	}
	isFaults := false // reports whether the current table lists faults
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		isHead := strings.TrimSpace(cells[0]) == "fault"
		isFaults = strings.HasPrefix(line, "|") && (isFaults || isHead)
		if !isFaults || isHead || strings.Contains(line, "---") {
			continue
		}
		if len(cells) != 3 {
			return nil, fmt.Errorf("read %s: want three cells, found %d in %q", document, len(cells), line)
		}
		folder, test, found := strings.Cut(strings.Trim(strings.TrimSpace(cells[2]), "`"), " ")
		if !found {
			return nil, fmt.Errorf("read %s: want `folder Test` in the third cell of %q", document, line)
		}
		if strings.Contains(line, only) {
			row, promise := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
			faults = append(faults, fault{row, promise, folder, test})
		}
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("%s has no row with %q", document, only)
	}
	return faults, nil
}
