package main

import (
	"github.com/spanstatsd/spanstatsd/internal/door/datadog"
	"github.com/spf13/pflag"
)

// dropping is the flag for what becomes of unsampled traces.
type dropping datadog.Dropping

func (d *dropping) Set(text string) error {
	parsed, err := datadog.ParseDropping(text)
	if err == nil {
		*d = dropping(parsed)
	}
	return err
}

func (d *dropping) String() string { return datadog.Dropping(*d).String() }

func (*dropping) Type() string { return "auto|on|off" }

// droppingVar adds that flag. Without a value it is on.
func droppingVar(f *pflag.FlagSet, d *datadog.Dropping, name, usage string) {
	f.VarPF((*dropping)(d), name, "", usage).NoOptDefVal = datadog.DropOn.String()
}

// droppingInWords says what auto comes to, which the agent decides.
func droppingInWords(d datadog.Dropping) string {
	if d == datadog.DropAuto {
		return "on where the agent says client_drop_p0s"
	}
	return ""
}
