// The only way this page writes to itself: elements are made once and kept, and
// what changes is their text. Labels come from tracers, so they are text nodes
// and never markup; each stands in a bdi, so that none can turn its line around,
// and whatever is written here is shown, so that none hides a part of itself.

import { shown } from "./format.js";

export const byId = (id) => document.getElementById(id);

const svgNames = new Set(["svg", "g", "path", "line", "rect", "text", "title"]);

/** Makes an element with attributes and children. */
export function make(name, attributes = {}, ...children) {
  const e = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  set(e, attributes);
  e.append(...children);
  return e;
}

/** Sets attributes that have changed. */
export function set(e, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    const text = shown(String(value));
    if (e.getAttribute(key) !== text) e.setAttribute(key, text);
  }
  return e;
}

/** Sets a text that has changed, so that a selection in it survives. */
export function write(e, text) {
  const now = shown(text);
  if (e.textContent !== now) e.textContent = now;
  return e;
}

/** Writes a sentence that names flags, none of which is cut at its hyphens. */
export function prose(e, text) {
  if (e.textContent === text) return;
  e.replaceChildren(...text.split(/(--[a-z-]+)/).map((part, i) => (i % 2 ? make("span", { class: "flag" }, part) : part)));
}

/**
 * Shows one figure of /status: path says which, so that a test can hold the
 * page against the answer.
 */
export function figure(e, path, text) {
  set(e, { "data-figure": path });
  return write(e, text);
}

/**
 * Keeps one row of a table body for each item, in order. cells makes a row's
 * cells once; fill writes an item into them at every look.
 */
export function rows(body, items, cells, fill) {
  while (body.rows.length > items.length) body.lastElementChild.remove();
  items.forEach((item, i) => {
    let row = body.rows[i];
    if (!row) {
      row = make("tr", {}, ...cells());
      body.append(row);
    }
    fill(item, row.cells, i, row);
  });
}

/** A cell; on a phone its label stands before it. */
export const cell = (name, kind = "") => make("td", { ...(name && { "data-label": name }), ...(kind && { class: kind }) });
