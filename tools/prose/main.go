// Command prose counts unidiomatic phrases in comments, documents and texts of programs, and compares
// the hits of each directory with its line in prose/budget.txt, which is 0 if absent. A directory with
// more hits fails the check, as does one with fewer, so that a budget only falls.
//
//	prose ROOT BUDGET
package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: prose ROOT BUDGET")
		os.Exit(2)
	}
	if err := check(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

// check prints to out each hit of a directory that exceeds its budget, and the lines of the budget
// file that are too high.
func check(out io.Writer, root, budgetFile string) error {
	budget, err := readBudget(budgetFile)
	if err != nil {
		return err
	}
	hits, err := find(root)
	if err != nil {
		return err
	}
	dirs := slices.AppendSeq(slices.Collect(maps.Keys(hits)), maps.Keys(budget))
	slices.Sort(dirs)
	failed := false
	for _, dir := range slices.Compact(dirs) {
		found, allowed := len(hits[dir]), budget[dir]
		if found == allowed {
			continue
		}
		failed = true
		if found > allowed {
			fmt.Fprintf(out, "%s has %d unidiomatic phrases, and may have %d:\n  %s\n",
				dir, found, allowed, strings.Join(hits[dir], "\n  "))
			continue
		}
		line := fmt.Sprintf("write %q", fmt.Sprint(dir, " ", found))
		if found == 0 {
			line = "remove its line"
		}
		fmt.Fprintf(out, "%s has %d unidiomatic phrases, fewer than its budget of %d: %s\n", dir, found, allowed, line)
	}
	if failed {
		return fmt.Errorf("compare phrases with %s: numbers differ; rewrite the phrases according to the"+
			" style guide in CONTRIBUTING.md, and lower a budget that is too high", budgetFile)
	}
	return nil
}

func readBudget(path string) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read budget: %w", err)
	}
	defer func() { _ = file.Close() }()
	budget := map[string]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var dir string
		var number int
		if _, err := fmt.Sscan(line, &dir, &number); err != nil || number <= 0 {
			return nil, fmt.Errorf("read budget: %q is not a directory and a positive number", line)
		}
		budget[dir] = number
	}
	return budget, lines.Err()
}

// skipped are directories without prose to check. The rules of prose contain the phrases themselves.
var skipped = []string{".git", "bin", "dist", "node_modules", "prose", "target", "testdata", "vendor"}

// find returns the hits of each directory below root, as lines to print.
func find(root string) (map[string][]string, error) {
	hits := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skipped, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		for _, paragraph := range read(path, content) {
			flat := strings.ReplaceAll(paragraph.text, "\n", " ")
			for _, rule := range rules {
				fine := 2 * max(rule.pattern.SubexpIndex("fine"), 0)
				for _, at := range rule.pattern.FindAllStringSubmatchIndex(flat, -1) {
					if fine > 0 && at[fine] >= 0 {
						continue
					}
					line := paragraph.line + strings.Count(paragraph.text[:at[0]+1], "\n")
					hits[dir] = append(hits[dir], fmt.Sprintf("%s:%d: %q: %s",
						name, line, strings.Trim(flat[at[0]:at[1]], " .,;:"), rule.advice))
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read prose: %w", err)
	}
	return hits, nil
}
