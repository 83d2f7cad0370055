package main

import (
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spf13/pflag"
)

// dropping is the flag for what becomes of unsampled traces.
type dropping apm.Dropping

func (d *dropping) Set(text string) error {
	parsed, err := apm.ParseDropping(text)
	if err == nil {
		*d = dropping(parsed)
	}
	return err
}

func (d *dropping) String() string { return apm.Dropping(*d).String() }

func (*dropping) Type() string { return "auto|on|off" }

// droppingVar adds that flag. Without a value it is on.
func droppingVar(f *pflag.FlagSet, d *apm.Dropping, name, usage string) {
	f.VarPF((*dropping)(d), name, "", usage).NoOptDefVal = apm.DropOn.String()
}

// droppingInWords says what auto comes to, which the agent decides.
func droppingInWords(d apm.Dropping) string {
	if d == apm.DropAuto {
		return "on where the agent says client_drop_p0s"
	}
	return ""
}
