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
    long interval;
    int maxKeys = 1024;
    int maxKeyBytes = 128 << 10;
    /** The answer to a flush of this id; null: none. */
    LongFunction<Map<String, Object>> answer = FakeDaemon::ok;
    /** What is said to a hello, null: a welcome. */
    Supplier<ByteBuffer> greeting;
    /** Is told of each message that was counted. */
    Consumer<Integer> onMessage = type -> {};

    private final Map<Peer, Thread> peers = new ConcurrentHashMap<>();
    private ServerSocketChannel listener;
    private Thread accepting;

    private static final class Peer {
        final SocketChannel channel;
        final ReentrantLock reading = new ReentrantLock();
        final Counts.Numbers numbers = new Counts.Numbers();

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
            type = counts.take(peer.numbers, message);
            if (type == 1) {
                peer.say(greet(message));
            } else if (type == 7) {
                Map<?, ?> asked = (Map<?, ?>) ((List<?>) Msgpack.read(ByteBuffer.wrap(message))).get(1);
                Map<String, Object> said = answer.apply((Long) asked.get("id"));
                if (said != null) peer.say(Msgpack.frame(7, said));
            }
        }
        onMessage.accept(type);
    }

    private ByteBuffer greet(byte[] message) {
        Map<?, ?> hello = (Map<?, ?>) ((List<?>) Msgpack.read(ByteBuffer.wrap(message))).get(1);
        origins.add((Map<?, ?>) hello.get("origin"));
        if (greeting != null) return greeting.get();
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
        return Msgpack.frame(2, welcome);
    }

    /**
     * Ends in order: bye, and what comes until the client has left is read to its end. (Java has no way to fail a writer
     * and read on, as a daemon does.)
     */
    void stop() throws Exception {
        listener.close();
        accepting.join();
        for (Peer peer : peers.keySet()) peer.say(Msgpack.frame(8, Map.of("reason", "shutdown")));
        joinAll();
    }

    /** Ends at once: what was not read is gone. */
    void kill() throws Exception {
        if (listener == null) return;
        listener.close();
        accepting.join();
        for (Peer peer : peers.keySet()) end(peer.channel);
        joinAll();
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
