package commandline

import "github.com/spf13/pflag"

// AcceptOldNames makes flags accept old names, too. newNames maps each old name to the current name of the flag.
// Parsing the flags adds each old name that is used to the returned map, with its current name.
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
