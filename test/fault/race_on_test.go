//go:build race

package fault

// shadow is how much more memory a bridge built with the race detector may keep: the detector's own memory for what has
// been touched once is never given back.
const shadow = 16
