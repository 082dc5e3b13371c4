/** Invented orders, the same at every run. */

const ORDERS_PER_MONTH = 100_000;
const LINES_PER_ORDER = 80;

/** A small generator of repeatable numbers (a linear congruence). */
const numbersFrom = (seed) => {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
};

/** Yields the orders of one month (1 to 12) one by one. */
export function* ordersOf(month, count = ORDERS_PER_MONTH) {
  const next = numbersFrom(month);
  for (let index = 0; index < count; index += 1) {
    yield {
      id: `order-${month}-${index}`,
      customer: `customer-${next() % 5000}`,
      cents: next() % 20_000,
      lines: new Array(LINES_PER_ORDER).fill(next() % 100),
      note: { month, gift: next() % 7 === 0, express: next() % 11 === 0 },
    };
  }
}
