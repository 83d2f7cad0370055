/**
 * What a Java program links to hand its finished spans to spanstatsd. A process opens one
 * {@link io.github.spanstatsd.client.SpanstatsClient}; any thread publishes spans on it and goes on
 * with its work. What goes over the socket stands in docs/protocol.md.
 *
 * <h2>What it owns</h2>
 *
 * Memory outside of the heap, and one connection. A span is written, where it is published, straight
 * into a buffer that goes to the socket as it is: there is no queue of spans, no object for one, and
 * nothing for a collector to follow. The way is: {@code Stripe} (where publishers meet it) to sealed
 * (full, or due) to the {@code Sender}, which writes it, to {@code Kept} until the daemon says that it is settled, and back to
 * the free ones.
 *
 * <p>A key is the labels of a span. One that comes the second time is learned: it gets a number in the
 * {@code KeyTable}, with copies of its labels, and each further span of it has some 17 bytes.
 * The copies are interned, so equal labels of two keys are one string, and a label that is a constant
 * of the program is found by its address. Of the caller's own strings nothing outlives the call. A table
 * takes {@link io.github.spanstatsd.client.Config.Builder#maxKeys} keys of 2 KiB at most, 128 bytes each
 * in the mean; the others are sent whole. What comes once is never learned, so a flood
 * of names costs each of them its writing, and the table nothing. A table that has
 * become useless is replaced, at most once a minute.
 *
 * <h2>Threading rule</h2>
 *
 * A publisher claims a stripe by one try to swap a word, and tries the next stripe when
 * another has it. It never waits, and calls the system only to wake the sender: once a buffer, or once a
 * wait. It holds no monitor, so a virtual thread is never pinned, and there is no thread-local to leak.
 * The sender, one daemon thread, owns sealed buffers, both sides of the connection and the schedule;
 * it alone waits for a stripe, to seal it.
 *
 * <p>An idle client costs nothing: the sender sleeps until the first span after silence wakes it. While the
 * daemon is away the one thing that stirs is the next attempt to connect.
 *
 * <h2>Bounds</h2>
 *
 * {@link io.github.spanstatsd.client.Config.Builder#bufferBytes}, taken once when the client opens, hold
 * every span that was accepted and not sent, whether the daemon is slow or away. When no buffer is free
 * the newest span is refused. {@link io.github.spanstatsd.client.Config.Builder#maxKept} bytes more, taken as they are needed,
 * hold what was sent and is not settled; beyond them the oldest is let go. All are one pool: what was not full when it was
 * written is copied behind what was written before it, what was full is kept as it is, so that at high rates nothing is copied. A label is written up to the length that the daemon would keep of it. On
 * the heap are the key table, which begins with room for 64 keys, grows with those that there are, and has less
 * than a MiB when it is full, and some KiB besides.
 *
 * <h2>What is counted, and what is handed over</h2>
 *
 * A span is handed over when the socket took the last byte of its message, and is then never sent again.
 * A message that the end of a connection cut was not handed over, because the daemon throws half a message
 * away: it is sent whole on the next connection. A daemon that stops in order counts all that it was
 * handed. Where one is killed, the next is asked, when it greets, what became of the spans that were not settled: those that no
 * destination has are sent again, before all that waits, those that one may have are {@code ambiguous}, and those that are not kept
 * any more, or that nobody knows of, {@code unconfirmed}. So no span is counted twice, and none is missing without a word.
 * {@link io.github.spanstatsd.client.Stats} tells the books, which balance at any moment, and what is not counted
 * is told to the daemon by its reason.
 *
 * <h2>Processes</h2>
 *
 * Java starts other programs and never forks itself, and it opens every socket close-on-exec: no
 * child holds the connection. A virtual machine that ends in order closes its clients, which send what waits, ask for a report
 * and wait until all is settled, within {@link io.github.spanstatsd.client.Config.Builder#closeTimeout}; one that is killed loses what waits, at most
 * {@link io.github.spanstatsd.client.Config.Builder#maxAge} of spans. Before a checkpoint (CRaC) close the client,
 * and open one after it: then no socket is open at the checkpoint, and each process has a runtime id of its own.
 */
package io.github.spanstatsd.client;
