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
 * One connection, from connect to close. Only the sender uses it, for both writing and reading:
 * while it waits for the socket to accept more data, it reads the daemon's messages.
 */
final class Connection {
    /**
     * Limit on the time from connecting to the daemon's welcome, and on the time that a daemon that
     * stopped reading has to say bye.
     */
    static final long LIMIT = TimeUnit.SECONDS.toNanos(5);
    /** With Linux's small default, client and daemon would wake each other constantly. */
    private static final int SEND_BUFFER = 256 << 10;
    private static final int VERSION = 1;

    final long since = System.nanoTime();
    Welcome welcome;
    /** Why the connection ended; null before that. */
    Ending ending;
    /** The table whose keys were defined on this connection, and the number of defined keys. */
    KeyTable defined;
    int definedKeys;

    private final SocketChannel channel;
    private final SelectionKey key;
    private final Selector selector;
    private final Deadline deadline; // time limit of all waits
    private final Inbox inbox;
    private final Shared shared;
    private final Map<Long, CompletableFuture<Void>> asked = new HashMap<>();
    private long lastId;
    private long handed;
    private long settled;

    private Connection(SocketChannel channel, Selector selector, Deadline deadline, Inbox inbox, Shared shared) throws IOException {
        this.channel = channel;
        this.selector = selector;
        this.deadline = deadline;
        this.inbox = inbox;
        this.shared = shared;
        inbox.clear();
        key = channel.register(selector, SelectionKey.OP_CONNECT);
    }

    /**
     * Connects and exchanges hello and welcome. When it returns, the features of the welcome are in
     * effect.
     */
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
        channel.setOption(StandardSocketOptions.SO_SNDBUF, SEND_BUFFER); // the kernel limits the size to its maximum
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

    /**
     * Waits for the socket.
     *
     * @throws IOException if the time is over
     */
    private void await(int operations, long until) throws IOException {
        long left = left(until);
        if (left <= 0) {
            throw Ending.of(until - System.nanoTime() <= 0 ? "the daemon did not welcome this client in time" : "the client is closed");
        }
        key.interestOps(operations);
        select(left);
    }

    /** Returns the time left until the given time or the client's deadline. */
    private long left(long until) {
        return Math.min(until - System.nanoTime(), deadline.left());
    }

    /** Waits until the socket is ready, the selector is woken, or the time is over. */
    void select(long nanos) throws IOException {
        select(selector, nanos);
    }

    static void select(Selector selector, long nanos) throws IOException {
        long millis = TimeUnit.NANOSECONDS.toMillis(nanos + 999_999);
        if (millis <= 0) {
            selector.selectNow();
        } else {
            Thread.interrupted(); // a listener can have left the thread interrupted, and then the selector would never wait
            selector.select(millis);
        }
        selector.selectedKeys().clear();
    }

    /**
     * Writes all bytes. If it fails, the buffer's position is the exact number of accepted bytes,
     * because a failed write has accepted none. While it waits it reads, and fails when the daemon
     * has said bye.
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

    /** Adds to the number of snapshots handed over. */
    void handedOver(int spans) {
        handed += spans;
    }

    /** Reads available messages. At the end of the connection it sets {@link #ending}. */
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
            throw Ending.of("the daemon sent an unexpected message of type " + type);
        }
        switch (type) {
            case 2:
                Welcome greeting = Welcome.read(message);
                if (greeting.version != VERSION) {
                    throw Ending.of("the daemon supports version " + greeting.version + " of the protocol, this client version "
                            + VERSION + "; upgrade the older one");
                }
                welcome = greeting;
                take(greeting.features);
                break;
            case 3:
                Welcome.Announcement announced = Welcome.Announcement.read(message);
                settled = Math.max(settled, announced.settled);
                take(announced.features());
                break;
            case 7:
                answer(DaemonMessages.Answer.read(message));
                break;
            default:
                throw Ending.bye(DaemonMessages.Bye.read(message));
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

    private void answer(DaemonMessages.Answer answer) {
        CompletableFuture<Void> flush = asked.remove(answer.id);
        if (flush == null) {
            return;
        }
        if (answer.ok) {
            flush.complete(null); // this settles no span: a destination may have it only after its next scrape
        } else {
            flush.completeExceptionally(new FlushException("flush spans: the daemon could not report them: " + answer.error));
        }
    }

    /** Sends a flush request. The answer is completed when the daemon's reply arrives. */
    void ask(CompletableFuture<Void> answer, ByteBuffer scratch) throws IOException {
        asked.values().removeIf(CompletableFuture::isDone); // cancelled by the caller
        write(Messages.flush(scratch, ++lastId));
        asked.put(lastId, answer);
    }

    /** Closes the writing side. */
    void shutDown() throws IOException {
        channel.shutdownOutput();
    }

    /** Reads until the connection ends or the time is over. */
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
            ending = Ending.of("the daemon did not end the connection in time");
        }
    }

    /** Closes the connection. */
    void close() throws IOException {
        channel.close();
        selector.selectNow(); // makes the selector release the channel
        for (CompletableFuture<Void> flush : asked.values()) {
            flush.completeExceptionally(
                    new FlushException("flush spans: the connection ended before the daemon responded; flush again"));
        }
    }

    /** Returns the number of settled snapshots, according to the daemon. */
    long settled() {
        return settled;
    }

    /**
     * Returns the number of snapshots handed over and not settled; 0 if the daemon does not report
     * settlement.
     */
    long unsettled() {
        return welcome.settled ? Math.max(0, handed - settled) : 0;
    }
}
