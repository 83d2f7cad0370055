package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.net.StandardSocketOptions;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * One connection, from connect to its end. It is the sender's alone, which writes and reads it by turns: while it waits for
 * the socket to take more, it reads what the daemon says.
 */
final class Connection {
    /** Bounds the time from connecting to the daemon's welcome, and that which a daemon has to say bye once it takes nothing. */
    static final long LIMIT = TimeUnit.SECONDS.toNanos(5);
    /** With the little that Linux gives unasked, the two ends wake each other all the time. */
    private static final int SEND_BUFFER = 256 << 10;
    private static final int VERSION = 1;

    final long since = System.nanoTime();
    Welcome welcome;
    /** Why nothing comes any more, once that is so. */
    Ending ending;
    /** The table whose keys were defined, and how many of them. */
    KeyTable defined;
    int definedKeys;

    private final SocketChannel channel;
    private final SelectionKey key;
    private final Selector selector;
    private final Deadline deadline; // after which nothing is waited for
    private final Inbox inbox;
    private final Shared shared;
    private final Map<Long, Asked> asked = new HashMap<>();
    private long lastId;
    private long handed;
    private long settled;

    /** A flush that was asked, and what was handed over before. */
    private static final class Asked {
        final CompletableFuture<Void> answer;
        final long handed;

        Asked(CompletableFuture<Void> answer, long handed) {
            this.answer = answer;
            this.handed = handed;
        }
    }

    private Connection(SocketChannel channel, Selector selector, Deadline deadline, Inbox inbox, Shared shared) throws IOException {
        this.channel = channel;
        this.selector = selector;
        this.deadline = deadline;
        this.inbox = inbox;
        this.shared = shared;
        inbox.clear();
        key = channel.register(selector, SelectionKey.OP_CONNECT);
    }

    /** Connects and greets. The features of the welcome are in force when it returns. */
    static Connection open(String path, ByteBuffer hello, Selector selector, Deadline deadline, Inbox inbox, Shared shared) throws IOException {
        SocketChannel channel = UnixSocket.connect(path);
        try {
            Connection connection = new Connection(channel, selector, deadline, inbox, shared);
            connection.greet(hello);
            return connection;
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    private void greet(ByteBuffer hello) throws IOException {
        while (!channel.finishConnect()) {
            await(SelectionKey.OP_CONNECT, since + LIMIT);
        }
        channel.setOption(StandardSocketOptions.SO_SNDBUF, SEND_BUFFER); // the kernel gives what it allows
        while (hello.hasRemaining()) {
            if (channel.write(hello) == 0) {
                await(SelectionKey.OP_WRITE, since + LIMIT);
            }
        }
        while (welcome == null) {
            read();
            if (ending != null) {
                throw ending;
            }
            if (welcome == null) {
                await(SelectionKey.OP_READ, since + LIMIT);
            }
        }
        key.interestOps(SelectionKey.OP_READ);
    }

    /** Waits for the socket, or fails when the time is over. */
    private void await(int operations, long until) throws IOException {
        long left = left(until);
        if (left <= 0) {
            throw Ending.of(until - System.nanoTime() <= 0 ? "the daemon did not welcome this client in time" : "the client is closed");
        }
        key.interestOps(operations);
        select(left);
    }

    /** How long may be waited until then, or until the client gives up. */
    private long left(long until) {
        return Math.min(until - System.nanoTime(), deadline.left());
    }

    /** Waits until the socket has something, or somebody calls, or the time is over. */
    void select(long nanos) throws IOException {
        select(selector, nanos);
    }

    static void select(Selector selector, long nanos) throws IOException {
        long millis = TimeUnit.NANOSECONDS.toMillis(nanos + 999_999);
        if (millis <= 0) {
            selector.selectNow();
        } else {
            Thread.interrupted(); // a listener may have left that behind, and the selector would never wait again
            selector.select(millis);
        }
        selector.selectedKeys().clear();
    }

    /**
     * Writes all of it. Where that fails, the buffer's position says how much was accepted, which is exact: a write that
     * fails has accepted nothing. Meanwhile it reads, and fails once the daemon has said bye.
     */
    void write(ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            if (ending != null) {
                throw ending;
            }
            if (channel.write(bytes) == 0) {
                try {
                    await(SelectionKey.OP_READ | SelectionKey.OP_WRITE, System.nanoTime() + Deadline.NEVER);
                } finally {
                    key.interestOps(SelectionKey.OP_READ);
                }
                read();
            }
        }
    }

    /** Notes that so many more snapshots were handed over. */
    void handedOver(int spans) {
        handed += spans;
    }

    /** Reads what is there. When nothing comes any more, {@link #ending} says so. */
    void read() {
        try {
            while (ending == null) {
                Unpack message = inbox.next();
                if (message != null) {
                    handle(message);
                } else if (!fill()) {
                    return;
                }
            }
        } catch (Ending e) {
            ending = e;
        } catch (IOException e) {
            ending = Ending.of(e.getMessage());
        }
    }

    private boolean fill() throws IOException {
        int read;
        try {
            read = inbox.read(channel);
        } catch (IOException e) {
            throw Ending.reset(e);
        }
        if (read < 0) {
            throw Ending.endOfStream();
        }
        return read > 0;
    }

    private void handle(Unpack message) throws IOException {
        int type = message.type();
        if (welcome == null ? type != 2 && type != 8 : type != 3 && type != 7 && type != 8) {
            throw Ending.of("the daemon sent message " + type + ", which it may not");
        }
        switch (type) {
            case 2:
                Welcome said = Welcome.read(message);
                if (said.version != VERSION) {
                    throw Ending.of("the daemon speaks version " + said.version + " of the protocol, this client " + VERSION
                            + ": upgrade the older");
                }
                welcome = said;
                take(said.features);
                break;
            case 3:
                Welcome.Announcement announced = Welcome.Announcement.read(message);
                settled = Math.max(settled, announced.settled);
                take(announced.features());
                break;
            case 7:
                answer(Told.Answer.read(message));
                break;
            default:
                throw Ending.bye(Told.Bye.read(message));
        }
    }

    private void take(Features features) {
        if (features.stats()) {
            shared.gate.open();
        } else {
            shared.gate.shut(Reason.NOT_WANTED);
        }
        if (!features.same(shared.features)) {
            shared.features = features;
        }
    }

    private void answer(Told.Answer answer) {
        Asked flush = asked.remove(answer.id);
        if (flush == null) {
            return;
        }
        if (answer.ok) {
            settled = Math.max(settled, flush.handed);
            flush.answer.complete(null);
        } else {
            flush.answer.completeExceptionally(new FlushException("flush spans: the daemon could not report them: " + answer.error));
        }
    }

    /** Sends a flush, whose answer comes when it comes. */
    void ask(CompletableFuture<Void> answer, ByteBuffer scratch) throws IOException {
        asked.values().removeIf(flush -> flush.answer.isDone()); // its caller has left
        write(Messages.flush(scratch, ++lastId));
        asked.put(lastId, new Asked(answer, handed));
    }

    /** Says that nothing comes any more from this side. */
    void shutDown() throws IOException {
        channel.shutdownOutput();
    }

    /** Reads until nothing comes any more, or the time is over. */
    void awaitEnd(long until) {
        try {
            read();
            for (long left = left(until); ending == null && left > 0; left = left(until)) {
                select(left);
                read();
            }
        } catch (IOException e) {
            ending = Ending.of(e.getMessage());
        }
        if (ending == null) {
            ending = Ending.of("the daemon does not say bye");
        }
    }

    /** Ends it. */
    void close() throws IOException {
        channel.close();
        selector.selectNow(); // the selector lets go of the channel
        for (Asked flush : asked.values()) {
            flush.answer.completeExceptionally(
                    new FlushException("flush spans: the connection ended before the daemon answered: flush again"));
        }
    }

    /** How many snapshots have had their outcome, as far as the daemon has said. */
    long settled() {
        return settled;
    }

    /** How many were handed over besides, 0 where the daemon never says what becomes of them. */
    long unsettled() {
        return welcome.settled ? Math.max(0, handed - settled) : 0;
    }
}
