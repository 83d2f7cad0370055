package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// image is the result of the steps of a container file.
type image struct {
	files  []copied
	config imageConfig
}

// copied is a file of the context and its path in the image.
type copied struct{ from, to string }

// imageConfig is the part of an OCI image configuration that runtimes use.
type imageConfig struct {
	User         string              `json:"User,omitempty"`
	ExposedPorts map[string]struct{} `json:"ExposedPorts,omitempty"`
	Env          []string            `json:"Env,omitempty"`
	Entrypoint   []string            `json:"Entrypoint,omitempty"`
	Cmd          []string            `json:"Cmd,omitempty"`
	Labels       map[string]string   `json:"Labels,omitempty"`
}

// parse parses the steps. arguments replace ${NAME}.
func parse(text string, arguments map[string]string) (*image, error) {
	var i image
	declared := map[string]string{}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, rest, _ := strings.Cut(line, " ")
		if step == "ARG" {
			value, known := arguments[rest]
			if !known {
				return nil, fmt.Errorf("line %d: no value for argument %s", number+1, rest)
			}
			declared["${"+rest+"}"] = value
			continue
		}
		for name, value := range declared {
			rest = strings.ReplaceAll(rest, name, value)
		}
		if err := i.take(step, strings.TrimSpace(rest)); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number+1, step, err)
		}
	}
	return &i, nil
}

func (i *image) take(step, rest string) error {
	switch step {
	case "FROM":
		if rest != "scratch" {
			return fmt.Errorf("only an image from scratch can be built here, not from %s", rest)
		}
	case "COPY":
		from, to, ok := strings.Cut(rest, " ")
		if !ok || strings.ContainsAny(rest, "*$\\") || strings.HasPrefix(from, "--") || !filepath.IsAbs(to) {
			return fmt.Errorf("%q is not one file and an absolute path", rest)
		}
		i.files = append(i.files, copied{from, filepath.Clean(to)})
	case "USER":
		i.config.User = rest
	case "EXPOSE":
		i.config.ExposedPorts = map[string]struct{}{rest + "/tcp": {}}
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &i.config.Entrypoint)
	case "CMD":
		return json.Unmarshal([]byte(rest), &i.config.Cmd)
	default:
		return fmt.Errorf("this step is not known here")
	}
	return nil
}

// writeRoot copies the image's files into a directory.
func (i *image) writeRoot(context, root string) error {
	for _, file := range i.files {
		body, mode, err := read(context, file.from)
		if err != nil {
			return err
		}
		to := filepath.Join(root, file.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("write root: %w", err)
		}
		if err := os.WriteFile(to, body, os.FileMode(mode)); err != nil {
			return fmt.Errorf("write root: %w", err)
		}
	}
	return nil
}

// read returns a file of the context, and its mode in the image. The mode depends only on
// whether the file is executable, not on the umask of the build.
func read(context, name string) (body []byte, mode int64, err error) {
	path := filepath.Join(context, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("copy file: %w", err)
	}
	if body, err = os.ReadFile(path); err != nil {
		return nil, 0, fmt.Errorf("copy file: %w", err)
	}
	if info.Mode()&0o111 != 0 {
		return body, 0o755, nil
	}
	return body, 0o644, nil
}
