/**
 * Sends the finished spans of a Java program to spanstatsd. A process opens one {@link
 * io.github.spanstatsd.client.SpanstatsClient}; any thread can publish spans with it and continues
 * immediately. docs/protocol.md describes the protocol.
 *
 * <h2>What it owns</h2>
 *
 * Memory outside of the heap, and one connection. Publishing encodes a span directly into a buffer
 * that is later sent unchanged: there is no queue of span objects, and no work for the garbage
 * collector. The path of a buffer is: {@code Stripe} (publishers fill it), sealed (full, or due),
 * {@code Sender} (writes it), {@code Kept} until the daemon reports it as settled, and back to the
 * free buffers.
 *
 * <p>A key consists of the labels of a span. It is learned at its second use: it gets a number in
 * the {@code KeyTable}, with copies of its labels, and each further span with it takes about 17
 * bytes. The copies are interned: equal labels of two keys are one string, and a label that is a
 * constant of the program is compared by identity. The caller's own strings are not referenced
 * after the call. A table holds up to {@link io.github.spanstatsd.client.Config.Builder#maxKeys}
 * keys of at most 2 KiB each, and 128 bytes in the mean; other keys are sent in full. Unique keys
 * are never learned, so a high-cardinality burst costs only the encoding of each key. A table that
 * is no longer useful is replaced, at most once per minute.
 *
 * <h2>Concurrency</h2>
 *
 * A publisher claims a stripe with one compare-and-set, and tries the next stripe if another thread
 * has it. It never blocks, and makes a system call only to wake the sender: once per buffer, or
 * once per wait of the sender. It holds no monitor, so a virtual thread is never pinned, and there
 * are no thread-locals to leak. The sender, one daemon thread, owns sealed buffers, both directions
 * of the connection and the schedule; only the sender waits for a stripe, to seal it.
 *
 * <p>An idle client uses no CPU time: the sender sleeps until the first span after a pause wakes
 * it. While the daemon is unreachable, only the attempts to connect wake it.
 *
 * <h2>Limits</h2>
 *
 * {@link io.github.spanstatsd.client.Config.Builder#bufferBytes}, allocated once when the client
 * opens, hold all accepted spans that are not sent, whether the daemon is slow or unreachable. When
 * no buffer is free, new spans are refused. {@link
 * io.github.spanstatsd.client.Config.Builder#maxKept} additional bytes, allocated as needed, hold
 * sent spans that are not settled; when they are full, the oldest are released. All buffers are one
 * pool: a partially full buffer is copied to the end of the previous one after it was written, and
 * a full one is kept as it is, so that at high rates nothing is copied. Labels are truncated to the
 * daemon's limits. On the heap are the key table, which starts with a capacity of 64 keys, grows
 * with their number, and takes less than one MiB when full, and a few KiB of other data.
 *
 * <h2>Counted and handed-over spans</h2>
 *
 * A span is handed over when the socket has accepted the last byte of its message, and is then not
 * sent again. A message that is cut by the end of a connection was not handed over, because the
 * daemon discards incomplete messages; it is sent completely on the next connection. A daemon that
 * shuts down gracefully counts all spans that were handed over. If a daemon is killed, the client's
 * hello asks the next one for the outcome of unsettled spans: those that no destination has
 * received are replayed, before all waiting spans; those that a destination might have received are
 * {@code ambiguous}; and those that are no longer kept, or whose outcome is unknown, are {@code
 * unconfirmed}. So no span is counted twice, and every missing span is in a counter. {@link
 * io.github.spanstatsd.client.Stats} returns the accounting, which balances at any time. Uncounted
 * spans are reported to the daemon by reason.
 *
 * <h2>Processes</h2>
 *
 * Java never forks without exec, and opens every socket close-on-exec, so child processes do not
 * inherit the connection. A virtual machine that shuts down gracefully closes its clients: they
 * send buffered spans, request a flush, and wait until all spans are settled, within {@link
 * io.github.spanstatsd.client.Config.Builder#closeTimeout}. If it is killed, it loses the buffered
 * spans, at most those of {@link io.github.spanstatsd.client.Config.Builder#maxAge}. Before a
 * checkpoint (CRaC) close the client, and open a new one afterwards: then no socket is open at the
 * checkpoint, and each process has its own runtime ID.
 */
package io.github.spanstatsd.client;
