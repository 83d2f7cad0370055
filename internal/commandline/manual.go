package commandline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoVariables is the annotation of a program's root whose flags have no environment variables.
const NoVariables = "spanstatsd_no_variables"

// WritePages writes the manual page of a command, and of those below it, into a directory. They
// come from the commands themselves, so they say what the program does and nothing else, and
// no date, so that they are the same each time.
func WritePages(cmd *cobra.Command, dir string) error {
	var page strings.Builder
	writePage(&page, cmd)
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(page.String()), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, below := range Documented(cmd) {
		if err := WritePages(below, dir); err != nil {
			return err
		}
	}
	return nil
}

// Documented are the subcommands that a person is told of. Those of completion
// are the library's, one a shell, and explain themselves.
func Documented(cmd *cobra.Command) (commands []*cobra.Command) {
	if cmd.Name() == "completion" {
		return nil
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			commands = append(commands, below)
		}
	}
	return commands
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func writePage(w io.Writer, cmd *cobra.Command) {
	name := pageName(cmd)
	fmt.Fprintf(w, ".TH \"%s\" \"1\" \"\" \"spanstatsd %s\" \"spanstatsd\"\n", strings.ToUpper(name),
		escape(cmd.Root().Version))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", escape(name), escape(cmd.Short))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n", escape(cmd.UseLine()))
	description := cmd.Long
	if description == "" {
		description = cmd.Short + "."
	}
	fmt.Fprintf(w, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", escape(description))
	cmd.InitDefaultHelpFlag()
	fmt.Fprint(w, ".SH OPTIONS\n")
	title := ""
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if group := Note(f, InGroup); group != title && group != "" {
			title = group
			fmt.Fprintf(w, ".SS %s\n", escape(title))
		}
		if title == Note(f, InGroup) {
			writeFlag(w, cmd, f)
		}
	})
	if title != "" {
		fmt.Fprint(w, ".SS Beside these\n")
		ungrouped(cmd.LocalFlags()).VisitAll(func(f *pflag.Flag) { writeFlag(w, cmd, f) })
	}
	fmt.Fprint(w, ".SH EXIT STATUS\n0 if it did what was asked, 2 for a command line or a variable that "+
		"can't be used, 3 where no daemon answers, 1 for any other failure.\n")
	fmt.Fprint(w, ".SH SEE ALSO\n")
	if cmd.HasParent() {
		fmt.Fprintf(w, ".BR %s (1)\n", escape(pageName(cmd.Parent())))
	}
	for _, below := range Documented(cmd) {
		fmt.Fprintf(w, ".BR %s (1)\n", escape(pageName(below)))
	}
}

func writeFlag(w io.Writer, cmd *cobra.Command, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	kind, _ := pflag.UnquoteUsage(f)
	text, standard := TextAndDefault(f)
	term := "--" + f.Name
	if f.Shorthand != "" {
		term = "-" + f.Shorthand + ", " + term
	}
	fmt.Fprintf(w, ".TP\n.B %s\n%s.", strings.TrimSpace(escape(term+" "+kind)), escape(text))
	if standard != "" && hasVariable(f) {
		fmt.Fprintf(w, " Default: %s.", escape(standard))
	}
	if _, none := cmd.Root().Annotations[NoVariables]; hasVariable(f) && !none {
		fmt.Fprintf(w, " Environment: %s.", Variable(f.Name))
	}
	fmt.Fprintln(w)
}

// escape keeps roff from reading a text as its own language.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
