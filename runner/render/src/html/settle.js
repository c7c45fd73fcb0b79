// Finite animations are shown at their end, infinite ones at their start.
(function settle(document) {
  for (const animation of document.getAnimations({ subtree: true })) {
    try {
      if (animation.effect && animation.effect.getComputedTiming().endTime === Infinity) {
        animation.pause();
        animation.currentTime = 0;
      } else {
        animation.finish();
      }
    } catch (_) { /* one that was cancelled meanwhile */ }
  }
  for (const frame of document.querySelectorAll('iframe')) {
    try { if (frame.contentDocument) settle(frame.contentDocument); } catch (_) { /* another origin's */ }
  }
})(document);
[...(globalThis[Symbol.for('proctor.complaints')] ?? [])].slice(0, 20).map(String).join('\n');
