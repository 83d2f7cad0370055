package io.github.spanstatsd.client;

import java.util.List;

/** What the agent wants to be counted, according to the daemon. Immutable. */
public final class Features {
    /** Features before the first message of a daemon: statistics are wanted. */
    static final Features UNTOLD = new Features(true, List.of(), List.of(), List.of(), 0);

    private final boolean stats;
    private final List<String> peerTags;
    private final List<String> spanKinds;
    private final List<String> ignoreResources;
    private final long obfuscationVersion;

    Features(boolean stats, List<String> peerTags, List<String> spanKinds, List<String> ignoreResources, long obfuscationVersion) {
        this.stats = stats;
        this.peerTags = List.copyOf(peerTags);
        this.spanKinds = List.copyOf(spanKinds);
        this.ignoreResources = List.copyOf(ignoreResources);
        this.obfuscationVersion = obfuscationVersion;
    }

    /** Reports whether statistics are wanted. If not, all spans are refused. */
    public boolean stats() {
        return stats;
    }

    /** Returns the names of the span tags that become peer tags of a key. */
    public List<String> peerTags() {
        return peerTags;
    }

    /** Returns the kinds whose spans are counted even if they are not top-level. */
    public List<String> spanKinds() {
        return spanKinds;
    }

    /**
     * Returns regular expressions. Traces whose root span has a matching resource must not be
     * counted.
     */
    public List<String> ignoreResources() {
        return ignoreResources;
    }

    /** Returns the version of the agent's obfuscation. */
    public long obfuscationVersion() {
        return obfuscationVersion;
    }

    boolean same(Features other) {
        return stats == other.stats && obfuscationVersion == other.obfuscationVersion
                && peerTags.equals(other.peerTags) && spanKinds.equals(other.spanKinds)
                && ignoreResources.equals(other.ignoreResources);
    }
}
