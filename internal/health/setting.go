package health

// Setting is one value that the daemon runs with, and who chose it.
type Setting struct {
	Name  string `json:"name"` // of the flag
	Value string `json:"value"`
	// Effective is what the value means on this machine, where that is another.
	Effective string `json:"effective,omitempty"`
	Default   string `json:"default"`
	// Origin is one of the five below.
	Origin string `json:"origin"`
	// Variable is the environment variable that it came from.
	Variable string `json:"variable,omitempty"`
}

// Where a value came from, the strongest first.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromMemory      = "memory"      // another than its default, for the memory there is
	FromDescriptors = "descriptors" // the same, for the files that the process may open
	FromDefault     = "default"
)
