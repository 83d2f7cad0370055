package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is the root directory of the repository.
const repository = "../.."

// shell is the language of an indented block.
const shell = "sh"

// block is a fenced or indented block of a document.
type block struct {
	document string
	line     int // number of its first line
	language string
	lines    []string
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.document, b.line) }

func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// commands returns the shell commands: each is a line, or several lines joined by backslashes.
func (b *block) commands() (commands []string) {
	joined := strings.ReplaceAll(b.text(), "\\\n", "")
	for line := range strings.Lines(joined) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, line)
		}
	}
	return commands
}

// documents returns the blocks of the whole README, and of the first page of each document, which ends
// at the second heading below the title.
func documents(t *testing.T) map[string][]*block {
	t.Helper()
	names, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d documents, %v", len(names), err)
	}
	pages := map[string][]*block{"README.md": blocks("README.md", readFile(t, repository+"/README.md"))}
	for _, path := range names {
		text := readFile(t, path)
		if headings := regexp.MustCompile(`(?m)^## `).FindAllStringIndex(text, 2); len(headings) == 2 {
			text = text[:headings[1][0]]
		}
		name := "docs/" + filepath.Base(path)
		pages[name] = blocks(name, text)
	}
	return pages
}

// blocks returns the blocks of a document.
func blocks(document, text string) (found []*block) {
	var open *block // fence that is not closed yet, or indented block that can continue
	isBlank := true
	for number, line := range strings.Split(text, "\n") {
		indented, isIndented := strings.CutPrefix(line, "    ")
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open != nil && open.language != shell && isFence:
			open = nil
		case open != nil && open.language != shell:
			open.lines = append(open.lines, line)
		case isFence:
			language, _, _ := strings.Cut(fence, " ")
			open = &block{document: document, line: number + 2, language: language}
			found = append(found, open)
		case isIndented && open != nil:
			open.lines = append(open.lines, indented)
		case isIndented && isBlank:
			open = &block{document: document, line: number + 1, language: shell, lines: []string{indented}}
			found = append(found, open)
		case line != "":
			open = nil
		}
		isBlank = line == ""
	}
	return found
}

// TestBlocks checks fenced blocks, indented blocks, and other text.
func TestBlocks(t *testing.T) {
	found := blocks("page", "# A\n\n    one \\\n      more\n    # no command\n\n    two\ntext\n    text\n\n"+
		"```yaml name\na:\n    b\n```\n- item\n    text\n")
	if len(found) != 2 || found[0].line != 3 || found[1].line != 12 || found[1].language != "yaml" ||
		found[1].text() != "a:\n    b\n" {
		t.Fatalf("%+v", found)
	}
	if got := found[0].commands(); len(got) != 2 || got[0] != "one   more" || got[1] != "two" {
		t.Errorf("%q", got)
	}
}

// TestTargets checks that each `make TARGET` in the documents is a target of the Makefile, whether or
// not this test runs it.
func TestTargets(t *testing.T) {
	makefile := readFile(t, repository+"/Makefile")
	names, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(names, repository+"/README.md", repository+"/CONTRIBUTING.md") {
		for _, made := range regexp.MustCompile("(?m)(?:`|^    )make ([a-z][a-z-]*)").FindAllStringSubmatch(
			readFile(t, path), -1) {
			if !regexp.MustCompile(`(?m)^` + made[1] + `:`).MatchString(makefile) {
				t.Errorf("%s mentions make %s, which is not a target of the Makefile", path, made[1])
			}
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
