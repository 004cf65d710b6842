// What the page computes: prices for any goal, number of rows and γ from those that were simulated.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);

const Model = (() => {
  const goals = DATA.goal.values;
  let expected = 0; // which of DATA.expected; the first is nothing

  // The smallest ε·n that this share of the worlds does not exceed; Infinity where the goal was out of reach.
  function quantile(products, share) {
    const place = Math.max(1, Math.ceil(share * products.length - 1e-9));
    const value = products[place - 1];
    return value === null ? Infinity : value;
  }

  function measures(curve) {
    return {
      low: quantile(curve.products, DATA.likely[0]),
      typical: quantile(curve.products, 0.5),
      high: quantile(curve.products, DATA.likely[1]),
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
    if (values.length < 2) return [0, 0];
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
    const curves = DATA.curves[expected];
    if (curves.length < 2) return along(curves[0]); // one γ was computed
    return kPart ? blend(along(curves[k]), along(curves[k + 1]), kPart) : along(curves[k]);
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

  const expect = (place) => (expected = place);

  // The number expected of the best model, or null; and whether a goal asks for as much.
  const best = () => DATA.expected[expected];
  const beyond = (goal) => best() === null || (DATA.goal.parts[0].atLeast ? goal >= best() : goal <= best());

  return { price, share, rowsFor, locate, expect, best, beyond };
})();

const Words = (() => {
  // Two digits, never better than what holds: losses and chances are rounded up (as expost/shown.py does).
  const number = (value) => {
    if (!Number.isFinite(value)) return "out of reach";
    const near = Number(value.toPrecision(2));
    if (near >= value) return String(near);
    return String(Number((near + 10 ** (Math.floor(Math.log10(value)) - 1)).toPrecision(2)));
  };
  const cap = (value) => String(value); // as the command has it
  const count = (value) => Math.round(value).toLocaleString("en-US");
  // The number of each part of a goal: its own, or odds of all of them moved together (as at_odds in goals/labels_and_base_rate.py).
  function numbers(value) {
    if (!DATA.goal.together) return [Number(value.toPrecision(3))];
    return DATA.goal.parts.map((part) => {
      if (value === 0) return part.number;
      const odds = (part.number / (part.full - part.number)) * 2 ** (part.atLeast ? value : -value);
      const exact = (part.full * odds) / (1 + odds);
      const near = Number(exact.toPrecision(4));
      return near < part.full ? near : exact;
    });
  }
  const sign = (part) => (part.atLeast ? "≥" : "≤");
  const goal = (value) =>
    numbers(value).map((number, i) => `${DATA.goal.parts[i].name} ${sign(DATA.goal.parts[i])} ${number}`).join(" and ");
  const names = DATA.goal.parts.map((part) => part.name).join(" and ");
  const options = (value) => numbers(value).map((number, i) => `${DATA.goal.parts[i].flag} ${number}`).join(" ");
  const range = (low, high) => (number(low) === number(high) ? number(low) : `${number(low)} to ${number(high)}`);
  return { number, cap, count, goal, numbers, sign, names, options, range };
})();
