// What chart and table share: the data, words for numbers, and safe ways to put text on the page.
// Nothing here or in the other files parses HTML: elements are created one by one and names become text nodes.

const report = JSON.parse(document.getElementById("data").textContent);

// Non-finite numbers are strings in JSON ("NaN", "Infinity"); Number() reads them.
function toNumber(value) {
  return value === null || value === undefined ? null : Number(value);
}

const NUMBERS = [
  "order", "in_context_error", "floor", "local_error", "local_floor", "floor_ratio", "influence",
  "max_abs_reference", "max_abs_target", "nonfinite_target",
];

function readRows() {
  const byValue = new Map();
  const byNode = new Map();
  const known = new Set(report.layers.rows.map((row) => row.value));
  report.verdict.culprits.forEach((culprit, index) => {
    const blame = { rank: index + 1, op_type: culprit.op_type, reason: culprit.reason };
    // An op of another file is marked where it shows first in the user's model.
    const value = known.has(culprit.value) ? culprit.value : culprit.shown_at || culprit.value;
    if (value !== culprit.value) blame.reason = `${culprit.op_type} ${culprit.node}: ${culprit.reason}`;
    if (!byValue.has(value)) byValue.set(value, blame);
    if (!byNode.has(culprit.node)) byNode.set(culprit.node, blame);
  });
  const rows = report.layers.rows.map((source) => {
    const row = { ...source };
    for (const key of NUMBERS) row[key] = toNumber(source[key]);
    // The node is asked only where the blamed value itself has no row.
    const ofNode = byNode.get(row.node);
    const byItsNode = ofNode && !known.has(report.verdict.culprits[ofNode.rank - 1].value) ? ofNode : undefined;
    row.blame = byValue.get(row.value) || byItsNode || null;
    row.bad = row.nonfinite_target > 0 || (row.in_context_error !== null && !Number.isFinite(row.in_context_error));
    return row;
  });
  return rows.sort((left, right) => left.order - right.order);
}

function isAboveFloor(row) {
  return (
    row.bad ||
    (row.floor_ratio !== null && row.floor_ratio > 1) ||
    (row.in_context_error !== null && row.floor !== null && row.in_context_error > row.floor)
  );
}

// The same words as values/text.py has for numbers, which a test compares.
function magnitude(value, digits = 3) {
  if (value === null) return "-";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Inf" : "-Inf";
  const short = Number(value.toPrecision(digits));
  const size = Math.abs(short);
  if (size >= 1e6 && size < 1e12) {
    const [unit, word] = size < 1e9 ? [1e6, "million"] : [1e9, "billion"];
    return `${Number((value / unit).toPrecision(digits))} ${word}`;
  }
  if (size >= 10 ** Math.min(digits, 6) && size < 1e6) return Math.round(value).toLocaleString("en-US");
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(short);
  return short.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

function times(value) {
  if (value === null || !Number.isFinite(value)) return magnitude(value);
  if (Math.abs(value) < 999.5) return `${magnitude(value)}×`;
  return magnitude(Number(value.toPrecision(2)), 2).replace(/(?<=illion)$/, " ") + "×";
}

function decibel(error) {
  if (error === null) return "-";
  if (error === 0) return "exact";
  return Number.isFinite(error) ? `${(-20 * Math.log10(error)).toFixed(1)} dB` : magnitude(error);
}

// Control, format and surrogate characters become visible escapes: a name must not reorder or hide text.
function visible(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
    return short || `\\u{${character.codePointAt(0).toString(16)}}`;
  });
}

// Cut in the middle: module path first and op last both matter.
function shorten(text, width) {
  if (text.length <= width) return text;
  const tail = Math.floor(width / 2);
  return `${text.slice(0, width - tail - 1)}…${text.slice(text.length - tail)}`;
}

// element("td", { class: "number" }, "text", otherElement): children that are strings become text nodes.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
  return made;
}

function svgElement(tag, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
}

function nameElement(text, width) {
  return element("code", { class: "name", title: visible(text) }, shorten(text, width));
}

function shapeText(row) {
  return row.shape.length ? `[${row.shape.join(", ")}]` : "scalar";
}
