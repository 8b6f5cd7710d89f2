/** The words of a text: a long list of them reads better without quotes. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/);
