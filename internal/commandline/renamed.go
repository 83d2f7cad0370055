package commandline

import "github.com/spf13/pflag"

// AcceptOldNames makes flags accept old names, too. newNames maps each old name to the current name of the flag.
// The returned map is empty until flags are parsed. It then contains the entries of newNames for the old names that
// were used.
func AcceptOldNames(flags *pflag.FlagSet, newNames map[string]string) (used map[string]string) {
	used = map[string]string{}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		newName, isOld := newNames[name]
		if !isOld {
			return pflag.NormalizedName(name)
		}
		used[name] = newName
		return pflag.NormalizedName(newName)
	})
	return used
}
