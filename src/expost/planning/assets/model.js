// What the page computes: prices for any goal, number of rows and γ from those that were simulated.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);

const Model = (() => {
  const goals = DATA.goal.values;

  // The smallest ε·n that this share of the worlds does not exceed; Infinity where the goal was out of reach.
  function quantile(products, share) {
    const place = Math.max(1, Math.ceil(share * products.length - 1e-9));
    const value = products[place - 1];
    return value === null ? Infinity : value;
  }

  function measures(curve) {
    return {
      low: quantile(curve.products, 0.1),
      typical: quantile(curve.products, 0.5),
      high: quantile(curve.products, 0.9),
      close: curve.closeCall === null ? Infinity : curve.closeCall,
    };
  }

  // Straight lines in the logarithm; out of reach as soon as one end is.
  function between(a, b, part) {
    if (part === 0) return a;
    if (part === 1) return b;
    return Math.exp(Math.log(a) * (1 - part) + Math.log(b) * part);
  }

  // Where a value lies among ordered ones: the place before it and the part of the way to the next.
  function locate(values, value, scale) {
    const rising = values[values.length - 1] > values[0];
    for (let i = 0; i + 1 < values.length; i++) {
      const inside = rising ? value <= values[i + 1] : value >= values[i + 1];
      if (inside || i + 2 === values.length) {
        const part = (scale(value) - scale(values[i])) / (scale(values[i + 1]) - scale(values[i]));
        return [i, Math.min(1, Math.max(0, part))];
      }
    }
    return [0, 0];
  }

  function mix(of, goal, gamma, blend) {
    const [g, gPart] = locate(goals, goal, (v) => v);
    const [k, kPart] = locate(DATA.gammas, gamma, Math.log);
    const along = (curves) => blend(of(curves[g]), of(curves[g + 1]), gPart);
    return blend(along(DATA.curves[k]), along(DATA.curves[k + 1]), kPart);
  }

  function price(goal, rows, gamma) {
    const found = {};
    for (const name of ["low", "typical", "high", "close"]) {
      found[name] = mix((curve) => measures(curve)[name], goal, gamma, between) / rows;
    }
    return found;
  }

  // The share of made-up tables that pay no more than the budget.
  function share(goal, rows, gamma, budget) {
    const within = (curve) =>
      curve.products.filter((p) => p !== null && p / rows <= budget).length / curve.products.length;
    return mix(within, goal, gamma, (a, b, part) => a * (1 - part) + b * part);
  }

  // Rows at which nine in ten made-up tables pay no more; a little is added, as expost plan does.
  function rowsFor(goal, gamma, budget) {
    return Math.ceil((price(goal, 1, gamma).high / budget) * 1.05);
  }

  return { price, share, rowsFor, locate, quantile };
})();

const Words = (() => {
  // Two digits, never better than what holds: losses and chances are rounded up, caps down (as expost/shown.py does).
  const rounded = (value, way) => {
    if (!Number.isFinite(value)) return "out of reach";
    const near = Number(value.toPrecision(2));
    if (way * near >= way * value) return String(near);
    return String(Number((near + way * 10 ** (Math.floor(Math.log10(value)) - 1)).toPrecision(2)));
  };
  const number = (value) => rounded(value, 1);
  const cap = (value) => rounded(value, -1);
  const count = (value) => Math.round(value).toLocaleString("en-US");
  const goal = (value) => `${DATA.goal.name} ${DATA.goal.atLeast ? "≥" : "≤"} ${Number(value.toPrecision(3))}`;
  const range = (low, high) => (number(low) === number(high) ? number(low) : `${number(low)} to ${number(high)}`);
  return { number, cap, count, goal, range };
})();
