// Error against depth: one mark per tensor and series, on a logarithmic axis, over the band of the noise floor.
// Each series is a single SVG path (dots are zero-length strokes with caps), so thousands of tensors stay quick.

const MARGIN = { left: 84, right: 18, top: 30, bottom: 44 };
const HEIGHT = 360;
const LANE = 30;
const SERIES = [
  { key: "context", field: "in_context_error", title: "in context", hint: "error in the target's own full run: inherited + new" },
  { key: "local", field: "local_error", title: "local", hint: "error of the op alone, fed with correct inputs: born here" },
  { key: "floor", field: "floor", title: "noise floor", hint: "error a healthy engine of this format may show" },
];

class DepthChart {
  constructor(host, tools, rows, onSelect) {
    this.host = host;
    this.rows = rows;
    this.onSelect = onSelect;
    this.full = [rows[0].order, Math.max(rows[rows.length - 1].order, rows[0].order + 1)];
    this.range = this.full;
    this.hidden = new Set();
    this.unit = "rms";
    this.cursor = null;
    this.selected = null;
    this.buildTools(tools);
    this.buildFrame();
    new ResizeObserver(() => this.draw()).observe(host);
  }

  buildTools(tools) {
    for (const series of SERIES.filter((s) => this.rows.some((row) => row[s.field] !== null))) {
      const button = element("button", { type: "button", class: "legend", "aria-pressed": "true", title: series.hint },
        element("i", { class: `key key-${series.key}` }), series.title);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(series.key)) this.hidden.add(series.key);
        button.setAttribute("aria-pressed", String(!this.hidden.has(series.key)));
        this.draw();
      });
      tools.append(button);
    }
    const unit = element("select", { "aria-label": "Unit of the error axis" },
      element("option", { value: "rms" }, "relative RMS error"), element("option", { value: "db" }, "SQNR in dB"));
    unit.addEventListener("change", () => { this.unit = unit.value; this.draw(); });
    this.resetButton = element("button", { type: "button", hidden: "" }, "Reset zoom");
    this.resetButton.addEventListener("click", () => this.zoom(this.full));
    tools.append(unit, this.resetButton);
  }

  buildFrame() {
    this.svg = svgElement("svg", { height: HEIGHT, tabindex: "0", role: "application" }, this.host);
    this.svg.setAttribute("aria-label",
      `Error against depth, ${this.rows.length} tensors. Arrow keys move, Enter selects, plus and minus zoom, Escape resets.`);
    this.tip = element("div", { class: "tip", hidden: "", role: "status" });
    this.host.append(this.tip);
    this.svg.addEventListener("pointermove", (event) => this.move(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.svg.addEventListener("pointerdown", (event) => this.startDrag(event));
    this.svg.addEventListener("pointerup", (event) => this.endDrag(event));
    this.svg.addEventListener("dblclick", () => this.zoom(this.full));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => this.point(null));
  }

  // ---- scales

  layout() {
    this.width = Math.max(320, this.host.clientWidth);
    this.shown = this.rows.filter((row) => row.order >= this.range[0] && row.order <= this.range[1]);
    const positive = [];
    for (const row of this.shown) {
      for (const { field } of SERIES) if (row[field] > 0 && Number.isFinite(row[field])) positive.push(row[field]);
    }
    this.topLane = this.shown.some((row) => row.bad) ? LANE : 0;
    this.bottomLane = this.shown.some((row) => row.in_context_error === 0 || row.local_error === 0) ? LANE : 0;
    const largest = positive.reduce((a, b) => Math.max(a, b), 1e-7);
    const smallest = positive.reduce((a, b) => Math.min(a, b), largest);
    this.high = Math.ceil(Math.log10(largest) + 0.05);
    // At most 16 decades: one denormal must not flatten the rest.
    this.low = Math.max(Math.min(Math.floor(Math.log10(smallest)), this.high - 3), this.high - 16);
    this.top = MARGIN.top + this.topLane;
    this.bottom = HEIGHT - MARGIN.bottom - this.bottomLane;
  }

  x(order) {
    const span = this.width - MARGIN.left - MARGIN.right;
    return MARGIN.left + ((order - this.range[0]) / (this.range[1] - this.range[0])) * span;
  }

  order(x) {
    const share = (x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
    return this.range[0] + Math.min(1, Math.max(0, share)) * (this.range[1] - this.range[0]);
  }

  y(error) {
    if (error === 0) return this.bottom + this.bottomLane / 2 + 4;
    if (!Number.isFinite(error)) return MARGIN.top + LANE / 2 - 7;
    const share = (this.high - Math.log10(error)) / (this.high - this.low);
    return this.top + Math.min(1, Math.max(0, share)) * (this.bottom - this.top);
  }

  // ---- drawing

  draw() {
    this.layout();
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.svg.replaceChildren();
    this.drawFloor();
    this.drawAxes();
    this.drawCulpritLines();
    this.drawSeries("context", "in_context_error");
    this.drawSeries("local", "local_error");
    this.drawNonFinite();
    this.drawCulpritRings();
    this.marks = svgElement("g", {}, this.svg);
    this.drawMarks();
    this.resetButton.hidden = this.range === this.full;
  }

  // A floor that is not finite allows any error: the band then reaches the top.
  drawFloor() {
    const points = this.shown.filter((row) => row.floor !== null && row.floor !== 0);
    if (this.hidden.has("floor") || !points.length) return;
    const line = points.map((row) => {
      const y = Number.isFinite(row.floor) ? this.y(row.floor) : MARGIN.top;
      return `${this.x(row.order).toFixed(1)} ${y.toFixed(1)}`;
    });
    const ends = [this.x(points[0].order), this.x(points[points.length - 1].order)].map((x) => x.toFixed(1));
    svgElement("path", { class: "floor", d: `M${ends[0]} ${this.bottom}L${line.join("L")}L${ends[1]} ${this.bottom}Z` }, this.svg);
    svgElement("path", { class: "floor-edge", d: `M${line.join("L")}` }, this.svg);
  }

  drawAxes() {
    const decades = this.high - this.low;
    const step = decades > 9 ? 2 : 1;
    for (let power = this.low; power <= this.high; power += step) {
      const y = this.y(10 ** power);
      svgElement("line", { class: "grid", x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y }, this.svg);
      const label = svgElement("text", { class: "tick", x: MARGIN.left - 10, y: y + 4, "text-anchor": "end" }, this.svg);
      if (this.unit === "db") label.textContent = `${-20 * power} dB`;
      else this.powerOfTen(label, power);
    }
    if (this.topLane) this.laneLabel("NaN / Inf", MARGIN.top + LANE / 2 - 3);
    if (this.bottomLane) this.laneLabel("exact", this.bottom + this.bottomLane / 2 + 8);
    this.drawOrderTicks();
  }

  powerOfTen(label, power) {
    label.textContent = "10";
    const exponent = svgElement("tspan", { class: "exponent", dy: -5 }, label);
    exponent.textContent = String(power).replace("-", "−");
  }

  laneLabel(text, y) {
    svgElement("text", { class: "tick", x: MARGIN.left - 10, y, "text-anchor": "end" }, this.svg).textContent = text;
  }

  drawOrderTicks() {
    const span = this.range[1] - this.range[0];
    const rough = span / Math.max(2, (this.width - MARGIN.left) / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough));
    const y = HEIGHT - MARGIN.bottom;
    svgElement("line", { class: "axis", x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y }, this.svg);
    for (let order = Math.ceil(this.range[0] / step) * step; order <= this.range[1]; order += step) {
      svgElement("text", { class: "tick", x: this.x(order), y: y + 18, "text-anchor": "middle" }, this.svg).textContent = order;
    }
    svgElement("text", { class: "axis-title", x: this.width - MARGIN.right, y: HEIGHT - 6, "text-anchor": "end" }, this.svg)
      .textContent = "op, in topological order →";
    const middle = (this.top + this.bottom) / 2;
    svgElement("text", { class: "axis-title", x: 0, y: 0, "text-anchor": "middle", transform: `translate(13 ${middle}) rotate(-90)` }, this.svg)
      .textContent = this.unit === "db" ? "SQNR (worse is up)" : "relative RMS error";
  }

  drawSeries(key, field) {
    if (this.hidden.has(key)) return;
    let dots = "";
    let line = "";
    let pen = "M";
    for (const row of this.shown) {
      const value = row[field];
      if (value === null || !Number.isFinite(value)) { pen = "M"; continue; }
      const at = `${this.x(row.order).toFixed(1)} ${this.y(value).toFixed(1)}`;
      dots += `M${at}h0`;
      line += `${pen}${at}`;
      pen = "L";
    }
    const density = this.shown.length > 600 ? "dense" : this.shown.length > 150 ? "medium" : "sparse";
    if (key === "context") svgElement("path", { class: "line", d: line || "M0 0" }, this.svg);
    svgElement("path", { class: `dots dots-${key} ${density}`, d: dots || "M0 0" }, this.svg);
  }

  drawNonFinite() {
    const y = MARGIN.top + LANE / 2 - 7;
    const crosses = this.shown.filter((row) => row.bad)
      .map((row) => `M${(this.x(row.order) - 4).toFixed(1)} ${y - 4}l8 8m0 -8l-8 8`);
    if (crosses.length) svgElement("path", { class: "nonfinite", d: crosses.join("") }, this.svg);
  }

  culprits() {
    return this.shown.filter((row) => row.blame).sort((left, right) => left.blame.rank - right.blame.rank);
  }

  drawCulpritLines() {
    const labelled = [];
    const culprits = this.culprits();
    culprits.slice(0, 12).forEach((row, index) => {
      const x = this.x(row.order);
      svgElement("line", { class: "culprit-line", x1: x, x2: x, y1: MARGIN.top - 6, y2: HEIGHT - MARGIN.bottom }, this.svg);
      if (index >= 3 || labelled.some((other) => Math.abs(other - x) < 130)) return;
      labelled.push(x);
      const anchor = x > this.width - 100 ? "end" : x < 100 ? "start" : "middle";
      svgElement("text", { class: "culprit-label", x, y: 14, "text-anchor": anchor }, this.svg)
        .textContent = `culprit: ${visible(shorten(row.blame.op_type, 18))}`;
    });
  }

  drawCulpritRings() {
    const culprits = this.culprits().filter((row) => row.bad || row.in_context_error !== null || row.local_error !== null);
    const crowded = culprits.length > 24;
    for (const row of culprits) {
      svgElement("circle", {
        class: crowded ? "culprit-ring crowded" : "culprit-ring", r: crowded ? 3.5 : 6.5,
        cx: this.x(row.order).toFixed(1), cy: this.markY(row).toFixed(1),
      }, this.svg);
    }
  }

  markY(row) {
    const local = this.hidden.has("local") ? null : row.local_error;
    if (local !== null && Number.isFinite(local)) return this.y(local);
    if (row.bad) return this.y(Infinity);
    return row.in_context_error === null ? this.bottom : this.y(row.in_context_error);
  }

  drawMarks() {
    this.marks.replaceChildren();
    for (const [row, kind] of [[this.selected, "selected"], [this.cursor, "cursor"]]) {
      if (!row || row.order < this.range[0] || row.order > this.range[1]) continue;
      const x = this.x(row.order);
      svgElement("line", { class: kind, x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }, this.marks);
      for (const field of ["in_context_error", "local_error"]) {
        const value = row[field];
        if (value === null || !Number.isFinite(value)) continue;
        svgElement("circle", { class: kind, cx: x, cy: this.y(value), r: 5 }, this.marks);
      }
    }
  }

  // ---- interaction

  nearest(x, y) {
    const near = this.shown.filter((row) => Math.abs(this.x(row.order) - x) <= 7);
    const distance = (row) => {
      const heights = [row.in_context_error, row.local_error].filter((v) => v !== null).map((v) => this.y(v));
      if (row.bad) heights.push(this.y(Infinity));
      return Math.hypot(this.x(row.order) - x, 0.25 * Math.min(...heights.map((height) => Math.abs(height - y)), HEIGHT));
    };
    const from = near.length ? near : this.shown;
    return from.reduce((best, row) => (best === null || distance(row) < distance(best) ? row : best), null);
  }

  place(event) {
    const box = this.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  move(event) {
    const [x, y] = this.place(event);
    if (this.dragFrom !== undefined && Math.abs(x - this.dragFrom) > 6) {
      this.brush ??= svgElement("rect", { class: "brush", y: this.top, height: this.bottom - this.top }, this.svg);
      this.brush.setAttribute("x", Math.min(x, this.dragFrom));
      this.brush.setAttribute("width", Math.abs(x - this.dragFrom));
      this.point(null);
      return;
    }
    this.point(this.nearest(x, y), y);
  }

  startDrag(event) {
    if (event.button !== 0) return;
    [this.dragFrom] = this.place(event);
    this.svg.setPointerCapture(event.pointerId);
  }

  endDrag(event) {
    const [x, y] = this.place(event);
    const from = this.dragFrom;
    this.dragFrom = undefined;
    if (this.brush) {
      this.brush = undefined;
      this.zoom([this.order(Math.min(x, from)), this.order(Math.max(x, from))]);
    } else if (from !== undefined) {
      const row = this.nearest(x, y);
      if (row) this.onSelect(row);
    }
  }

  zoom([from, to]) {
    const range = to - from < 4 ? [(from + to) / 2 - 2, (from + to) / 2 + 2] : [from, to];
    const whole = range[0] <= this.full[0] && range[1] >= this.full[1];
    this.range = whole ? this.full : [Math.max(range[0], this.full[0]), Math.min(range[1], this.full[1])];
    this.draw();
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = this.shown.indexOf(this.cursor ?? this.selected);
    if (step) this.point(this.shown[Math.min(this.shown.length - 1, Math.max(0, at + step))]);
    else if (event.key === "Home") this.point(this.shown[0]);
    else if (event.key === "End") this.point(this.shown[this.shown.length - 1]);
    else if (event.key === "Enter" && this.cursor) this.onSelect(this.cursor);
    else if (event.key === "Escape") this.zoom(this.full);
    else if (event.key === "+" || event.key === "-") this.zoomBy(event.key === "+" ? 0.5 : 2);
    else return;
    event.preventDefault();
  }

  zoomBy(factor) {
    const centre = (this.cursor ?? this.selected)?.order ?? (this.range[0] + this.range[1]) / 2;
    const half = ((this.range[1] - this.range[0]) * factor) / 2;
    this.zoom([centre - half, centre + half]);
  }

  point(row, y) {
    this.cursor = row ?? null;
    this.tip.hidden = !row;
    if (row) this.fillTip(row, y ?? this.markY(row));
    this.drawMarks();
  }

  select(row) {
    this.selected = row;
    this.drawMarks();
  }

  fillTip(row, y) {
    const lines = [
      ["in context", row.in_context_error], ["noise floor", row.floor], ["local", row.local_error],
      ["influence", row.influence],
    ].filter(([, value]) => value !== null);
    const list = element("dl");
    for (const [title, value] of lines) {
      const shown = this.unit === "db" ? decibel(value) : magnitude(value);
      list.append(element("dt", {}, title), element("dd", {}, shown));
    }
    if (row.floor_ratio !== null) list.append(element("dt", {}, "local / floor"), element("dd", {}, times(row.floor_ratio)));
    if (row.bad) list.append(element("dt", {}, "NaN/Inf"), element("dd", {}, String(row.nonfinite_target || "yes")));
    const head = element("p", {}, element("span", { class: "op" }, shorten(row.op_type, 24)), ` #${row.order}`);
    if (row.blame) head.append(element("span", { class: "flag" }, "culprit"));
    this.tip.replaceChildren(head, nameElement(row.node, 52), list);
    const left = this.x(row.order) + 16;
    const fits = left + this.tip.offsetWidth < this.width;
    this.tip.style.left = `${fits ? left : Math.max(0, this.x(row.order) - this.tip.offsetWidth - 16)}px`;
    this.tip.style.top = `${Math.min(Math.max(8, y - 40), HEIGHT - this.tip.offsetHeight - 8)}px`;
  }
}
