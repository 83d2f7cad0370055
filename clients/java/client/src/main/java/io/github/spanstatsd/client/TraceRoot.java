package io.github.spanstatsd.client;

/** Whether a span is the root of its trace. */
public enum TraceRoot {
    NOT_SET,
    TRUE,
    FALSE
}
