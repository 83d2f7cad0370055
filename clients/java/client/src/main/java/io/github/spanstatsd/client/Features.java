package io.github.spanstatsd.client;

import java.util.List;

/** What the agent behind the daemon wants counted. Immutable. */
public final class Features {
    /** Before a daemon has said anything statistics are wanted. */
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

    /** Whether statistics are wanted at all. While they are not, every span is refused. */
    public boolean stats() {
        return stats;
    }

    /** The names of the span tags that make up a key's peer tags. */
    public List<String> peerTags() {
        return peerTags;
    }

    /** The kinds whose spans count even if they are not top-level. */
    public List<String> spanKinds() {
        return spanKinds;
    }

    /** Regular expressions: a trace whose root span's resource matches is not to be counted. */
    public List<String> ignoreResources() {
        return ignoreResources;
    }

    /** The agent's version of obfuscation. */
    public long obfuscationVersion() {
        return obfuscationVersion;
    }

    boolean same(Features other) {
        return stats == other.stats && obfuscationVersion == other.obfuscationVersion
                && peerTags.equals(other.peerTags) && spanKinds.equals(other.spanKinds)
                && ignoreResources.equals(other.ignoreResources);
    }
}
