package commandline

import "github.com/spf13/pflag"

// AcceptOldNames makes flags accept old names as well. newNames maps each old name to the current name of the flag,
// which is the only one in help. When an old name is used later, its entry of newNames is added to the returned
// map, so that the program can warn about it.
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
