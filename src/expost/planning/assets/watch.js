// A search on made-up rows, level by level: coefficients and predictions lose their noise until a test passes.
const Watch = (() => {
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const [play, back, next] = ["play", "back", "next"].map((id) => document.getElementById(id));
  const labels = DATA.task === "classification";
  let trace; // null where no made-up table released a model
  let place = 0;
  let scale = 1; // what was spent was computed for one number of rows
  let shown = null; // what is drawn now, between two levels while it moves
  let timer = null;
  let frame = null;

  function show(goal, rows) {
    scale = DATA.start.rows / rows;
    if (trace) document.getElementById("level").textContent = said();
    const [before, part] = Model.locate(DATA.goal.values, goal, (v) => v);
    const nearest = part < 0.5 ? before : before + 1;
    const chosen = DATA.traces[nearest];
    const pure = DATA.delta ? " Without a δ: this is how a pure fit searches." : "";
    document.getElementById("watched").textContent =
      `For ${Words.goal(DATA.goal.values[nearest])}, the nearest that was computed.${pure}`;
    if (chosen === trace) return;
    stop();
    trace = chosen;
    place = 0;
    shown = trace && snapshot(0);
    draw();
  }

  const snapshot = (k) => ({
    coefficients: trace.steps[k].coefficients.slice(),
    predictions: trace.steps[k].predictions.slice(),
  });

  function go(k) {
    if (!trace || k < 0 || k >= trace.steps.length) return;
    place = k;
    const from = shown;
    const to = snapshot(k);
    cancelAnimationFrame(frame);
    if (still.matches) {
      shown = to;
      draw();
      return;
    }
    const start = performance.now();
    const tick = (now) => {
      const part = Math.min(1, (now - start) / 700);
      const eased = part * part * (3 - 2 * part);
      const mixed = (a, b) => a.map((v, i) => v + (b[i] - v) * eased);
      shown = {
        coefficients: mixed(from.coefficients, to.coefficients),
        predictions: mixed(from.predictions, to.predictions),
      };
      pictures();
      if (part < 1) frame = requestAnimationFrame(tick);
    };
    draw();
    frame = requestAnimationFrame(tick);
  }

  function stop() {
    clearInterval(timer);
    cancelAnimationFrame(frame);
    timer = null;
    play.textContent = "Play";
  }

  function toggle() {
    if (timer !== null) return stop();
    go(place + 1 < trace.steps.length ? place + 1 : 0);
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (place + 1 < trace.steps.length) go(place + 1);
      else stop();
    }, 1600);
  }

  function draw() {
    const usable = Boolean(trace);
    play.hidden = still.matches; // without motion there is nothing to play: levels are stepped through
    play.disabled = !usable;
    back.disabled = !usable || place === 0;
    next.disabled = !usable || place + 1 === trace.steps.length;
    document.getElementById("level").textContent = usable ? said() : "No made-up table released a model for this goal.";
    document.getElementById("rows-caption").textContent = labels
      ? `Made-up rows: ${DATA.classes[1]} above, ${DATA.classes[0]} below; right of the line is predicted ${DATA.classes[1]}`
      : "Made-up rows: predicted to the right, actual upward, both between the target's bounds";
    document.getElementById("pictures").hidden = !usable;
    pictures();
  }

  // What a test measures: the goal's own number, or by how much it is missed where that is not one that is measured.
  const measured = DATA.goal.numbered ? `${Words.names} measured` : "the goal missed by";
  const value = (v) => Number((v * DATA.unit).toPrecision(3));

  function said() {
    const step = trace.steps[place];
    const verdict = step.passed ? "shown to meet the goal: released." : "not shown to meet the goal: on to the next.";
    const atLeast = DATA.goal.numbered && DATA.goal.parts[0].atLeast;
    return (
      `Test ${place + 1} of ${trace.steps.length}: ε ${Words.number(step.spent * scale)} spent, ${measured} ` +
      `${value(step.measured)}, ${atLeast ? "at least" : "at most"} ${value(step.at_worst)}; ${verdict}`
    );
  }

  function pictures() {
    for (const id of ["coefficients", "predictions", "track"]) {
      document.getElementById(id).replaceChildren();
      document.getElementById(id).toggleAttribute("hidden", !trace);
    }
    if (!trace) return;
    lollipops(document.getElementById("coefficients"));
    scatter(document.getElementById("predictions"));
    track(document.getElementById("track"));
  }

  function lollipops(svg) {
    const all = [...trace.best, ...trace.steps.flatMap((step) => step.coefficients)].map(Math.abs);
    const most = Math.max(1e-9, ...all);
    const [left, right] = [190, 505];
    const x = (v) => (left + right) / 2 + (v / most) * ((right - left) / 2);
    Draw.add(svg, "line", { class: "axis", x1: x(0), x2: x(0), y1: 8, y2: 320 });
    trace.columns.forEach((name, i) => {
      const y = 20 + (i * 300) / trace.columns.length;
      const short = name.length > 20 ? `${name.slice(0, 19)}…` : name;
      Draw.add(svg, "text", { x: left - 12, y: y + 4, "text-anchor": "end" }, short);
      Draw.add(svg, "line", { class: "stem", x1: x(0), x2: x(shown.coefficients[i]), y1: y, y2: y });
      Draw.add(svg, "circle", { class: "noisy", cx: x(shown.coefficients[i]), cy: y, r: 5 });
      Draw.add(svg, "circle", { class: "clean", cx: x(trace.best[i]), cy: y, r: 6 });
    });
  }

  function scatter(svg) {
    const most = labels ? Math.max(1e-9, ...trace.steps.flatMap((step) => step.predictions).map(Math.abs)) : 1;
    const x = (v) => 260 + (Math.max(-1.1, Math.min(1.1, v / most)) * 240) / 1.1;
    if (labels) Draw.add(svg, "line", { class: "axis", x1: 260, x2: 260, y1: 8, y2: 322 });
    else Draw.add(svg, "line", { class: "axis", x1: x(-1), y1: 165 + 145, x2: x(1), y2: 165 - 145 });
    trace.actual.forEach((actual, i) => {
      const lane = (((i * 37) % 90) / 90 - 0.5) * 110; // spreads rows within their lane, always in the same way
      const y = labels ? (actual > 0 ? 90 : 240) + lane : 165 - actual * 145;
      const wrong = labels && shown.predictions[i] > 0 !== actual > 0;
      Draw.add(svg, "circle", { class: wrong ? "other" : "one", cx: x(shown.predictions[i]), cy: y, r: 4, opacity: 0.75 });
    });
    if (labels) Draw.add(svg, "text", { x: 510, y: 326, "text-anchor": "end" }, "orange: mistaken");
  }

  function track(svg) {
    const step = trace.steps[place];
    const goal = DATA.goal.numbered ? DATA.goal.values[DATA.traces.indexOf(trace)] / DATA.unit : 0;
    const all = [goal, ...trace.steps.flatMap((s) => [s.measured, s.at_worst])];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const pad = (high - low) * 0.08 || 0.01;
    const x = (v) => 30 + ((v - low + pad) / (high - low + 2 * pad)) * 1000;
    Draw.add(svg, "line", { class: "axis", x1: 30, x2: 1030, y1: 46, y2: 46 });
    Draw.add(svg, "line", { class: "cap", x1: x(goal), x2: x(goal), y1: 18, y2: 64 });
    Draw.add(svg, "text", { class: "cap-text", x: x(goal), y: 12, "text-anchor": "middle" }, `goal ${value(goal)}`);
    Draw.add(svg, "line", { class: "typical", x1: x(step.measured), x2: x(step.at_worst), y1: 46, y2: 46 });
    Draw.add(svg, "circle", { class: "noisy", cx: x(step.measured), cy: 46, r: 6 });
    Draw.add(svg, "line", { class: "typical", x1: x(step.at_worst), x2: x(step.at_worst), y1: 36, y2: 56 });
  }

  play.addEventListener("click", toggle);
  back.addEventListener("click", () => (stop(), go(place - 1)));
  next.addEventListener("click", () => (stop(), go(place + 1)));
  still.addEventListener("change", () => (stop(), draw()));
  return { show };
})();
