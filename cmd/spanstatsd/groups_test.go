package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/pflag"
)

// listed is a flag in a list: its heading, its name and its text.
type listed struct{ group, name, text string }

// wanted returns the flags of run as they are grouped.
func wanted() (all, common []listed) {
	for _, g := range (&runOptions{}).groups() {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			text, _, _ := strings.Cut(f.Usage, " (default: ")
			all = append(all, listed{g.Title, f.Name, text})
		})
	}
	for _, flag := range all {
		if slices.Contains(commonFlags, flag.name) {
			common = append(common, flag)
		}
	}
	return all, common
}

// TestFlags_SameInEveryList compares the headings, order and texts of flags in help, manual page and
// docs/configuration.md. Help without --all shows only the common flags.
func TestFlags_SameInEveryList(t *testing.T) {
	all, common := wanted()
	if len(common) != len(commonFlags) {
		t.Errorf("%d of %d common flags are flags", len(common), len(commonFlags))
	}
	dir := t.TempDir()
	if err := commandline.WritePages(newRootCommand(), dir); err != nil {
		t.Fatal(err)
	}
	for _, list := range []struct {
		of   string
		got  []listed
		want []listed
	}{
		{"run --help", listedInHelp(helpOf(t, "run", "--help")), common},
		{"run --help --all", listedInHelp(helpOf(t, "run", "--help", "--all")), all},
		{"config --help --all", listedInHelp(helpOf(t, "config", "--all", "--help")), all},
		{"the manual page", listedInHelp(pageText(t, filepath.Join(dir, "spanstatsd-run.1"))), all},
		{configurationPage, listedInDocument(t), all},
	} {
		if len(list.got) != len(list.want) {
			t.Errorf("%s lists %d flags of %d", list.of, len(list.got), len(list.want))
		}
		for i := range min(len(list.got), len(list.want)) {
			got, want := list.got[i], list.want[i]
			if got.group != want.group || got.name != want.name || !strings.HasPrefix(got.text, want.text) {
				t.Fatalf("%s, flag %d:\n%+v\nwant\n%+v", list.of, i, got, want)
			}
		}
	}
	out, err := program(t, "run", "--help").Output()
	if err != nil || !strings.Contains(string(out), "spanstatsd run --help --all") {
		t.Errorf("help does not explain how to print every flag: %v, %s", err, out)
	}
}

// helpOf returns the output of a command.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	out, err := program(t, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// pageText returns a manual page as text.
func pageText(t *testing.T, file string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\-`, "-", `\e`, `\`).Replace(string(page))
}

// listedInHelp returns the flags that help shows under headings.
func listedInHelp(help string) (list []listed) {
	group, flag := "", regexp.MustCompile(`^ +(?:-h, )?--([a-z-]+)(?: [^ ]+)?   ? *(.*)$`)
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		if title, is := strings.CutSuffix(line, ":"); is && !strings.HasPrefix(line, " ") {
			group = title
		} else if parts := flag.FindStringSubmatch(line); parts != nil {
			list = append(list, listed{group, parts[1], parts[2]})
		} else if len(list) > 0 && strings.HasPrefix(line, "   ") {
			list[len(list)-1].text += " " + strings.TrimSpace(line)
		}
	}
	return slices.DeleteFunc(list, func(l listed) bool { return l.group == "Other flags" })
}

const configurationPage = "../../docs/configuration.md"

// listedInDocument returns the flags that docs/configuration.md describes, with their texts.
func listedInDocument(t *testing.T) (list []listed) {
	t.Helper()
	text, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile("(?m)^## (.*)$|^- \\*\\*`--([a-z-]+)`\\*\\*: (.*(?:\n  .*)*)$")
	group := ""
	for _, parts := range entry.FindAllStringSubmatch(string(text), -1) {
		if parts[1] != "" {
			group = parts[1]
			continue
		}
		words := strings.Join(strings.Fields(parts[3]), " ")
		list = append(list, listed{group, parts[2], strings.ReplaceAll(words, "`", "")})
	}
	return list
}

// TestConfigurationTables_MatchFlags compares the tables of docs/configuration.md with the flags:
// order, variables, and defaults that are values.
func TestConfigurationTables_MatchFlags(t *testing.T) {
	text, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| ([^|]+) \\| `(SPANSTATSD_[A-Z_]+)` \\|$")
	rows := row.FindAllStringSubmatch(string(text), -1)
	var flags []*pflag.Flag
	for _, g := range (&runOptions{}).groups() {
		g.Flags.VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	}
	if len(rows) != len(flags) {
		t.Fatalf("%d rows of flags, want %d", len(rows), len(flags))
	}
	for i, f := range flags {
		name, value, variable := rows[i][1], rows[i][2], rows[i][3]
		if name != f.Name {
			t.Fatalf("row %d is of --%s, want --%s", i, name, f.Name)
		}
		want := "SPANSTATSD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if variable != want {
			t.Errorf("--%s has the variable %s, want %s", name, variable, want)
		}
		if f.DefValue != "" && f.DefValue != "[]" && !strings.Contains(value, "`"+f.DefValue+"`") {
			t.Errorf("--%s has the default %s, want %s", name, value, f.DefValue)
		}
	}
}

// TestFlags_TextsStandAlone: no text refers to the neighbor of its flag, because other lists have
// another order.
func TestFlags_TextsStandAlone(t *testing.T) {
	leans := regexp.MustCompile(
		`\b(the same|called there|sent there|for it|of it|that (address|destination|OTLP))\b`)
	all, _ := wanted()
	for _, f := range all {
		if words := leans.FindString(f.text); words != "" || f.text == "" {
			t.Errorf("--%s: %q says %q", f.name, f.text, words)
		}
	}
}

// TestCompletion_FlagValues: a shell completes words, files or directories, as the flag accepts them.
func TestCompletion_FlagValues(t *testing.T) {
	for line, want := range map[string]string{
		"--buffer":            "drop\nblock\n:4\n",
		"--otlp-temporality=": "delta\ncumulative\n:4\n",
		"--drop-unsampled=":   "auto\non\noff\n:4\n",
		"--socket":            ":0\n",
		"--web-config-file":   ":0\n",
		"--debug-dir":         ":16\n",
		"--retry-bytes":       ":4\n",
	} {
		args := []string{"__complete", "run", line}
		if !strings.HasSuffix(line, "=") {
			args = append(args, "")
		}
		if out, err := program(t, args...).Output(); err != nil || string(out) != want {
			t.Errorf("%s: %v, %q, want %q", line, err, out, want)
		}
	}
}
