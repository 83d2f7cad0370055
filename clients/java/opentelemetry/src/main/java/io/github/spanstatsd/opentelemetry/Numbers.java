package io.github.spanstatsd.opentelemetry;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.regex.Pattern;

/** Numbers as text, and texts as numbers, as the daemon has them. All of this is rare. */
final class Numbers {
    private static final Pattern NUMBER = Pattern.compile("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?");

    private Numbers() {}

    /** A number as in JSON: with the fewest digits that say it, and no exponent where it is neither huge nor tiny. */
    static String text(double number) {
        if (Double.isNaN(number)) {
            return "NaN";
        }
        if (Double.isInfinite(number)) {
            return number > 0 ? "+Inf" : "-Inf";
        }
        String sign = 1 / number < 0 || number < 0 ? "-" : "";
        double size = Math.abs(number);
        if (size == 0) {
            return sign + "0";
        }
        BigDecimal shortest = shortest(size).stripTrailingZeros();
        if (size >= 1e-6 && size < 1e21) {
            return sign + shortest.toPlainString();
        }
        String digits = shortest.unscaledValue().toString();
        int exponent = digits.length() - 1 - shortest.scale();
        String fraction = digits.length() > 1 ? "." + digits.substring(1) : "";
        return sign + digits.charAt(0) + fraction + "e" + (exponent < 0 ? "-" : "+") + Math.abs(exponent);
    }

    /** The decimal number of the fewest digits that is read as this one; Double.toString has more of them before Java 19. */
    private static BigDecimal shortest(double size) {
        BigDecimal exact = new BigDecimal(size);
        for (int digits = 1; ; digits++) {
            BigDecimal rounded = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN));
            if (rounded.doubleValue() == size) {
                return rounded;
            }
        }
    }

    /** The status of a response that a text says, 0 where it is none: a whole number. */
    static int status(String text) {
        if (!NUMBER.matcher(text).matches()) {
            return 0;
        }
        double number = Double.parseDouble(text);
        return number == Math.rint(number) && number >= 0 && number <= Integer.MAX_VALUE ? (int) number : 0;
    }

    /** The number below 2^32 that digits say, as it is written shortest; empty where they say none. */
    static String digits(String text) {
        long number = 0;
        for (int i = 0; i < text.length(); i++) {
            int digit = text.charAt(i) - '0';
            if (digit < 0 || digit > 9 || (number = 10 * number + digit) >= 1L << 32) {
                return "";
            }
        }
        return text.isEmpty() ? "" : Long.toString(number);
    }
}
