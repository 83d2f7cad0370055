package main

import (
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spf13/pflag"
)

// size is a flag's number of bytes: read as 16MiB or 16777216, and shown in the largest
// unit that divides it.
type size int

func (s *size) Set(text string) error {
	bytes, err := memory.ParseSize(text)
	if err == nil {
		*s = size(bytes)
	}
	return err
}

func (s *size) String() string { return memory.SizeText(int(*s)) }

func (*size) Type() string { return "size" }

// sizeVar adds a flag for a number of bytes, whose default is what stands there.
func sizeVar(f *pflag.FlagSet, bytes *int, name, usage string) {
	f.Var((*size)(bytes), name, usage)
}
