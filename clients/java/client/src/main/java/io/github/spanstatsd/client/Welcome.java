package io.github.spanstatsd.client;

import java.io.IOException;
import java.util.List;

/** The daemon's reply to hello: its version, limits and features. */
final class Welcome {
    /**
     * Smallest limit of a daemon on key numbers, and the limit on their cost if the daemon does not
     * report one.
     */
    static final int LEAST_KEYS = 1024;
    static final long KEY_BYTES_UNTOLD = 64 << 10;

    private static final int LEAST_FRAME = 64 << 10;

    long version;
    String daemon = "";
    long maxFrame;
    long maxBatch;
    long maxKeys;
    long maxKeyBytes;
    Features features = new Announcement().features();
    boolean settled;
    long interval;
    String token = "";
    List<Long> earlier = List.of(); // empty if the daemon does not know the earlier connection

    static Welcome read(Unpack in) throws IOException {
        Welcome welcome = new Welcome();
        in.body(name -> welcome.entry(in, name));
        if (welcome.maxFrame < LEAST_FRAME || welcome.maxBatch < Buffer.MOST_SPANS) {
            throw Unpack.malformed("a max_frame of " + welcome.maxFrame + " and a max_batch of " + welcome.maxBatch);
        }
        if (welcome.maxKeyBytes == 0) {
            welcome.maxKeyBytes = KEY_BYTES_UNTOLD;
        }
        return welcome;
    }

    private void entry(Unpack in, String name) throws IOException {
        switch (name) {
            case "version": version = in.number(-1); break;
            case "daemon": daemon = in.text(); break;
            case "max_frame": maxFrame = in.number(Integer.MAX_VALUE); break;
            case "max_batch": maxBatch = in.number(Integer.MAX_VALUE); break;
            case "max_keys": maxKeys = in.number(Integer.MAX_VALUE); break;
            case "max_key_bytes": maxKeyBytes = in.number(Integer.MAX_VALUE); break;
            case "features":
                Announcement announcement = new Announcement();
                in.map(field -> announcement.entry(in, field));
                features = announcement.features();
                break;
            case "settled": settled = in.bool(); break;
            case "token": token = in.text(); break;
            case "earlier": earlier = in.numbers(); break;
            case "interval": interval = in.number(-1); break;
            default: in.skip(8);
        }
    }

    /** A features message, and the features in a welcome. */
    static final class Announcement {
        private boolean stats;
        private List<String> peerTags = List.of();
        private List<String> spanKinds = List.of();
        private List<String> ignoreResources = List.of();
        private long obfuscationVersion;
        long settled;

        static Announcement read(Unpack in) throws IOException {
            Announcement announcement = new Announcement();
            in.body(name -> announcement.entry(in, name));
            return announcement;
        }

        private void entry(Unpack in, String name) throws IOException {
            switch (name) {
                case "stats": stats = in.bool(); break;
                case "peer_tags": peerTags = in.texts(); break;
                case "span_kinds": spanKinds = in.texts(); break;
                case "ignore_resources": ignoreResources = in.texts(); break;
                case "obfuscation_version": obfuscationVersion = in.number(-1); break;
                case "settled": settled = in.number(-1); break;
                default: in.skip(8);
            }
        }

        Features features() {
            return new Features(stats, peerTags, spanKinds, ignoreResources, obfuscationVersion);
        }
    }
}
