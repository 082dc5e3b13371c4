/** What a job's cap affords. */
import { USUAL_MB_PER_WORKER } from "../tools/schema.js";

/** Part of the cap that V8's old generation may take; the rest is for code, buffers and other processes. */
const HEAP_PERCENT = 70;
/** V8's own limit on a machine with memory enough; a higher one would be no cap. */
const V8_DEFAULT_MB = 4096;

export interface Affordable {
  capMb: number;
  cpus: number;
}

/** The Node heap cap in MB; `undefined` where V8's own default is as low. */
export const heapMb = ({ capMb }: Affordable): number | undefined => {
  const mb = Math.floor((capMb * HEAP_PERCENT) / 100);
  return mb < V8_DEFAULT_MB ? mb : undefined;
};

/** Workers that fit, 1 to the number of CPUs. */
export const workersFor = ({ capMb, cpus }: Affordable, mbPerWorker: number = USUAL_MB_PER_WORKER): number =>
  Math.min(Math.max(Math.floor(capMb / mbPerWorker), 1), Math.max(cpus, 1));

/** The cap affords a worker on every CPU: nothing needs to be lowered. */
export const affordsAll = ({ capMb, cpus }: Affordable, mbPerWorker: number = USUAL_MB_PER_WORKER): boolean =>
  Math.floor(capMb / mbPerWorker) >= cpus;
