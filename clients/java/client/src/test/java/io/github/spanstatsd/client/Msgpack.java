package io.github.spanstatsd.client;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A simple msgpack implementation to test the library's against. */
final class Msgpack {
    private Msgpack() {}

    /**
     * Reads one value: null, Boolean, Long (unsigned beyond 2^63 as BigInteger), Double, String,
     * byte[], List or Map.
     */
    static Object read(ByteBuffer in) {
        int lead = in.get() & 0xff;
        if (lead < 0x80) return (long) lead;
        if (lead < 0x90) return map(in, lead & 15);
        if (lead < 0xa0) return list(in, lead & 15);
        if (lead < 0xc0) return text(in, lead & 31);
        if (lead >= 0xe0) return (long) (byte) lead;
        switch (lead) {
            case 0xc0: return null;
            case 0xc2: return false;
            case 0xc3: return true;
            case 0xc4: return bytes(in, in.get() & 0xff);
            case 0xc5: return bytes(in, in.getShort() & 0xffff);
            case 0xc6: return bytes(in, in.getInt());
            case 0xcb: return in.getDouble();
            case 0xcc: return in.get() & 0xffL;
            case 0xcd: return in.getShort() & 0xffffL;
            case 0xce: return in.getInt() & 0xffffffffL;
            case 0xcf:
                long value = in.getLong();
                return value >= 0 ? (Object) value : new BigInteger(Long.toUnsignedString(value));
            case 0xd0: return (long) in.get();
            case 0xd1: return (long) in.getShort();
            case 0xd2: return (long) in.getInt();
            case 0xd3: return in.getLong();
            case 0xd9: return text(in, in.get() & 0xff);
            case 0xda: return text(in, in.getShort() & 0xffff);
            case 0xdb: return text(in, in.getInt());
            case 0xdc: return list(in, in.getShort() & 0xffff);
            case 0xdd: return list(in, in.getInt());
            case 0xde: return map(in, in.getShort() & 0xffff);
            default: throw new IllegalArgumentException("lead byte " + lead);
        }
    }

    private static byte[] bytes(ByteBuffer in, int length) {
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    private static String text(ByteBuffer in, int length) {
        return new String(bytes(in, length), StandardCharsets.UTF_8);
    }

    private static List<Object> list(ByteBuffer in, int count) {
        List<Object> list = new ArrayList<>();
        for (int i = 0; i < count; i++) list.add(read(in));
        return list;
    }

    private static Map<String, Object> map(ByteBuffer in, int count) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) map.put((String) read(in), read(in));
        return map;
    }

    /** Returns the complete frame of a message. */
    static ByteBuffer frame(int type, Object body) {
        byte[] message = write(List.of(type, body));
        return ByteBuffer.allocate(4 + message.length).putInt(message.length).put(message).flip();
    }

    /**
     * Writes the values that {@link #read} returns, in their shortest forms. Integers can have any
     * class.
     */
    static byte[] write(Object value) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            write(new DataOutputStream(bytes), value);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private static void write(DataOutputStream out, Object value) throws IOException {
        if (value == null) {
            out.write(0xc0);
        } else if (value instanceof Boolean) {
            out.write((Boolean) value ? 0xc3 : 0xc2);
        } else if (value instanceof Double) {
            out.write(0xcb);
            out.writeDouble((Double) value);
        } else if (value instanceof Number) {
            number(out, ((Number) value).longValue());
        } else if (value instanceof String) {
            byte[] text = ((String) value).getBytes(StandardCharsets.UTF_8);
            header(out, text.length, text.length < 32 ? 0xa0 : -1, 0xd9);
            out.write(text);
        } else if (value instanceof byte[]) {
            header(out, ((byte[]) value).length, -1, 0xc4);
            out.write((byte[]) value);
        } else if (value instanceof List) {
            List<?> list = (List<?>) value;
            header(out, list.size(), list.size() < 16 ? 0x90 : -1, 0xdb);
            for (Object element : list) write(out, element);
        } else {
            Map<?, ?> map = (Map<?, ?>) value;
            header(out, map.size(), map.size() < 16 ? 0x80 : -1, 0xdd);
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                write(out, entry.getKey());
                write(out, entry.getValue());
            }
        }
    }

    /**
     * Writes a count in the lead byte, or in 1, 2 or 4 bytes after one of three consecutive lead
     * bytes.
     */
    private static void header(DataOutputStream out, int count, int fix, int lead8) throws IOException {
        if (fix >= 0) {
            out.write(fix | count);
        } else if (count < 0x100 && lead8 != 0xdb && lead8 != 0xdd) {
            out.write(lead8);
            out.write(count);
        } else if (count < 0x10000) {
            out.write(lead8 + 1);
            out.writeShort(count);
        } else {
            out.write(lead8 + 2);
            out.writeInt(count);
        }
    }

    private static void number(DataOutputStream out, long v) throws IOException {
        if (v >= 0 && v < 0x80 || v < 0 && v >= -32) {
            out.write((int) v);
        } else if (v >= 0 && v < 0x100) {
            out.write(0xcc);
            out.write((int) v);
        } else if (v >= 0 && v < 0x10000) {
            out.write(0xcd);
            out.writeShort((int) v);
        } else if (v >= 0 && v < 1L << 32) {
            out.write(0xce);
            out.writeInt((int) v);
        } else if (v >= 0) {
            out.write(0xcf);
            out.writeLong(v);
        } else if (v >= Byte.MIN_VALUE) {
            out.write(0xd0);
            out.write((int) v);
        } else if (v >= Short.MIN_VALUE) {
            out.write(0xd1);
            out.writeShort((int) v);
        } else if (v >= Integer.MIN_VALUE) {
            out.write(0xd2);
            out.writeInt((int) v);
        } else {
            out.write(0xd3);
            out.writeLong(v);
        }
    }
}
