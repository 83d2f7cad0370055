package commandline

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// WritePages writes the manual pages of a command and of its subcommands into a directory. A page is the
// command's help with every flag, without a date, so that it is reproducible. (cobra/doc would add a Markdown
// parser to the daemon.)
func WritePages(cmd *cobra.Command, dir string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if cmd.Flags().Lookup(AllFlag) != nil {
		if err := cmd.Flags().Set(AllFlag, "true"); err != nil {
			return fmt.Errorf("write manual page: %w", err)
		}
	}
	cmd.InitDefaultHelpFlag()
	page := fmt.Sprintf(".TH \"%s\" \"1\" \"\" \"spanstatsd %s\" \"spanstatsd\"\n"+
		".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n.SH OPTIONS\n.nf\n%s.fi\n"+
		".SH EXIT STATUS\n0 for success, 2 for an invalid command line or environment variable, "+
		"3 if no daemon answers, 1 for any other failure.\n",
		strings.ToUpper(name), escape(cmd.Root().Version), escape(name), escape(cmd.Short),
		escape(cmp.Or(cmd.Long, cmd.Short+".")), escape(cmd.UsageString()))
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && below.Name() != "completion" && below.Name() != "help" {
			if err := WritePages(below, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// escape keeps roff from reading a text as requests.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
