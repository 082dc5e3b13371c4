export interface HermesOptions {
  home?: string;
  json?: boolean;
}
export const hermesCommand = async (_a: "install" | "uninstall", _o: HermesOptions): Promise<number> => 1;
