package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import java.util.function.BiConsumer;

/**
 * The values of a span's attributes from which labels are derived. It is reused, by one thread at a
 * time, and keeps no reference to a span after clear. The first of duplicate attributes counts, as
 * in OpenTelemetry's own decoders.
 */
final class SpanValues implements BiConsumer<AttributeKey<?>, Object> {
    private final Object[] values = new Object[Attribute.COUNT];
    private long present; // one bit per attribute that the span has

    /** Reads a span's attributes in one pass. Most of them are not used for labels. */
    void read(Attributes attributes) {
        attributes.forEach(this);
    }

    @Override
    public void accept(AttributeKey<?> key, Object value) {
        int number = Attribute.numberOf(key.getKey());
        if (number != Attribute.NONE && (present & 1L << number) == 0) {
            present |= 1L << number;
            values[number] = value;
        }
    }

    /** Removes all values. */
    void clear() {
        for (long left = present; left != 0; left &= left - 1) {
            values[Long.numberOfTrailingZeros(left)] = null;
        }
        present = 0;
    }

    /** Returns the value of an attribute, or null. */
    Object of(Attribute attribute) {
        return values[attribute.ordinal()];
    }

    /** Returns the value of the first of two attributes that the span has. */
    Object of(Attribute attribute, Attribute older) {
        Object value = of(attribute);
        return value != null ? value : of(older);
    }

    /**
     * Returns an attribute's value as text, whatever its type. It is empty if the attribute is
     * missing or a list.
     */
    String text(Attribute attribute) {
        return textOf(of(attribute));
    }

    String text(Attribute attribute, Attribute older) {
        return textOf(of(attribute, older));
    }

    static String textOf(Object value) {
        if (value instanceof String) {
            return (String) value;
        }
        if (value instanceof Double) {
            return Numbers.text((double) value);
        }
        return value instanceof Long || value instanceof Boolean ? value.toString() : "";
    }
}
