// Package memory knows how much memory the process may use and how much it may
// come to need. It owns the reading of the limit and the sum of the rooms'
// bounds; each of them says for itself what its limits can cost. And it owns Pool: buffers
// of several holders up to one limit, each charged for what it has.
//
// # The limit
//
// The lowest of what the control groups allow, in either of their versions and
// at every level up to the root that can be seen, and of GOMEMLIMIT. Where nobody
// set GOMEMLIMIT, the collector is told nine tenths of the control group's, so
// that it works harder before the kernel ends the process. The rest is for what
// the collector does not see: the program itself, the kernel's socket buffers.
//
// # The budget
//
// Every structure of the daemon has a bound that follows from its flags, so what
// they can take together is known before the first byte is read. It is the sum
// of the worst cases at once, which no traffic is known to bring about; a daemon
// that fits its budget can't be made to outgrow it by what it is sent.
//
// # Threading
//
// A Pool is safe for concurrent use; of its buffers each is one holder's. All else is done
// at the start.
package memory
