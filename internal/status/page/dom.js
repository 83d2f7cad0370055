// Creates and updates elements; no other module modifies the page directly. Elements are created once, and later only
// their texts change. Labels come from clients, so they are written as text nodes and never as HTML. Each label is in a
// bdi element, so that it can't change the direction of the adjacent text, and its invisible characters are escaped.

import { shown } from "./format.js";

export const byId = (id) => document.getElementById(id);

const svgNames = new Set(["svg", "g", "path", "line", "rect", "text", "title"]);

/** Returns a new element with attributes and children. */
export function make(name, attributes = {}, ...children) {
  const e = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  set(e, attributes);
  e.append(...children);
  return e;
}

/** Sets attributes of an element. It writes only those with a different value. */
export function set(e, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    const text = shown(String(value));
    if (e.getAttribute(key) !== text) e.setAttribute(key, text);
  }
  return e;
}

/** Sets the text of an element. It changes only a different text, so that a selection is kept. */
export function write(e, text) {
  const now = shown(text);
  if (e.textContent !== now) e.textContent = now;
  return e;
}

/** Sets a text with flags. A line is never broken within a flag. */
export function prose(e, text) {
  if (e.textContent === text) return;
  e.replaceChildren(...text.split(/(--[a-z-]+)/).map((part, i) => (i % 2 ? make("span", { class: "flag" }, part) : part)));
}

/** Sets the text of an element that shows a number of /status. Tests use path to compare the text with the status. */
export function figure(e, path, text) {
  set(e, { "data-figure": path });
  return write(e, text);
}

/**
 * Updates a table body to one row per item. cells returns the cells of a new row; fill writes an item into the cells of
 * its row.
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

/** Returns a table cell. On a phone its label is shown before it. */
export const cell = (name, kind = "") => make("td", { ...(name && { "data-label": name }), ...(kind && { class: kind }) });
