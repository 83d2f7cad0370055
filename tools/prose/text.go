package main

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// paragraph is text that a reader sees as one. Its lines keep their number, so that a match that
// spans two lines has a position.
type paragraph struct {
	line int
	text string
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	marker     = regexp.MustCompile(`^\s*(//+|/\*+|\*+/?|#+)\s?`)
	comment    = regexp.MustCompile(`(?:^|\s)(?://|##?) (.*)`)
)

// read returns the prose of a file: comments, texts of programs, and documents without their code.
func read(path string, content []byte) []paragraph {
	text := string(content)
	switch ext := filepath.Ext(path); {
	case ext == ".go":
		return goProse(content, !strings.HasSuffix(path, "_test.go"))
	case ext == ".java" || ext == ".js":
		inside := false
		return paragraphs(text, func(line string) string {
			trimmed := strings.TrimSpace(line)
			opens := strings.HasPrefix(trimmed, "/*")
			if inside || opens {
				inside = !strings.Contains(trimmed, "*/")
				return strings.TrimSuffix(marker.ReplaceAllString(line, ""), "*/")
			}
			return trailing(line)
		})
	case ext == ".yaml" || ext == ".yml":
		values := paragraphs(text, func(line string) string {
			if marker.MatchString(line) {
				return ""
			}
			return line
		})
		return append(values, paragraphs(text, trailing)...)
	case ext == ".sh" || filepath.Base(path) == "Makefile":
		return paragraphs(text, trailing)
	case ext == ".md":
		fenced := false
		return paragraphs(text, func(line string) string {
			fence := strings.HasPrefix(strings.TrimSpace(line), "```")
			fenced = fenced != fence
			if fenced || fence || strings.HasPrefix(line, "    ") {
				return ""
			}
			return inlineCode.ReplaceAllString(line, "`x`")
		})
	}
	return nil
}

func trailing(line string) string {
	if found := comment.FindStringSubmatch(line); found != nil {
		return found[1]
	}
	return ""
}

// paragraphs joins adjacent lines whose prose is not empty.
func paragraphs(text string, prose func(line string) string) []paragraph {
	var all []paragraph
	open := false
	for i, line := range strings.Split(text, "\n") {
		found := strings.TrimSpace(prose(line))
		switch {
		case found != "" && open:
			all[len(all)-1].text += "\n" + found
		case found != "":
			all = append(all, paragraph{i + 1, found})
		}
		open = found != ""
	}
	return all
}

// goProse returns comments and, if texts is set, string literals of several words: texts of flags,
// metrics, logs and errors.
func goProse(content []byte, texts bool) []paragraph {
	file := token.NewFileSet().AddFile("", -1, len(content))
	var scan scanner.Scanner
	scan.Init(file, content, nil, scanner.ScanComments)
	var all []paragraph
	code, next := 0, 0 // last line with code, and line on which a comment continues the last paragraph
	for {
		at, kind, literal := scan.Scan()
		line := file.Line(at)
		switch {
		case kind == token.EOF:
			return all
		case kind == token.COMMENT && strings.HasPrefix(literal, "//"):
			literal = strings.TrimSpace(strings.TrimPrefix(literal, "//"))
			if line == next && line != code {
				all[len(all)-1].text += "\n" + literal
			} else {
				all = append(all, paragraph{line, literal})
			}
			if next = line + 1; line == code {
				next = 0
			}
		case kind == token.COMMENT, kind == token.STRING && texts && strings.Count(literal, " ") > 2:
			all = append(all, paragraph{line, strings.Trim(literal, "/*\"`")})
		}
		if kind != token.COMMENT && literal != "\n" {
			code = line
		}
	}
}
