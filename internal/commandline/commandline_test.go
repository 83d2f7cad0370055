package commandline_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

// program is one with a command that has flags of each kind.
type program struct {
	root    *cobra.Command
	word    string
	number  int
	bytes   int
	period  time.Duration
	isOn    bool
	numbers []uint
	length  int
}

func newProgram() *program {
	p := &program{
		root:  &cobra.Command{Use: "spanstatsd", SilenceUsage: true, SilenceErrors: true},
		bytes: 1 << 20,
	}
	p.root.SetFlagErrorFunc(commandline.FlagMistake)
	run := &cobra.Command{
		Use: "run", Args: commandline.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return commandline.ApplyEnvironment(cmd)
		},
	}
	g := commandline.NewGroup("Everything")
	g.First.Var(commandline.Choice(&p.word, "one", "one", "two"), "word", "a word")
	g.First.Var(commandline.Size(&p.bytes), "bytes", "a size (default: what there is)")
	g.Rest.IntVar(&p.number, "number", 7, "a number")
	g.Rest.DurationVar(&p.period, "period", time.Second, "a duration")
	g.Rest.BoolVar(&p.isOn, "on", false, "a switch")
	g.Rest.UintSliceVar(&p.numbers, "numbers", nil, "numbers")
	g.Rest.Var(commandline.Parsed(&p.length, "abc", "text", func(given string) (int, error) {
		if given == "no" {
			return 0, errors.New("it is no text")
		}
		return len(given), nil
	}), "length", "a text")
	groups := []*commandline.Group{g}
	commandline.AddGroups(run.Flags(), groups)
	commandline.ShowGroups(run, groups)
	p.root.AddCommand(run, &cobra.Command{
		Use:  "status",
		RunE: func(*cobra.Command, []string) error { return nil },
	})
	commandline.UsageOf(p.root)
	commandline.CompleteValues(p.root)
	return p
}

func (p *program) run(args ...string) (string, error) {
	var out bytes.Buffer
	p.root.SetArgs(args)
	p.root.SetOut(&out)
	err := p.root.Execute()
	return out.String(), err
}

// TestAMistakeSaysWhatToDo, wherever it was made.
func TestAMistakeSaysWhatToDo(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"word", "three", `"three" is none of one, two`},
		{"bytes", "12x", `"12x" is no size: write a number of bytes, or a whole one with KiB, MiB or GiB, ` +
			"as 64MiB"},
		{"number", "many", `"many" is no number: write digits alone, as 1024`},
		{"number", "99999999999999999999", `"99999999999999999999" is too large`},
		{"period", "12", `"12" is no duration: write a number with ms, s, m or h, as 1.5s or 2m30s`},
		{"on", "perhaps", `"perhaps" is neither true nor false`},
		{"numbers", "1,x", `"1,x" is no list of numbers: write them with commas, as 1000,1001`},
		{"length", "no", "it is no text"},
	} {
		_, err := newProgram().run("run", "--"+c.flag+"="+c.value)
		var usage commandline.UsageError
		if want := "--" + c.flag + ": " + c.says; err == nil || err.Error() != want ||
			!errors.As(err, &usage) {
			t.Errorf("%v, want %s", err, want)
		}
		t.Setenv(commandline.Variable(c.flag), c.value)
		_, err = newProgram().run("run")
		if want := "read environment variable " + commandline.Variable(c.flag) + ": " + c.says; err == nil ||
			err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		t.Setenv(commandline.Variable(c.flag), "")
	}
}

// TestWhatMayHaveBeenMeant is asked for where it is near, and nothing where nothing is.
func TestWhatMayHaveBeenMeant(t *testing.T) {
	for _, c := range []struct{ args, variable, says string }{
		{"run --wrod=one", "", "unknown flag: --wrod; did you mean --word?; see spanstatsd run --help --all"},
		{"run --periods=1s", "", "unknown flag: --periods; did you mean --period?; see spanstatsd run " +
			"--help --all"},
		{"run --colour=red", "", "unknown flag: --colour; see spanstatsd run --help --all"},
		{"run", "SPANSTATSD_NUMBERR", "read environment variable SPANSTATSD_NUMBERR: no flag has this " +
			"name; " +
			"did you mean SPANSTATSD_NUMBER?; see spanstatsd run --help --all"},
		{"run", "SPANSTATSD_COLOUR_OF_IT", "read environment variable SPANSTATSD_COLOUR_OF_IT: no flag has " +
			"this name; see spanstatsd run --help --all"},
		{"run", "SPANSTATSD_ALL", "read environment variable SPANSTATSD_ALL: no flag has this name; see " +
			"spanstatsd run --help --all"},
		{"run now", "", `run takes no argument, but got ["now"]; see spanstatsd run --help`},
	} {
		t.Run(c.args+c.variable, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, "1")
			}
			if _, err := newProgram().run(strings.Fields(c.args)...); err == nil || err.Error() != c.says {
				t.Errorf("%v, want %s", err, c.says)
			}
		})
	}
}

// TestAValueIsReadWhenItIsGiven: a word in any case, a default by what reads it.
func TestAValueIsReadWhenItIsGiven(t *testing.T) {
	p := newProgram()
	if p.word != "one" || p.length != 3 {
		t.Errorf("defaults %q, %d", p.word, p.length)
	}
	if _, err := p.run("run", "--word=TWO", "--length=abcdef", "--bytes=3MiB"); err != nil ||
		p.word != "two" || p.length != 6 || p.bytes != 3<<20 {
		t.Errorf("%v: %q, %d, %d", err, p.word, p.length, p.bytes)
	}
}

// TestHelpShowsFirstWhatPeopleTurnFirst, the rest on demand, and says how many they are.
func TestHelpShowsFirstWhatPeopleTurnFirst(t *testing.T) {
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
		"\nBeside these:\n", "--all", "--help",
	} {
		next := strings.Index(long[at:], want)
		if next < 0 {
			t.Fatalf("%q is not where it belongs in %s", want, long)
		}
		at += next
	}
}
