package io.github.spanstatsd.client;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.Supplier;

/**
 * A daemon that records what it receives, and misbehaves on demand. Its fields are set before start
 * or in {@link #see}.
 */
final class FakeDaemon implements AutoCloseable {
    final Path socket;
    final Counts counts = new Counts();
    final List<Map<?, ?>> origins = new ArrayList<>();
    final List<Throwable> faults = new ArrayList<>();
    Map<String, Object> features = Map.of("stats", true);
    boolean settles;
    /**
     * Gives each connection a token, and reports the outcome of earlier connections from their
     * records.
     */
    boolean remembers;
    /** The hello messages, and the record of each connection with a token. */
    final List<Map<?, ?>> hellos = new ArrayList<>();
    final Map<String, Record> records = new LinkedHashMap<>();
    long interval;
    int maxKeys = 1024;
    int maxKeyBytes = 128 << 10;
    /** Returns the reply to a flush request with an ID; null: no reply. */
    LongFunction<Map<String, Object>> answer = FakeDaemon::ok;

    /** A successful flush does not settle spans, because only a scrape does. */
    boolean isScraped;
    /** Returns the reply to a hello; null: a welcome. */
    Supplier<ByteBuffer> greeting;
    /** Called for each snapshot with its key, and for each counted message. */
    BiConsumer<String, List<Object>> onSpan = (key, snapshot) -> {};
    Consumer<Integer> onMessage = type -> {};

    /** The data read from a connection, and its outcome. It outlives the daemon. */
    static final class Record {
        /** The end times of the spans in the order of arrival. Each test uses unique end times. */
        final List<Long> ends = new ArrayList<>();
        /** The number of spans received up to the end of each message. */
        final List<Integer> bounds = new ArrayList<>();
        /** Outcomes in the protocol's pairs. The first pair contains the settled spans. */
        final List<Long> outcomes = new ArrayList<>(List.of(0L, 0L));
        boolean isDelivered; // the daemon shut down gracefully, so the next one does not know the connection

        /** No connection writes to the record any more. */
        boolean isClosed;

        long settled() {
            return outcomes.get(0);
        }
    }

    private final Map<Peer, Thread> peers = new ConcurrentHashMap<>();
    private ServerSocketChannel listener;
    private Thread accepting;

    private static final class Peer {
        final SocketChannel channel;
        final ReentrantLock reading = new ReentrantLock();
        final Counts.Numbers numbers = new Counts.Numbers();
        final Record record = new Record();

        Peer(SocketChannel channel) {
            this.channel = channel;
        }

        synchronized void say(ByteBuffer frame) {
            try {
                while (frame.hasRemaining()) channel.write(frame);
            } catch (IOException e) {
                // The client has disconnected.
            }
        }
    }

    FakeDaemon() throws IOException {
        socket = Files.createTempDirectory("spanstatsd").resolve("s");
    }

    static Map<String, Object> ok(long id) {
        return Map.of("id", id, "ok", true);
    }

    /** Listens. It can be called again after stop and kill. */
    FakeDaemon start() throws IOException {
        Files.deleteIfExists(socket);
        ServerSocketChannel l = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        l.bind(UnixDomainSocketAddress.of(socket));
        listener = l;
        accepting = new Thread(() -> accept(l), "fake-accept");
        accepting.setDaemon(true);
        accepting.start();
        return this;
    }

    private void accept(ServerSocketChannel l) {
        try {
            while (true) {
                Peer peer = new Peer(l.accept());
                Thread thread = new Thread(() -> serve(peer), "fake-serve");
                thread.setDaemon(true);
                peers.put(peer, thread);
                thread.start();
            }
        } catch (IOException e) {
            // The listener was closed.
        }
    }

    private void serve(Peer peer) {
        try {
            for (byte[] message = next(peer); message != null; message = next(peer)) {
                peer.reading.lock();
                try {
                    take(peer, message);
                } finally {
                    peer.reading.unlock();
                }
            }
        } catch (IOException e) {
            // The client has disconnected, or the connection was cut.
        } catch (RuntimeException e) {
            see(() -> faults.add(e));
        } finally {
            end(peer.channel);
            peers.remove(peer);
        }
    }

    /** Returns the next complete message, or null: an incomplete frame is discarded. */
    private static byte[] next(Peer peer) throws IOException {
        byte[] header = read(peer.channel, 4);
        return header == null ? null : read(peer.channel, ByteBuffer.wrap(header).getInt());
    }

    private static byte[] read(SocketChannel from, int length) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(length);
        while (bytes.hasRemaining()) {
            if (from.read(bytes) < 0) return null;
        }
        return bytes.array();
    }

    private void take(Peer peer, byte[] message) {
        int type;
        synchronized (this) {
            peer.numbers.most = maxKeys;
            peer.numbers.mostCost = maxKeyBytes;
            counts.onSpan = (key, snapshot) -> {
                peer.record.ends.add((Long) snapshot.get(2));
                onSpan.accept(key, snapshot);
            };
            type = counts.take(peer.numbers, message);
            if (type == 5) peer.record.bounds.add(peer.record.ends.size());
            if (type == 1) {
                peer.say(greet(peer, message));
            } else if (type == 7) {
                Map<?, ?> asked = (Map<?, ?>) ((List<?>) Msgpack.read(ByteBuffer.wrap(message))).get(1);
                Map<String, Object> reply = answer.apply((Long) asked.get("id"));
                if (reply != null && Boolean.TRUE.equals(reply.get("ok")) && !isScraped) {
                    long spans = peer.record.ends.size();
                    peer.record.outcomes.set(0, spans);
                    Map<String, Object> settled = new LinkedHashMap<>(features);
                    settled.put("settled", spans);
                    peer.say(Msgpack.frame(3, settled));
                }
                if (reply != null) peer.say(Msgpack.frame(7, reply));
            }
        }
        onMessage.accept(type);
    }

    private ByteBuffer greet(Peer peer, byte[] message) {
        Map<?, ?> hello = (Map<?, ?>) ((List<?>) Msgpack.read(ByteBuffer.wrap(message))).get(1);
        origins.add((Map<?, ?>) hello.get("origin"));
        hellos.add(hello);
        ByteBuffer reply = greeting == null ? null : greeting.get();
        if (reply != null) return reply;
        Map<String, Object> welcome = new LinkedHashMap<>();
        welcome.put("version", 1);
        welcome.put("daemon", "fake 1");
        welcome.put("max_frame", 65536);
        welcome.put("max_batch", 256);
        welcome.put("max_keys", maxKeys);
        welcome.put("max_key_bytes", maxKeyBytes);
        welcome.put("features", features);
        welcome.put("settled", settles && Boolean.TRUE.equals(hello.get("settled")));
        welcome.put("interval", interval);
        if (remembers) {
            String token = "t" + records.size();
            welcome.put("token", token);
            Record asked = records.get(hello.get("earlier"));
            if (asked != null && !asked.isDelivered) welcome.put("earlier", asked.outcomes);
            records.put(token, peer.record);
        }
        return Msgpack.frame(2, welcome);
    }

    /** Returns the record of the latest connection, or an empty one. */
    synchronized Record last() {
        return records.isEmpty() ? new Record() : records.get("t" + (records.size() - 1));
    }

    /** Reports to all clients that a number of their spans is settled. */
    void settle(long spans) {
        for (Peer peer : peers.keySet()) {
            see(() -> peer.record.outcomes.set(0, spans));
            peer.say(Msgpack.frame(3, Map.of("stats", true, "settled", spans)));
        }
    }

    /**
     * Shuts down gracefully: says bye, and reads until the clients have disconnected. (Java cannot
     * make the peer's writes fail and continue to read, as a real daemon does.)
     */
    void stop() throws Exception {
        listener.close();
        accepting.join();
        for (Peer peer : peers.keySet()) {
            peer.say(Msgpack.frame(8, Map.of("reason", "shutdown")));
            see(() -> peer.record.isDelivered = true);
        }
        joinAll();
    }

    /** Crashes: unread data is lost. */
    void kill() throws Exception {
        if (listener == null) return;
        cut();
        joinAll();
    }

    /** Crashes while reading can still be blocked by pause. */
    void cut() throws Exception {
        listener.close();
        accepting.join();
        for (Peer peer : peers.keySet()) end(peer.channel);
    }

    private void joinAll() throws InterruptedException {
        for (Thread thread : peers.values()) thread.join();
    }

    private static void end(SocketChannel channel) {
        try {
            channel.close();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    void setFeatures(Map<String, Object> to) {
        see(() -> features = to);
        for (Peer peer : peers.keySet()) peer.say(Msgpack.frame(3, to));
    }

    /** Sends a message to all clients. */
    void say(ByteBuffer frame) {
        for (Peer peer : peers.keySet()) peer.say(frame.duplicate());
    }

    /** Blocks reading from all clients until the result is run. */
    Runnable pause() {
        List<Peer> paused = new ArrayList<>(peers.keySet());
        ReentrantLock done = new ReentrantLock();
        Thread holder = new Thread(() -> {
            for (Peer peer : paused) peer.reading.lock();
            synchronized (done) {
                done.notifyAll();
                try {
                    done.wait();
                } catch (InterruptedException e) {
                    // Reading ends then.
                }
            }
            for (Peer peer : paused) peer.reading.unlock();
        });
        synchronized (done) {
            holder.start();
            try {
                done.wait();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
        return () -> {
            holder.interrupt();
            try {
                holder.join();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        };
    }

    synchronized void see(Runnable look) {
        look.run();
    }

    synchronized long spans() {
        return counts.spans;
    }

    @Override
    public void close() throws Exception {
        kill();
        if (!faults.isEmpty()) throw new AssertionError("the fake daemon met " + faults, faults.get(0));
    }
}
