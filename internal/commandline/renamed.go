package commandline

import "github.com/spf13/pflag"

// AcceptOldNames makes flags accept the old names in newNames, which maps each to the present name.
// ApplyEnvironment accepts the variables of the old names as well. Help shows only present names.
// The map that AcceptOldNames returns gets an entry, like those of newNames, for each old name that
// is used later, so that the program can warn about it.
func AcceptOldNames(flags *pflag.FlagSet, newNames map[string]string) (used map[string]string) {
	used = map[string]string{}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if newName, isOld := newNames[name]; isOld {
			used[name] = newName
			name = newName
		}
		return pflag.NormalizedName(name)
	})
	return used
}
