/** The yearly report. Its cache is the leak: it keeps every order it has ever seen. */
import { ordersOf } from "./orders.js";

const cache = new Map();

const loadMonth = (month) => {
  if (!cache.has(month)) cache.set(month, [...ordersOf(month)]);
  return cache.get(month);
};

const add = (orders) => {
  let cents = 0;
  let count = 0;
  for (const order of orders) {
    cents += order.cents;
    count += 1;
  }
  return { count, cents };
};

/** Totals of a month from the cache. */
export const monthReport = (month) => add(loadMonth(month));

/** Totals of a month without keeping its orders. */
export const streamedMonthReport = (month) => add(ordersOf(month));

/** Totals of all twelve months, every order of the year in memory. */
export const yearReport = () => Array.from({ length: 12 }, (_, index) => monthReport(index + 1));
