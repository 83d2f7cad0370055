// Formats numbers and labels. All functions are pure.

// Control characters, format characters and unassigned code points. They are invisible, and some reverse the direction
// of the adjacent text.
const unseen = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Returns a text with invisible characters replaced by escapes, like package sanitize. */
export const shown = (text) => text.replace(unseen, (c) => {
  const code = c.codePointAt(0), hex = (digits) => code.toString(16).padStart(digits, "0");
  return code < 0x80 ? `\\x${hex(2)}` : code > 0xffff ? `\\U${hex(8)}` : `\\u${hex(4)}`;
});

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Formats an integer with thousands separators: 1,234,567. */
export const count = (n) => whole.format(n);

/** Formats a rate; null means that the rate is unknown. */
export function rate(perSecond) {
  if (perSecond === null) return "–";
  const size = Math.abs(perSecond);
  return (size > 0 && size < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))) + "/s";
}

/** Formats a share of 1 as a percentage. A small share is never shown as 0. */
export function percent(share) {
  const p = share * 100;
  if (p === 0) return "0\u00a0%";
  if (p < 0.1) return "<\u00a00.1\u00a0%";
  return (p < 10 ? p.toFixed(1) : p.toFixed(0)) + "\u00a0%";
}

export function bytes(n) {
  if (n < 1024) return `${n}\u00a0B`;
  if (n < 1 << 20) return `${(n / 1024).toFixed(1)}\u00a0KiB`;
  return `${(n / (1 << 20)).toFixed(1)}\u00a0MiB`;
}

const three = (v) => (v < 10 ? v.toFixed(2) : v < 100 ? v.toFixed(1) : v.toFixed(0));

/** Formats seconds with three significant digits. */
export function latency(s) {
  if (s === 0) return "0";
  if (s < 1e-6) return `${(s * 1e9).toFixed(0)}\u00a0ns`;
  if (s < 1e-3) return `${three(s * 1e6)}\u00a0µs`;
  if (s < 1) return `${three(s * 1e3)}\u00a0ms`;
  return `${three(s)}\u00a0s`;
}

/** Formats a duration in its two largest units. */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const [m, h, d] = [Math.floor(s / 60), Math.floor(s / 3600), Math.floor(s / 86400)];
  if (d) return `${d}\u00a0d ${h % 24}\u00a0h`;
  if (h) return `${h}\u00a0h ${m % 60}\u00a0min`;
  if (m) return `${m}\u00a0min ${s % 60}\u00a0s`;
  return `${s}\u00a0s`;
}

export const clock = (time) => new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
