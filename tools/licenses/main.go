// Command licenses writes the licenses of all third-party code in the programs of a release: of
// the modules linked on any architecture, and of Go's standard library.
//
//	licenses > ../THIRD_PARTY_LICENSES
//
// It gets the modules from the go command, and reads their license files. A module without a
// license file is an error, because it needs a manual check. A text shared by several modules
// is written once. The output depends only on the modules; a test compares it with the file in
// the repository.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// program is a program of a release: the directory of its module, and its package.
type program struct{ module, of string }

var (
	programs      = []program{{"..", "./cmd/spanstatsd"}, {"../lab", "./cmd/spanstatsd-lab"}}
	architectures = []string{"amd64", "arm64"}
)

const ours = "github.com/spanstatsd/spanstatsd"

func main() {
	if err := write(os.Stdout, "."); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// write writes the licenses. tools is the directory of the tools.
func write(out io.Writer, tools string) error {
	directories, err := linked(tools)
	if err != nil {
		return err
	}
	var texts []string               // distinct texts, in the order of the modules
	holders := map[string][]string{} // files of modules, by text
	for _, module := range slices.Sorted(maps.Keys(directories)) {
		files, err := terms(directories[module])
		if err != nil {
			return fmt.Errorf("read the terms of %s: %w", module, err)
		}
		for _, f := range files {
			if holders[f.text] == nil {
				texts = append(texts, f.text)
			}
			holders[f.text] = append(holders[f.text], module+", "+f.name)
		}
	}
	fmt.Fprint(out, "The programs of spanstatsd contain code of others, under the terms that follow.\n"+
		"Written by `make licenses` from the modules that the programs link.\n")
	for _, text := range texts {
		_, err = fmt.Fprintf(out, "\n%s\n%s\n%[1]s\n\n%[3]s\n", strings.Repeat("=", 80),
			strings.Join(holders[text], "\n"), text)
	}
	return err
}

// linked returns the directories of the linked modules, by module and version.
func linked(tools string) (map[string]string, error) {
	root, err := ask(tools, "amd64", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	directories := map[string]string{"the standard library of Go": strings.TrimSpace(root)}
	for _, p := range programs {
		for _, architecture := range architectures {
			list, err := ask(filepath.Join(tools, p.module), architecture, "list", "-deps", "-f",
				"{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}", p.of)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(list) {
				parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
				if len(parts) == 3 && !strings.HasPrefix(parts[0], ours) {
					directories[parts[0]+" "+parts[1]] = parts[2]
				}
			}
		}
	}
	return directories, nil
}

// ask runs the go command for an architecture.
func ask(in, architecture string, arguments ...string) (string, error) {
	command := exec.Command("go", arguments...)
	command.Dir, command.Stderr = in, os.Stderr
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=")
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run go %s: %w", arguments[0], err)
	}
	return string(output), nil
}

// termsFile matches the names of files that contain a license, or a notice that belongs to it.
var termsFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

type file struct{ name, text string }

// terms returns the license files of a module.
func terms(directory string) (files []file, err error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() || !termsFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{entry.Name(), string(bytes.TrimSpace(text))})
	}
	if len(files) == 0 {
		return nil, errors.New("the module has no license file; find the license under which it can be redistributed")
	}
	return files, nil
}
