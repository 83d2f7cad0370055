package io.github.spanstatsd.opentelemetry;

import com.google.gson.annotations.SerializedName;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.data.StatusData;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * Spans from a file of vectors, including spans that no SDK creates, with a duplicate attribute.
 */
final class MadeSpan {
    String name;
    String service;
    String span;
    String kind;
    boolean root;
    String status;
    List<String[]> attributes;
    Map<String, Object> labels;

    @SerializedName("labels_as_sent")
    Map<String, Object> labelsAsSent; // null if they are the same

    int flags;

    SpanData data() {
        SpanContext parent = root
                ? SpanContext.getInvalid()
                : SpanContext.create("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", TraceFlags.getDefault(), TraceState.getDefault());
        Map<String, Object> said = Map.of(
                "getName", span, "getKind", SpanKind.valueOf(kind.toUpperCase(Locale.ROOT)), "getAttributes", made(), "getStatus", code(),
                "getParentSpanContext", parent);
        return (SpanData) Proxy.newProxyInstance(
                MadeSpan.class.getClassLoader(), new Class<?>[] {SpanData.class}, (proxy, method, args) -> said.get(method.getName()));
    }

    private StatusData code() {
        return status.equals("ok") ? StatusData.ok() : status.equals("error") ? StatusData.error() : StatusData.unset();
    }

    private Attributes made() {
        return (Attributes) Proxy.newProxyInstance(
                MadeSpan.class.getClassLoader(), new Class<?>[] {Attributes.class}, (proxy, method, args) -> {
                    @SuppressWarnings("unchecked")
                    BiConsumer<AttributeKey<?>, Object> action = (BiConsumer<AttributeKey<?>, Object>) args[0];
                    for (String[] attribute : attributes) {
                        give(action, attribute[0], attribute[1], attribute[2]);
                    }
                    return null;
                });
    }

    private static void give(BiConsumer<AttributeKey<?>, Object> action, String name, String type, String value) {
        switch (type) {
            case "string":
                action.accept(AttributeKey.stringKey(name), value);
                break;
            case "int":
                action.accept(AttributeKey.longKey(name), Long.valueOf(value));
                break;
            case "double":
                action.accept(AttributeKey.doubleKey(name), Double.valueOf(value));
                break;
            case "bool":
                action.accept(AttributeKey.booleanKey(name), Boolean.valueOf(value));
                break;
            case "list":
                action.accept(AttributeKey.stringArrayKey(name), List.of("one"));
                break;
            default:
                throw new AssertionError(type);
        }
    }
}
