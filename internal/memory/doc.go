// Package memory finds the memory limit of the process, adds up what its limits allow, and has Pool:
// buffers of several holders that are charged to one limit.
//
// # Limit
//
// The limit is the lowest one of the control groups, of both versions and at every level up to the root
// that is visible, and of GOMEMLIMIT. If GOMEMLIMIT is not set, the garbage collector is given nine tenths
// of the control group's limit, so that it works harder before the kernel ends the process. The rest is for
// memory that the collector does not see: the program itself, and the kernel's socket buffers.
//
// # Budget
//
// Every structure of the daemon has a bound that follows from its flags, so the sum is known before the
// first byte is read. It is the sum of all worst cases at the same time, which no known traffic brings
// about. A daemon that fits its budget can't be made to outgrow it by its input.
//
// # Concurrency
//
// A Pool is safe for concurrent use; each of its buffers belongs to one holder. Everything else is called
// at the start.
package memory
