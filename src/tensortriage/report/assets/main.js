// Wiring: one selected op, shown in the chart, the table and the panel next to them.

function reading(row) {
  const sentences = [];
  if (row.blame && row.blame.reason) sentences.push(row.blame.reason);
  if (row.bad) sentences.push("NaN or Inf here that the reference does not have.");
  if (row.floor_ratio !== null && !sentences.length) {
    sentences.push(row.floor_ratio > 1
      ? `Alone, with correct inputs, this op is ${times(row.floor_ratio)} its noise floor.`
      : "Alone, with correct inputs, this op is within its noise floor.");
    if (row.floor_ratio <= 1 && row.in_context_error > row.floor && row.floor !== null) {
      sentences.push("The error seen here was inherited from its inputs.");
    }
  }
  if (row.note) sentences.push(row.note);
  return sentences;
}

// A link to an op is the page with its node, or one of its tensors, behind `#op=`.
const LINK = "#op=";

function linkTo(row) {
  return LINK + encodeURIComponent(row.node || row.value);
}

function linkedRow(rows) {
  if (!location.hash.startsWith(LINK)) return undefined;
  try {
    const name = decodeURIComponent(location.hash.slice(LINK.length));
    return rows.find((row) => row.node === name) || rows.find((row) => row.value === name);
  } catch {
    return undefined; // a link that was cut off
  }
}

function fillDetail(panel, row) {
  const head = element("div", { class: "detail-head" },
    element("span", { class: "op" }, shorten(row.op_type, 40)),
    element("a", { class: "count", href: linkTo(row), title: "Link to this op" }, `#${row.order}`));
  if (row.blame) head.append(element("span", { class: "flag" }, `culprit ${row.blame.rank}`));
  const facts = element("dl", { class: "pairs" });
  const put = (title, value, level = "") => {
    if (value === "-") return;
    const shown = element("dd", {}, value);
    if (level) shown.append(element("span", { class: "quiet" }, level));
    facts.append(element("dt", {}, title), shown);
  };
  const both = (title, error) => put(title, magnitude(error), error > 0 && Number.isFinite(error) ? decibel(error) : "");
  both("Error in context", row.in_context_error);
  both("Noise floor", row.floor);
  both("Local error", row.local_error);
  both("Local floor", row.local_floor);
  put("Local / floor", times(row.floor_ratio));
  put("Influence", magnitude(row.influence));
  put("NaN/Inf elements", row.nonfinite_target ? String(row.nonfinite_target) : "-");
  put("Max |reference|", magnitude(row.max_abs_reference));
  put("Max |target|", magnitude(row.max_abs_target));
  const names = element("dl", { class: "names" });
  for (const [title, text] of [["Node", row.node], ["Tensor", row.value], ["Module", row.scope + (row.source ? ` (${row.source})` : "")], ["Type", `${row.dtype} ${shapeText(row)}`]]) {
    if (text.trim()) names.append(element("dt", {}, title), element("dd", {}, element("code", {}, text)));
  }
  panel.replaceChildren(head, ...reading(row).map((sentence) => element("p", { class: "reading" }, sentence)), names, facts);
}

function main() {
  const rows = readRows();
  const byId = (id) => document.getElementById(id);
  if (rows.length) {
    let chart;
    const table = new OpsTable(byId("ops"), byId("ops-tools"), byId("ops-count"), rows, (row) => select(row, { reveal: false }));
    const select = (row, how) => {
      chart.select(row);
      table.select(row, how);
      fillDetail(byId("detail"), row);
    };
    chart = new DepthChart(byId("depth"), byId("depth-tools"), rows, (row) => select(row, { reveal: true }));
    chart.draw();
    const culprit = rows.find((row) => row.blame && row.blame.rank === 1);
    const follow = () => {
      const row = linkedRow(rows);
      if (!row) return false;
      select(row, { reveal: true });
      byId("depth").scrollIntoView({ block: "center" });
      return true;
    };
    window.addEventListener("hashchange", follow);
    if (!follow()) select(culprit || table.visibleRows[0], { reveal: false });
  }
  // How long the page took to become usable; tests and curious people read it.
  document.documentElement.dataset.readyMs = String(Math.round(performance.now()));
}

main();
