/** A wall clock that is wrong, for the command line alone: what a job runs is told the real time. */

/** `NODE_OPTIONS` with which every look at the clock is off by the next of these hours, again and again. */
export const clockOff = (...hours: number[]): { NODE_OPTIONS: string } => {
  const program = `
    const now = Date.now;
    const hours = ${JSON.stringify(hours)};
    let looks = 0;
    Date.now = () => now() + hours[looks++ % hours.length] * 3600000;
    globalThis.Date = class extends Date {
      constructor(...words) {
        if (words.length === 0) super(Date.now());
        else super(...words);
      }
    };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` };
};
