package io.github.spanstatsd.opentelemetry;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.regex.Pattern;

/**
 * Conversion between numbers and text, with the same results as in the daemon. All of it is rarely
 * used.
 */
final class Numbers {
    private static final Pattern NUMBER = Pattern.compile("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?");

    private Numbers() {}

    /**
     * Formats a number as in JSON: with the minimum number of digits, and with an exponent only if
     * it is very large or very small.
     */
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

    /**
     * Returns the decimal number with the fewest digits that is parsed to this value. Before Java
     * 19, Double.toString can return more digits.
     */
    private static BigDecimal shortest(double size) {
        BigDecimal exact = new BigDecimal(size);
        for (int digits = 1; ; digits++) {
            BigDecimal rounded = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN));
            if (rounded.doubleValue() == size) {
                return rounded;
            }
        }
    }

    /** Parses a status code; 0 if the text is not a whole number. */
    static int status(String text) {
        if (!NUMBER.matcher(text).matches()) {
            return 0;
        }
        double number = Double.parseDouble(text);
        return number == Math.rint(number) && number >= 0 && number <= Integer.MAX_VALUE ? (int) number : 0;
    }

    /** Returns the shortest form of a decimal number below 2^32; empty if the text is not one. */
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
