// Chance is the same for every rendering of every page.
(() => {
  let state = 0x9e3779b9;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const define = (object, name, value) => Object.defineProperty(object, name, { value, configurable: true, writable: true });
  define(Math, 'random', () => next() / 4294967296);
  // What scripts complain about is told beside the picture.
  const complaints = [];
  const note = (line, what) => { if (complaints.length < 20) complaints.push(`line ${line}: ${what}`.slice(0, 300)); };
  globalThis.addEventListener('error', (event) => { if (event.message) note(event.lineno, event.message); });
  globalThis.addEventListener('unhandledrejection', (event) => note('?', `unhandled rejection: ${event.reason}`));
  Object.defineProperty(globalThis, Symbol.for('proctor.complaints'), { value: complaints });
  if (!globalThis.crypto) return;
  define(Crypto.prototype, 'getRandomValues', (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = next() >>> 24;
    return array;
  });
  define(Crypto.prototype, 'randomUUID', () => {
    const hex = Array.from({ length: 32 }, () => (next() >>> 28).toString(16));
    hex[12] = '4';
    hex[16] = '89ab'[next() >>> 30];
    return hex.join('').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  });
})();
