package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import java.util.function.BiConsumer;

/**
 * The values of one span's attributes that labels are made of. It is used again for the next span,
 * by one thread at a time, and refers to nothing of a span in between. Of what comes twice the first
 * counts, as in OpenTelemetry's own decoders.
 */
final class SpanValues implements BiConsumer<AttributeKey<?>, Object> {
    private final Object[] values = new Object[Attribute.COUNT];
    private long present; // a bit for each attribute that the span has

    /** Reads a span's attributes, in one pass: most of them are none of ours. */
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

    /** Lets go of what was read. */
    void clear() {
        for (long left = present; left != 0; left &= left - 1) {
            values[Long.numberOfTrailingZeros(left)] = null;
        }
        present = 0;
    }

    /** The value of an attribute, null where the span has none. */
    Object of(Attribute attribute) {
        return values[attribute.ordinal()];
    }

    /** The value of the first of two attributes that the span has. */
    Object of(Attribute attribute, Attribute older) {
        Object value = of(attribute);
        return value != null ? value : of(older);
    }

    /** An attribute's value as text, whatever it was set as. It is empty of one that is not there, and of a list. */
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
