// Package memory finds the memory limit of the process, computes the maximum memory that the configuration allows,
// and implements Pool, a set of buffers with a common limit.
//
// # Limit
//
// The limit is the minimum of GOMEMLIMIT and of the limits of all cgroups of the process, from its own cgroup up to
// the visible root, in cgroup v1 and v2. SetGoLimit sets Go's soft memory limit to the rest without the pages of the
// executable (ProgramBytes) and the kernel's socket buffers, so that the garbage collector runs more often before the
// kernel reclaims pages or kills the process.
//
// # Budget
//
// Flags bound every data structure of the daemon, so the maximum memory is known before the first byte is read. It is
// the sum of all worst cases at the same time; no known traffic reaches it. A daemon whose budget fits the limit
// can't exceed the limit, whatever its input.
//
// # Concurrency
//
// A Pool is safe for concurrent use; each of its buffers belongs to one goroutine. Everything else is called at
// startup.
package memory
