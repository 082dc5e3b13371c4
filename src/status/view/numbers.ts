/** Numbers in as few cells as can be read. */

/** MB with thousands apart; the unit stands in a heading or behind it. */
export const mb = (value: number): string =>
  Math.round(value)
    .toString()
    .replaceAll(/\B(?=(\d{3})+$)/g, ",");

/** An age in at most five cells. */
export const age = (seconds: number): string => {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 100) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 100) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 100) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
};

/** Between 0 and 1; 0 of nothing is 0. */
export const share = (part: number, whole: number): number => (whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0);
