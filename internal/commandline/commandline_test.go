package commandline_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

// program is a command line with a command that has flags of each kind.
type program struct {
	root    *cobra.Command
	word    string
	number  int
	bytes   int
	period  time.Duration
	isOn    bool
	numbers []uint
	length  int
	fails   error // error that run returns
}

func newProgram() *program {
	p := &program{bytes: 1 << 20}
	p.root = &cobra.Command{
		Use: "spanstatsd",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			_, err := commandline.ApplyEnvironment(cmd)
			return err
		},
	}
	run := &cobra.Command{
		Use: "run", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.fails },
	}
	g := commandline.NewGroup("Everything")
	g.Flags.Var(commandline.Choice(&p.word, "one", "one", "two"), "word", "a word")
	g.Flags.Var(commandline.Size(&p.bytes), "bytes", "a size (default: what there is)")
	g.Flags.IntVar(&p.number, "number", 7, "a number")
	g.Flags.DurationVar(&p.period, "period", time.Second, "a duration")
	g.Flags.BoolVar(&p.isOn, "on", false, "a switch")
	g.Flags.UintSliceVar(&p.numbers, "numbers", nil, "numbers")
	g.Flags.Var(commandline.Parsed(&p.length, "abc", "text", func(text string) (int, error) {
		if text == "no" {
			return 0, errors.New("it is no text")
		}
		return len(text), nil
	}), "length", "a text")
	commandline.AddGroups(run, []string{"word", "bytes"}, g)
	p.root.AddCommand(run, &cobra.Command{
		Use:  "status",
		RunE: func(*cobra.Command, []string) error { return nil },
	})
	commandline.CompleteValues(p.root)
	return p
}

func (p *program) run(args ...string) (string, error) {
	var out bytes.Buffer
	p.root.SetOut(&out)
	err := commandline.Run(p.root, args)
	return out.String(), err
}

// TestMistake_NamesWhereItWasMade: an invalid value names its flag or its variable.
func TestMistake_NamesWhereItWasMade(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"word", "three", `"three" is not one of one, two`},
		{"bytes", "12x", `"12x" is not a size; use a whole number of bytes, or of KiB, MiB or GiB, such as 64MiB`},
		{"number", "many", "invalid syntax"},
		{"period", "12", "missing unit in duration"},
		{"on", "perhaps", "invalid syntax"},
		{"numbers", "1,x", "invalid syntax"},
		{"length", "no", "it is no text"},
	} {
		_, err := newProgram().run("run", "--"+c.flag+"="+c.value)
		checkUsage(t, err, "--"+c.flag, c.value, c.says, "see spanstatsd run --help")
		t.Setenv(commandline.Variable(c.flag), c.value)
		_, err = newProgram().run("run")
		checkUsage(t, err, "read environment variable "+commandline.Variable(c.flag)+": ", c.value, c.says)
		t.Setenv(commandline.Variable(c.flag), "")
	}
}

func checkUsage(t *testing.T, err error, says ...string) {
	t.Helper()
	var usage commandline.UsageError
	if !errors.As(err, &usage) {
		t.Errorf("%v is not a usage error", err)
		return
	}
	for _, words := range says {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%v does not say %q", err, words)
		}
	}
}

// TestRun_UsageErrors: errors before a command starts are usage errors.
func TestRun_UsageErrors(t *testing.T) {
	for args, says := range map[string]string{
		"run --wrod=one": "unknown flag: --wrod; see spanstatsd run --help",
		"run now":        `unknown command "now" for "spanstatsd run"`,
		"stats":          "Did you mean this?",
	} {
		_, err := newProgram().run(strings.Fields(args)...)
		checkUsage(t, err, says)
	}
	p := newProgram()
	p.fails = errors.New("it failed")
	var usage commandline.UsageError
	if _, err := p.run("run"); !errors.Is(err, p.fails) || errors.As(err, &usage) {
		t.Errorf("a command that fails: %v", err)
	}
}

// TestEnvironment_UnknownVariables: each unknown variable is an error, and all errors are reported.
func TestEnvironment_UnknownVariables(t *testing.T) {
	t.Setenv("SPANSTATSD_NUMBERR", "1")
	t.Setenv("SPANSTATSD_ALL", "1")
	t.Setenv("SPANSTATSD_NUMBER", "many")
	_, err := newProgram().run("run")
	checkUsage(t, err, "SPANSTATSD_NUMBERR: no flag has this name", "SPANSTATSD_ALL: no flag has this name",
		"SPANSTATSD_NUMBER: invalid")
}

// TestValue_ParsedWhenGiven: words are accepted in any case, and defaults are parsed like
// values.
func TestValue_ParsedWhenGiven(t *testing.T) {
	p := newProgram()
	if p.word != "one" || p.length != 3 {
		t.Errorf("defaults %q, %d", p.word, p.length)
	}
	if _, err := p.run("run", "--word=TWO", "--length=abcdef", "--bytes=3MiB"); err != nil ||
		p.word != "two" || p.length != 6 || p.bytes != 3<<20 {
		t.Errorf("%v: %q, %d, %d", err, p.word, p.length, p.bytes)
	}
}

// TestHelp_CommonFlagsFirst: help shows the common flags and the number of the others,
// and all flags with --all.
func TestHelp_CommonFlagsFirst(t *testing.T) {
	short, err := newProgram().run("run", "--help")
	if err != nil || strings.Contains(short, "--number") || !strings.Contains(short, "5 more: spanstatsd "+
		"run --help --all") {
		t.Errorf("%v: %s", err, short)
	}
	long, err := newProgram().run("run", "--help", "--all")
	if err != nil || strings.Contains(long, " more: ") {
		t.Errorf("%v: %s", err, long)
	}
	at := 0
	for _, want := range []string{
		"\nEverything:\n", "--word one|two", "(default one)", "--bytes size",
		"(default: what there is)", "--number", "--period", "--on", "--numbers", "--length",
		"\nOther flags:\n", "--all", "--help",
	} {
		next := strings.Index(long[at:], want)
		if next < 0 {
			t.Fatalf("%q is not where it belongs in %s", want, long)
		}
		at += next
	}
}

// TestManualPage: the page contains the help with every flag, escaped for roff.
func TestManualPage(t *testing.T) {
	dir := t.TempDir()
	if err := commandline.WritePages(newProgram().root, dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "spanstatsd-run.1"))
	for _, want := range []string{".TH \"SPANSTATSD-RUN\"", "\\-\\-word one|two", "\\-\\-number"} {
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%v: %q is not in %s", err, want, page)
		}
	}
}
