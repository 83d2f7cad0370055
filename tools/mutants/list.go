package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is one wrong change.
type mutant struct {
	file   string   // below the root
	why    string   // what the code guards there
	tests  []string // packages whose tests are run
	run    string   // of those, only these
	race   bool     // under the race detector
	source string   // the whole file with the change
}

// A list has a block a change, with empty lines between:
//
//	guard.go: a boundary is exact only if a publisher looks again
//	- if g.cycles.current.Load() == number {
//	+ if true {
//	run TestSecondLook
//
// The first line names the file, in the list's folder, and says what the code guards.
// What stands behind "-" becomes what stands behind "+"; several lines of each are
// lines of the file, whose indentation does not matter. Then may follow
//
//	run REGEXP        only these tests are run; all of the package's, otherwise
//	test ./PACKAGE    in this package, named from the root, instead of the file's own
//	race              under the race detector
//
// A line that begins with # is a remark.
const listName = "mutants.txt"

// readLists reads the list of each package below the root. Its error has all that is wrong.
func readLists(root string) (mutants []mutant, err error) {
	var wrong error
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != listName {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for block := range strings.SplitSeq(string(text), "\n\n") {
			m, ok, bad := parse(root, folder, block)
			if bad != nil {
				wrong = errors.Join(wrong, fmt.Errorf("read %s: %w", path, bad))
			} else if ok {
				mutants = append(mutants, m)
			}
		}
		return nil
	})
	if err = errors.Join(err, wrong); err == nil && len(mutants) == 0 {
		err = fmt.Errorf("no %s below %s", listName, root)
	}
	return mutants, err
}

// parse reads one block, and applies its change.
func parse(root, folder, block string) (m mutant, ok bool, err error) {
	m.tests = []string{"./" + folder}
	var from, to []string
	for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || verb == "#":
		case m.file == "":
			name, why, found := strings.Cut(line, ": ")
			if !found {
				return m, false, fmt.Errorf("want FILE: REASON, found %q", line)
			}
			m.file, m.why = filepath.Join(folder, name), why
		case verb == "-":
			from = append(from, rest)
		case verb == "+":
			to = append(to, rest)
		case verb == "run":
			m.run = rest
		case verb == "test":
			m.tests = strings.Fields(rest)
		case line == "race":
			m.race = true
		default:
			return m, false, fmt.Errorf("unknown line %q of %s", line, m.file)
		}
	}
	if m.file == "" {
		return m, false, nil
	}
	if len(from) == 0 {
		return m, false, fmt.Errorf("%s (%s) changes nothing", m.file, m.why)
	}
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return m, false, err
	}
	if m.source, err = change(string(source), from, to); err != nil {
		return m, false, fmt.Errorf("change %s (%s): %w", m.file, m.why, err)
	}
	return m, true, nil
}

// change replaces what the source has exactly once.
func change(source string, from, to []string) (string, error) {
	var pattern strings.Builder
	for i, line := range from {
		if i > 0 {
			pattern.WriteString(`\n\s*`)
		}
		pattern.WriteString(regexp.QuoteMeta(strings.TrimSpace(line)))
	}
	found := regexp.MustCompile(pattern.String()).FindAllStringIndex(source, 2)
	if len(found) != 1 {
		return "", fmt.Errorf("want it once: %q", strings.Join(from, "\n"))
	}
	changed := source[:found[0][0]] + strings.Join(to, "\n") + source[found[0][1]:]
	if changed == source {
		return "", errors.New("it changes nothing")
	}
	return changed, nil
}
