// Package daemon connects all components of the program. It is the only package that imports all of them. It
// creates, starts and stops them, but counts nothing and makes no decision about a span.
//
// # Start, in reverse order of the data flow
//
//  1. flusher, so that sealed cycles can be delivered
//  2. aggregator, so that published slots are counted
//  3. native socket, so that it exists only when spans are counted
//  4. enabled HTTP receivers
//  5. the status server reports ready, and the service manager is notified
//
// Everything that can fail (an address, a socket, a size) is checked while creating components, before a client
// can have sent anything.
//
// # Shutdown, in order of the data flow
//
//  1. the status server reports not ready, and the service manager is notified
//  2. the HTTP receivers, concurrently, stop accepting connections and complete requests in flight, within a
//     quarter of the grace period; clients that connect later wait in an inherited socket, or are refused
//  3. the native socket stops accepting connections, closes the read sides and reads everything written
//     before; each client gets a reason. After this step nothing can be published any more
//  4. the balancer stops
//  5. the aggregator seals the last cycle; the drainers empty their rings and stop
//  6. the flusher sends everything that it holds; the rest counts as unsent
//  7. the last replies to native clients are sent
//  8. the accounting is logged; the status server closes last, so that it could be scraped
//
// The grace period limits all of this, and reading may take half of it, so that time for the agent is left. A
// step that exceeds its time logs that, counts the rest with the reason "shutdown", and the other steps still
// run.
package daemon
