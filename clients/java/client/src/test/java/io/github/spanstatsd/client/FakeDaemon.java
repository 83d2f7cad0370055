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

/** Keeps what a daemon is sent, and misbehaves on demand. Its fields are set before start or in {@link #see}. */
final class FakeDaemon implements AutoCloseable {
    final Path socket;
    final Counts counts = new Counts();
    final List<Map<?, ?>> origins = new ArrayList<>();
    final List<Throwable> faults = new ArrayList<>();
    Map<String, Object> features = Map.of("stats", true);
    boolean settles;
    /** Gives each connection a token, and says by its record what became of it. */
    boolean remembers;
    /** What each hello said, and what was read of each connection that has a token. */
    final List<Map<?, ?>> hellos = new ArrayList<>();
    final Map<String, Record> records = new LinkedHashMap<>();
    long interval;
    int maxKeys = 1024;
    int maxKeyBytes = 128 << 10;
    /** The answer to a flush of this id; null: none. */
    LongFunction<Map<String, Object>> answer = FakeDaemon::ok;
    /** What is said to a hello; where it is null, or gives that, a welcome. */
    Supplier<ByteBuffer> greeting;
    /** Is told of each snapshot with its key, and of each message that was counted. */
    BiConsumer<String, List<Object>> onSpan = (key, snapshot) -> {};
    Consumer<Integer> onMessage = type -> {};

    /** What was read of a connection, and what became of it. It outlives the daemon. */
    static final class Record {
        /** The ends of the spans in the order in which they came; each test gives its spans ends of their own. */
        final List<Long> ends = new ArrayList<>();
        /** How many spans came with each message and those before it. */
        final List<Integer> bounds = new ArrayList<>();
        /** In pairs. The first is of what is settled. */
        final List<Long> outcomes = new ArrayList<>(List.of(0L, 0L));
        boolean isDelivered; // by a daemon that ended in order, so that the next one knows nothing of it

        /** No connection writes to it any more. */
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
                // It has left.
            }
        }
    }

    FakeDaemon() throws IOException {
        socket = Files.createTempDirectory("spanstatsd").resolve("s");
    }

    static Map<String, Object> ok(long id) {
        return Map.of("id", id, "ok", true);
    }

    /** Listens. It may be called again after stop and kill. */
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
            // It does not listen any more.
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
            // It has left, or was cut off.
        } catch (RuntimeException e) {
            see(() -> faults.add(e));
        } finally {
            end(peer.channel);
            peers.remove(peer);
        }
    }

    /** The next whole message, or null: half a frame is thrown away. */
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
                Map<String, Object> said = answer.apply((Long) asked.get("id"));
                if (said != null) peer.say(Msgpack.frame(7, said));
            }
        }
        onMessage.accept(type);
    }

    private ByteBuffer greet(Peer peer, byte[] message) {
        Map<?, ?> hello = (Map<?, ?>) ((List<?>) Msgpack.read(ByteBuffer.wrap(message))).get(1);
        origins.add((Map<?, ?>) hello.get("origin"));
        hellos.add(hello);
        ByteBuffer said = greeting == null ? null : greeting.get();
        if (said != null) return said;
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

    /** The record of the connection that came last, an empty one where none came. */
    synchronized Record last() {
        return records.isEmpty() ? new Record() : records.get("t" + (records.size() - 1));
    }

    /** Says of the first so many spans of each who is connected that they are settled. */
    void settle(long spans) {
        for (Peer peer : peers.keySet()) {
            see(() -> peer.record.outcomes.set(0, spans));
            peer.say(Msgpack.frame(3, Map.of("stats", true, "settled", spans)));
        }
    }

    /**
     * Ends in order: bye, and what comes until the client has left is read to its end. (Java has no way to fail a writer
     * and read on, as a daemon does.)
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

    /** Ends at once: what was not read is gone. */
    void kill() throws Exception {
        if (listener == null) return;
        cut();
        joinAll();
    }

    /** The same, while what it was reading may still be held up. */
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

    /** Says something to all who are connected. */
    void say(ByteBuffer frame) {
        for (Peer peer : peers.keySet()) peer.say(frame.duplicate());
    }

    /** Holds up the reading of all who are connected, until it is run. */
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
                    // Then it ends.
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
