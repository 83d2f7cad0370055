// Package msgpack reads msgpack in place: values come out of the bytes that were
// received, where they lie, without being decoded into objects.
//
// A Reader stands before one value of a body and steps over it when it is read. The value that
// it is asked for must stand there: any other value, and a value that is cut short, is a
// fault. A fault is final. The Reader then stays where the faulty value begins, and everything
// that is read from it is zero, so a caller may read several values and look for a fault once
// behind them. A caller that loops must look for it in the loop.
//
// Where a loop keeps its place in a register, CommonStr and its siblings read values of
// their most common forms at that place, and leave every other form to a Reader.
//
// It is for package client, which has no dependencies, and for the bodies of traces, whose
// values it reads without a call of an interface or a copy. Whatever else only the daemon
// reads, package payload reads with a library.
//
// # Bounds
//
// No length and no count is believed beyond the bytes that are left: a string lies
// within the body, and an array has no more elements than bytes follow its header. Skip
// follows nesting to MaxDepth and no further. So whatever the bytes are, reading takes
// time in proportion to their number, no memory, and ends; nothing panics.
//
// # Threading
//
// A Reader is a value without references but to its body. One goroutine at a time
// uses it. The texts that it returns are places in the body: they say nothing once
// the body's memory is used again.
package msgpack
