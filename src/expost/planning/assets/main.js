// Controls, the answer in words, the command to copy, and light and dark.
(() => {
  const by = (id) => document.getElementById(id);
  const goals = DATA.goal.values;
  const ends = { rows: [200, 1e7], budget: [0.01, 10], gamma: [0.02, 0.3] };
  const state = { ...DATA.start };

  // Sliders of numbers that go over orders of magnitude move in their logarithm.
  const toPlace = (name, value) => {
    const [low, high] = ends[name].map(Math.log);
    return Math.round(((Math.log(value) - low) / (high - low)) * 1000);
  };
  const fromPlace = (name, place) => {
    const [low, high] = ends[name].map(Math.log);
    const exact = Math.exp(low + (high - low) * (place / 1000));
    return Number(exact.toPrecision(name === "rows" ? 3 : 2));
  };

  function set(id, text) {
    by(`${id}-value`).textContent = text;
    by(id).setAttribute("aria-valuetext", text);
  }

  function prepare() {
    const kind = DATA.classes ? `${DATA.classes[0]} or ${DATA.classes[1]}` : "a number";
    by("about").textContent = `${DATA.target} (${kind}) from ${DATA.columns} columns; no data were read`;
    by("rows-label").textContent = DATA.noun === "rows" ? "Rows" : "Persons";
    const least = DATA.goal.parts.map((part) => `${part.name} ${part.atLeast ? "at least" : "at most"}`);
    by("goal-label").textContent = `Goal: ${DATA.goal.together ? Words.names : least.join(", ")}`;
    by("way").textContent = ways();
    by("expect").max = DATA.expected.length - 1;
    by("expect").value = state.expect;
    by("expect-label").textContent = `Best ${DATA.goal.parts[0].name} you expect`;
    by("expect-control").hidden = DATA.expected.length < 2;
    by("unexpected").hidden = DATA.expected.length > 1;
    by("gamma").disabled = DATA.gammas.length < 2;
    const [low, high] = [Math.min(...goals), Math.max(...goals)];
    Object.assign(by("goal"), { min: low, max: high, step: (high - low) / 140 });
    by("goal").value = state.goal;
    for (const name of Object.keys(ends)) by(name).value = toPlace(name, state[name]);
    by("elsewhere").textContent = DATA.elsewhere;
    if (DATA.release) {
      const r = DATA.release;
      by("release-key").hidden = false;
      by("release-words").textContent =
        `the release: ${Words.goal(r.value)}, ${r.status}, ε ${r.paid} paid for ${Words.count(r.rows)} ${DATA.noun}`;
    }
  }

  // At a δ: where the noise goes.
  function ways() {
    if (!DATA.delta) return "ε of pure fits: no δ.";
    const [first, ...others] = [...new Set(DATA.ways)];
    const at = others.length
      ? `${DATA.ways.map((way, i) => `${Words.goal(DATA.goal.values[i])} by ${way}`).join("; ")}`
      : `noise by ${first}`;
    return `ε at δ = ${DATA.delta}, of the way that a fit of ${Words.count(DATA.start.rows)} ${DATA.noun} takes if none is stated: ${at}. γ is ${DATA.gammas[0]}. Other ways may be cheaper: expost plan --delta ${DATA.delta} has them all.`;
  }

  function read(name) {
    if (name === "expect") {
      state.expect = Number(by(name).value);
      Model.expect(state.expect);
      by("gamma").disabled = DATA.gammas.length < 2 || state.expect > 0;
      if (state.expect > 0) {
        state.gamma = DATA.gamma; // the only one that was computed
        by("gamma").value = toPlace("gamma", state.gamma);
      }
    } else if (name === "goal") state.goal = Number(Number(by("goal").value).toPrecision(3));
    else state[name] = fromPlace(name, Number(by(name).value));
  }

  function answer() {
    const p = Model.price(state.goal, state.rows, state.gamma);
    const share = Math.round(100 * Model.share(state.goal, state.rows, state.gamma, state.budget));
    const node = by("answer");
    const strong = document.createElement("strong");
    strong.textContent = `likely ε ${Words.range(p.low, p.high)}`;
    if (Model.best() !== null && !Number.isFinite(p.low)) {
      strong.textContent = Model.beyond(state.goal)
        ? `out of reach, if the best model has ${DATA.goal.parts[0].name} ${Model.best()}`
        : `not computed so close to the ${Model.best()} that you expect; expost plan --expect ${Model.best()} says it`;
    }
    node.replaceChildren(`${Words.goal(state.goal)} for ${Words.count(state.rows)} ${DATA.noun}: `, strong);
    const rows = Model.rowsFor(state.goal, state.gamma, state.budget);
    const more = Number.isFinite(rows) && rows > state.rows ? ` About ${Words.count(Number(rows.toPrecision(2)))} ${DATA.noun} would do.` : "";
    const fits = share >= 90 ? "nearly all made-up tables stay within it" : `${share} % of made-up tables stay within it`;
    if (!Number.isFinite(p.low)) return node.append(`. Never above ${Words.cap(state.budget)}, the budget.`);
    node.append(`. Never above ${Words.cap(state.budget)}, the budget: ${fits}.${share >= 90 ? "" : more}`);
  }

  function command() {
    const quoted = /^[\w./-]+$/.test(DATA.schemaFile) ? DATA.schemaFile : `'${DATA.schemaFile.replaceAll("'", "'\\''")}'`;
    const at = DATA.delta ? ` --delta ${DATA.delta}` : "";
    const gamma = state.gamma === 0.1 ? "" : ` --failure-probability ${state.gamma}`;
    by("command").value =
      `expost fit DATA.csv --schema ${quoted} ${Words.options(state.goal)}${gamma} --max-epsilon ${state.budget}${at}${DATA.option}`;
  }

  function update() {
    set("goal", Words.goal(state.goal));
    by("goal-value").textContent = Words.numbers(state.goal)
      .map((number, i) => `${Words.sign(DATA.goal.parts[i])} ${number}`)
      .join(" and ");
    const best = Model.best();
    set("expect", best === null ? "not stated" : `${best}`);
    by("close-key").hidden = best !== null;
    set("rows", Words.count(state.rows));
    set("budget", Words.cap(state.budget));
    set("gamma", Words.number(state.gamma));
    Chart.draw(state);
    answer();
    command();
    Watch.show(state.goal, state.rows);
  }

  function theme() {
    const chosen = document.documentElement.dataset.theme;
    const dark = chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    by("theme").setAttribute("aria-pressed", String(dark));
    return dark;
  }

  by("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = theme() ? "light" : "dark";
    theme();
  });
  by("copy").addEventListener("click", async () => {
    by("command").select();
    let done = true;
    try {
      await navigator.clipboard.writeText(by("command").value);
    } catch {
      done = document.execCommand("copy"); // a page from a disk may not use the newer way
    }
    by("copied").textContent = done ? "Copied." : "Press Ctrl+C to copy.";
  });
  for (const name of ["goal", "expect", "rows", "budget", "gamma"]) {
    by(name).addEventListener("input", () => {
      read(name);
      by("copied").textContent = "";
      update();
    });
  }
  by("controls").addEventListener("submit", (event) => event.preventDefault());
  prepare();
  Chart.bars();
  theme();
  update();
})();
