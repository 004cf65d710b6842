// Price against accuracy, as a picture and as a table, and what costs most.
const Draw = (() => {
  const space = "http://www.w3.org/2000/svg";
  function add(parent, name, attributes, text) {
    const node = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  }
  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return { add, path };
})();

const Chart = (() => {
  const svg = document.getElementById("chart");
  const [left, right, top] = [58, 625, 16];
  const bottom = 330 - 16 * (DATA.goal.parts.length - 1);
  const goals = DATA.goal.values;
  const strictest = goals[goals.length - 1];
  const x = (goal) => left + ((goal - goals[0]) / (strictest - goals[0])) * (right - left);

  function samples() {
    const found = [];
    for (let i = 0; i + 1 < goals.length; i++) {
      for (let part = 0; part < 4; part++) found.push(goals[i] + ((goals[i + 1] - goals[i]) * part) / 4);
    }
    return [...found, strictest];
  }

  function heights(state, prices) {
    const paid = DATA.release ? [DATA.release.epsilon] : [];
    const all = [state.budget, ...paid, ...prices.flatMap((p) => [p.low, p.high, ...(Model.best() === null ? [p.close] : [])])].filter(
      (v) => Number.isFinite(v) && v > 0
    );
    const low = Math.log10(Math.min(...all)) - 0.25;
    const high = Math.log10(Math.max(...all)) + 0.25;
    const y = (value) => {
      const at = Number.isFinite(value) ? Math.log10(value) : high;
      return bottom - ((Math.min(high, Math.max(low, at)) - low) / (high - low)) * (bottom - top);
    };
    return { y, low, high };
  }

  function axes(scale) {
    for (let power = Math.floor(scale.low); power <= scale.high; power++) {
      for (const digit of [1, 2, 5]) {
        const value = digit * 10 ** power;
        const at = Math.log10(value);
        if (at < scale.low || at > scale.high || (digit !== 1 && scale.high - scale.low > 2.6)) continue;
        Draw.add(svg, "line", { class: "grid", x1: left, x2: right, y1: scale.y(value), y2: scale.y(value) });
        const label = Number(value.toPrecision(1)).toString();
        Draw.add(svg, "text", { x: left - 8, y: scale.y(value) + 4, "text-anchor": "end" }, label);
      }
    }
    for (const goal of goals) {
      Draw.add(svg, "line", { class: "axis", x1: x(goal), x2: x(goal), y1: bottom, y2: bottom + 5 });
      Words.numbers(goal).forEach((number, i) => {
        const at = { x: x(goal), y: bottom + 20 + 16 * i, "text-anchor": "middle" };
        Draw.add(svg, "text", at, Number(number.toPrecision(DATA.goal.together ? 2 : 3)));
      });
    }
    Draw.add(svg, "path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` });
    const least = DATA.goal.parts.map((part) => `${part.name} ${part.atLeast ? "at least" : "at most"}`).join(", ");
    const title = `${least}; stricter to the right`;
    Draw.add(svg, "text", { x: (left + right) / 2, y: 375, "text-anchor": "middle" }, title);
    Draw.add(svg, "text", { x: 14, y: (top + bottom) / 2, "text-anchor": "middle", class: "ink",
      transform: `rotate(-90 14 ${(top + bottom) / 2})` }, "ε, logarithmic");
  }

  function draw(state) {
    svg.replaceChildren();
    const at = samples();
    const prices = at.map((goal) => Model.price(goal, state.rows, state.gamma));
    const scale = heights(state, prices);
    // where something is expected, lines end where it is out of reach
    const seen = at.map((_, i) => i).filter((i) => Model.best() === null || Number.isFinite(prices[i].low));
    const line = (name) => seen.map((i) => [x(at[i]), scale.y(prices[i][name])]);
    Draw.add(svg, "path", { class: "band", d: `${Draw.path([...line("low"), ...line("high").reverse()])}Z` });
    axes(scale);
    if (Model.best() === null) Draw.add(svg, "path", { class: "close", d: Draw.path(line("close")) });
    Draw.add(svg, "path", { class: "typical", d: Draw.path(line("typical")) });
    const cap = scale.y(state.budget);
    Draw.add(svg, "line", { class: "cap", x1: left, x2: right, y1: cap, y2: cap });
    Draw.add(svg, "text", { class: "cap-text", x: left + 8, y: cap - 6 }, `budget ${Words.cap(state.budget)}`);
    Draw.add(svg, "line", { class: "here", x1: x(state.goal), x2: x(state.goal), y1: top, y2: bottom });
    if (Model.best() !== null) limit();
    const now = Model.price(state.goal, state.rows, state.gamma);
    for (const name of ["low", "high"].filter((each) => Model.best() === null || Number.isFinite(now[each]))) {
      Draw.add(svg, "circle", { cx: x(state.goal), cy: scale.y(now[name]), r: 4, class: "ink" });
    }
    if (DATA.release) {
      const dot = Draw.add(svg, "circle", { class: "paid", r: 7, id: "paid",
        cx: x(Math.min(Math.max(DATA.release.value, Math.min(...goals)), Math.max(...goals))),
        cy: scale.y(DATA.release.epsilon) });
      Draw.add(dot, "title", {}, document.getElementById("release-words").textContent);
    }
    words(now, state);
    table(state);
  }

  // Goals that ask for more than the model that is expected reaches.
  function limit() {
    const at = Math.min(x(Model.best()), right);
    Draw.add(svg, "rect", { class: "beyond", x: at, y: top, width: right - at, height: bottom - top });
    Draw.add(svg, "line", { class: "best", x1: at, x2: at, y1: top, y2: bottom });
    const label = { x: at - 6, y: top + 12, "text-anchor": "end", class: "best-text" };
    if (at < (left + right) / 2) Object.assign(label, { x: at + 6, "text-anchor": "start" });
    Draw.add(svg, "text", label, `expected ${Model.best()}${at < right ? "; out of reach beyond" : ""}`);
  }

  function words(now, state) {
    const tables = DATA.worlds[Model.best() === null ? 0 : 1];
    document.getElementById("chart-words").textContent =
      `At ${Words.goal(state.goal)} and ${Words.count(state.rows)} ${DATA.noun}: ` +
      (Number.isFinite(now.low)
        ? `likely ε from ${Words.number(now.low)} to ${Words.number(now.high)}, typically ${Words.number(now.typical)}, `
        : Model.beyond(state.goal) ? "out of reach " : "not computed ") +
      `${Number.isFinite(now.low) ? "over" : "in"} ${tables} made-up tables.`;
  }

  function table(state) {
    const rows = goals.map((goal) => {
      const p = Model.price(goal, state.rows, state.gamma);
      const share = Model.share(goal, state.rows, state.gamma, state.budget);
      const close = Model.best() === null ? [Words.number(p.close)] : [];
      const cells = [Words.range(p.low, p.high), Words.number(p.typical), ...close, `${Math.round(100 * share)} %`];
      return [Words.goal(goal), ...cells];
    });
    const heads = ["goal", "ε likely", "typical", ...(Model.best() === null ? ["close call"] : []), `within ${Words.cap(state.budget)}`];
    const node = document.getElementById("table");
    node.replaceChildren();
    [heads, ...rows].forEach((cells, i) => {
      const line = node.insertRow();
      cells.forEach((text, j) => {
        const cell = document.createElement(i === 0 || j === 0 ? "th" : "td");
        if (i === 0) cell.scope = "col";
        else if (j === 0) cell.scope = "row";
        cell.textContent = text;
        line.appendChild(cell);
      });
    });
  }

  function bars() {
    const list = document.getElementById("bars");
    const most = Math.max(0.01, ...DATA.savings.map((saving) => saving.saves));
    for (const saving of DATA.savings.slice(0, 10)) {
      const item = document.createElement("li");
      const percent = `${saving.estimated ? "about " : ""}${Math.round(100 * saving.saves)} %`;
      const bar = document.createElement("div");
      bar.className = `bar${saving.estimated ? " estimated" : ""}`;
      const filled = document.createElement("span");
      filled.style.width = `${(100 * saving.saves) / most}%`;
      bar.appendChild(filled);
      const name = document.createElement("strong");
      name.textContent = saving.column;
      const what = document.createElement("small");
      what.textContent = `${saving.now}: ${saving.change} if ${saving.provided}`;
      item.title = what.textContent;
      item.append(name, ` saves ${percent}`, bar, what);
      list.appendChild(item);
    }
    if (DATA.delta) list.textContent = "Not said at a δ: a page without --delta says it for pure fits.";
    else if (!DATA.savings.length) list.textContent = "Nothing that would save one part in a hundred.";
  }

  return { draw, bars };
})();
