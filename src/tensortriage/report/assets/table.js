// The ops as a table: sorted by influence at first, by any column on a click; filters search all rows, not the shown ones.

const FIRST_ROWS = 100;
const COLUMNS = [
  { field: "order", title: "#", hint: "position in topological order", number: true, show: (row) => String(row.order) },
  { field: "op_type", title: "Op", show: (row) => opCell(row) },
  { field: "node", title: "Node", show: (row) => nodeCell(row) },
  { field: "in_context_error", title: "In context", hint: "relative RMS error in the target's own run", number: true },
  { field: "floor", title: "Floor", hint: "noise floor of the error in context", number: true },
  { field: "local_error", title: "Local", hint: "relative RMS error of the op with correct inputs", number: true },
  { field: "floor_ratio", title: "× floor", hint: "local error over its noise floor", number: true, show: (row) => times(row.floor_ratio) },
  { field: "influence", title: "Influence", hint: "relative RMS error at the outputs from this op's local error alone", number: true },
  { field: "nonfinite_target", title: "NaN/Inf", hint: "elements the reference does not have", number: true, show: (row) => row.nonfinite_target ? String(row.nonfinite_target) : "-" },
];

// A column in which nothing was measured would only take room.
function measured(rows) {
  return COLUMNS.filter(({ field, number }) => !number || field === "order" || rows.some((row) => row[field] !== null && row[field] !== 0));
}

const CSV_FIELDS = [
  "order", "op_type", "node", "value", "scope", "dtype", "shape", "in_context_error", "floor", "local_error",
  "local_floor", "floor_ratio", "influence", "max_abs_reference", "max_abs_target", "nonfinite_target", "note",
];
const KINDS = {
  all: ["all ops", () => true],
  culprits: ["culprits", (row) => row.blame !== null],
  above: ["above the noise floor", isAboveFloor],
  nonfinite: ["NaN or Inf", (row) => row.bad],
};

function opCell(row) {
  const cell = element("span", { class: "op" }, shorten(row.op_type, 22));
  return row.blame ? element("span", {}, cell, element("span", { class: "flag" }, "culprit")) : cell;
}

function nodeCell(row) {
  return nameElement(row.node, 42);
}

// Missing values come last in either direction. NaN counts as the largest number, and so does the influence of a culprit
// in which it could not be measured.
function sortKey(row, field) {
  if (field === "influence" && row.blame && row.influence === null) return Infinity;
  return typeof row[field] === "number" && Number.isNaN(row[field]) ? Infinity : row[field];
}

function compareBy(field, direction) {
  return (left, right) => {
    const [a, b] = [sortKey(left, field), sortKey(right, field)];
    if (a === b) return left.order - right.order;
    if (a === null) return 1;
    if (b === null) return -1;
    return (a < b ? -1 : 1) * direction;
  };
}

class OpsTable {
  constructor(host, tools, count, rows, onSelect) {
    Object.assign(this, { host, count, rows, onSelect });
    this.columns = measured(rows);
    this.limit = FIRST_ROWS;
    this.sort = this.firstSort();
    this.filter = { text: "", op: "", kind: "all" };
    this.selected = null;
    this.maxInfluence = Math.max(0, ...rows.map((row) => row.influence).filter(Number.isFinite));
    this.buildTools(tools);
    this.buildTable();
    this.update();
  }

  // By influence; where none was measured, by the best evidence there is.
  firstSort() {
    const field = ["influence", "floor_ratio", "local_error", "in_context_error"].find((candidate) =>
      this.rows.some((row) => row[candidate] !== null));
    return field ? { field, direction: -1 } : { field: "order", direction: 1 };
  }

  buildTools(tools) {
    const search = element("input", { type: "search", placeholder: "Filter names", "aria-label": "Filter by name, tensor, scope or note" });
    search.addEventListener("input", () => this.refine({ text: search.value.toLowerCase() }));
    const counts = new Map();
    for (const row of this.rows) counts.set(row.op_type, (counts.get(row.op_type) || 0) + 1);
    const ops = element("select", { "aria-label": "Op type" }, element("option", { value: "" }, "all op types"));
    for (const [op, times_] of [...counts].sort((left, right) => right[1] - left[1])) {
      const option = element("option", {}, `${shorten(op, 32)} (${times_})`);
      option.value = op;
      ops.append(option);
    }
    ops.addEventListener("change", () => this.refine({ op: ops.value }));
    const kinds = element("select", { "aria-label": "Which ops" });
    for (const [key, [title, test]] of Object.entries(KINDS)) {
      const number = this.rows.filter(test).length;
      if (key === "all" || number) kinds.append(element("option", { value: key }, `${title} (${number})`));
    }
    kinds.addEventListener("change", () => this.refine({ kind: kinds.value }));
    const csv = element("button", { type: "button", title: "Save the rows that pass the filters" }, "CSV");
    csv.addEventListener("click", () => this.saveCsv());
    tools.append(search, kinds, ops, csv);
  }

  buildTable() {
    const head = element("tr");
    this.headers = this.columns.map((column) => {
      const button = element("button", { type: "button", title: column.hint || `sort by ${column.title}` }, column.title);
      button.addEventListener("click", () => this.sortBy(column));
      const cell = element("th", { scope: "col", class: column.number ? "number" : "" }, button);
      head.append(cell);
      return cell;
    });
    this.body = element("tbody");
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      if (line) this.onSelect(this.visibleRows[line.rowIndex - 1]);
    });
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.more = element("button", { type: "button", class: "more", hidden: "" });
    this.more.addEventListener("click", () => { this.limit = Infinity; this.fill(); });
    this.host.append(element("table", { class: "ops" }, element("thead", {}, head), this.body), this.more);
  }

  refine(change) {
    Object.assign(this.filter, change);
    this.limit = FIRST_ROWS;
    this.update();
  }

  sortBy(column) {
    const again = this.sort.field === column.field;
    const first = column.number && column.field !== "order" ? -1 : 1;
    this.sort = { field: column.field, direction: again ? -this.sort.direction : first };
    this.update();
  }

  update() {
    const { text, op, kind } = this.filter;
    const test = KINDS[kind][1];
    this.visibleRows = this.rows
      .filter((row) => test(row) && (!op || row.op_type === op) && (!text || this.haystack(row).includes(text)))
      .sort(compareBy(this.sort.field, this.sort.direction));
    this.headers.forEach((cell, index) => {
      const sorted = this.columns[index].field === this.sort.field;
      cell.setAttribute("aria-sort", sorted ? (this.sort.direction > 0 ? "ascending" : "descending") : "none");
    });
    const total = this.rows.length;
    this.count.textContent = this.visibleRows.length === total ? String(total) : `${this.visibleRows.length} of ${total}`;
    this.fill();
  }

  haystack(row) {
    row.haystack ??= `${row.node}\n${row.value}\n${row.op_type}\n${row.scope}\n${row.source}\n${row.note}`.toLowerCase();
    return row.haystack;
  }

  fill() {
    this.lines = new Map();
    const lines = this.visibleRows.slice(0, this.limit).map((row) => this.line(row));
    this.body.replaceChildren(...lines);
    this.more.hidden = this.visibleRows.length <= this.limit;
    this.more.textContent = `Show all ${this.visibleRows.length} ops`;
    this.mark();
  }

  line(row) {
    const line = element("tr", { tabindex: "-1" });
    for (const column of this.columns) {
      const cell = element("td", { class: column.number ? "number" : "" }, column.show ? column.show(row) : magnitude(row[column.field]));
      if (column.field === "influence" && row.influence > 0 && this.maxInfluence > 0) {
        cell.classList.add("bar");
        cell.style.setProperty("--share", `${(100 * Math.min(1, row.influence / this.maxInfluence)).toFixed(1)}%`);
      }
      line.append(cell);
    }
    this.lines.set(row, line);
    return line;
  }

  // One row is in the tab order: the selected one, else the first.
  mark() {
    for (const line of this.body.querySelectorAll("[aria-current], [tabindex='0']")) {
      line.removeAttribute("aria-current");
      line.tabIndex = -1;
    }
    const line = this.lines.get(this.selected);
    if (line) line.setAttribute("aria-current", "true");
    const first = line || this.body.firstElementChild;
    if (first) first.tabIndex = 0;
  }

  select(row, { reveal }) {
    this.selected = row;
    const place = this.visibleRows.indexOf(row);
    if (place >= this.limit) { this.limit = place + FIRST_ROWS; this.fill(); }
    this.mark();
    const line = this.lines.get(row);
    if (!reveal || !line) return;
    // Within the table's own scroll box only: the page itself must not jump away from the chart.
    const head = this.host.querySelector("thead").offsetHeight;
    const y = line.offsetTop;
    if (y - head < this.host.scrollTop || y + line.offsetHeight > this.host.scrollTop + this.host.clientHeight) {
      this.host.scrollTop = y - head - this.host.clientHeight / 3;
    }
  }

  key(event) {
    const line = event.target.closest("tr");
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    const lines = this.body.children;
    const end = { Home: 0, End: lines.length - 1 }[event.key];
    const next = step ? line[step] : lines[end];
    if (next) {
      next.focus();
      this.onSelect(this.visibleRows[next.rowIndex - 1]);
    } else if (event.key === "Enter" || event.key === " ") this.onSelect(this.visibleRows[line.rowIndex - 1]);
    else if (!step) return;
    event.preventDefault();
  }

  csv() {
    const quote = (value) => {
      if (value === null) return "";
      if (typeof value === "number") return String(value);
      const text = Array.isArray(value) ? value.join("x") : value;
      // A leading = + - @ would be a formula to a spreadsheet.
      return `"${(/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replaceAll('"', '""')}"`;
    };
    const lines = this.visibleRows.map((row) => CSV_FIELDS.map((field) => quote(row[field])).join(","));
    return `${CSV_FIELDS.join(",")}\r\n${lines.join("\r\n")}\r\n`;
  }

  saveCsv() {
    const address = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv" }));
    const link = element("a", { href: address, download: "ops.csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }
}
